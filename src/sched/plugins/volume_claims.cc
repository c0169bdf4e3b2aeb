#include "sched/claims.h"
#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

// What VolumeRestrictions, VolumeBinding and VolumeZone refuse before any node is looked at: claims and volumes that
// are missing, lost, going, or that somebody else must bind first.
class VolumeClaims final : public Filter {
public:
    PluginId plugin() const override { return PluginId::VolumeBinding; }
    bool concerns(const Ask& ask, const View&) const override { return may_concern(*ask.spec); }
    bool may_concern(const model::PodSpec& spec) const override { return !spec.volumes.empty(); }
    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        if (auto refusal = claims_refusal(ask, ledger)) {
            strikes.refuse(strikes.refusal(refusal->plugin, std::move(refusal->reasons), refusal->unresolvable));
        }
    }
};

}  // namespace

std::shared_ptr<const Filter> volume_claims() {
    return std::make_shared<VolumeClaims>();
}

}  // namespace berth::sched::plugins
