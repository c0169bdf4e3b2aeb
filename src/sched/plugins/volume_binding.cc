#include <algorithm>

#include "sched/plugins/registry.h"
#include "sched/volume_plan.h"

namespace berth::sched::plugins {
namespace {

constexpr PluginId kPlugin = PluginId::VolumeBinding;

enum class Bound : uint8_t { Reachable, OutOfReach, Missing };

// The first claim that is not served on the node decides.
Bound check_bound(const std::vector<std::shared_ptr<const model::PersistentVolume>>& volumes,
                  const model::Labels& labels) {
    for (const auto& volume : volumes) {
        if (!volume) return Bound::Missing;
        if (volume->affinity && !volume->affinity->matches("", labels)) return Bound::OutOfReach;
    }
    return Bound::Reachable;
}

class VolumeBinding final : public Filter {
public:
    PluginId plugin() const override { return kPlugin; }
    bool concerns(const Ask& ask, const View&) const override { return may_concern(*ask.spec); }
    bool may_concern(const model::PodSpec& spec) const override { return !spec.volumes.empty(); }
    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        if (ask.spec->volumes.empty()) return;
        const AskedClaims claims = claims_of(ask, ledger);
        if (claims.bound.empty() && claims.delayed.empty()) return;
        std::vector<std::shared_ptr<const model::PersistentVolume>> bound;
        for (const auto& claim : claims.bound) bound.push_back(ledger.volumes().volumes().find(claim->volume));
        const VolumePlanner planner(claims, ledger);
        strikes.each_open([&](Row row) {
            std::vector<std::string> reasons;
            const Bound reach = check_bound(bound, ledger.node(row).meta.labels);
            const VolumeAnswer answer = planner.answer(row);
            if (reach == Bound::OutOfReach)
                reasons.emplace_back("node(s) didn't match PersistentVolume's node affinity");
            if (answer.no_volume) reasons.emplace_back("node(s) didn't find available persistent volumes to bind");
            if (answer.not_enough_space) reasons.emplace_back("node(s) did not have enough free storage");
            if (reach == Bound::Missing) {
                reasons.emplace_back("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)");
            }
            if (!reasons.empty()) strikes.strike(row, strikes.refusal(kPlugin, std::move(reasons), true));
        });
    }
};

}  // namespace

std::shared_ptr<const Filter> volume_binding() {
    return std::make_shared<VolumeBinding>();
}

}  // namespace berth::sched::plugins
