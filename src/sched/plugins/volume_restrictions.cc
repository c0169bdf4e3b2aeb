#include <algorithm>

#include "sched/claims.h"
#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

using model::Volume;
using model::VolumeKind;

constexpr PluginId kPlugin = PluginId::VolumeRestrictions;

bool is_disk(const Volume& volume) {
    return volume.kind == VolumeKind::GcePd || volume.kind == VolumeKind::AwsEbs || volume.kind == VolumeKind::Iscsi ||
           volume.kind == VolumeKind::Rbd;
}

bool overlap(const std::vector<std::string>& a, const std::vector<std::string>& b) {
    return std::any_of(a.begin(), a.end(), [&](const auto& x) { return std::find(b.begin(), b.end(), x) != b.end(); });
}

// Two mounts of one disk clash unless both only read; an EBS volume clashes always.
bool clash(const Volume& a, const Volume& b) {
    if (a.kind != b.kind || a.id != b.id) return false;
    if (a.kind == VolumeKind::Rbd && (a.extra != b.extra || !overlap(a.hosts, b.hosts))) return false;
    return a.kind == VolumeKind::AwsEbs || !(a.read_only && b.read_only);
}

bool clashes(const std::vector<Volume>& disks, const Ask& ask, const View& ledger, Row row) {
    const auto& here = ledger.volumes().placed(row);
    return std::any_of(here.begin(), here.end(), [&](const auto& placed) {
        if (is_matched(ask, placed.user)) return false;
        const auto& theirs = placed.spec->volumes;
        return std::any_of(disks.begin(), disks.end(), [&](const Volume& mine) {
            return std::any_of(theirs.begin(), theirs.end(), [&](const Volume& other) { return clash(mine, other); });
        });
    });
}

bool in_use(const AskedClaims& claims, const Ask& ask, const View& ledger) {
    return std::any_of(claims.once_pod.begin(), claims.once_pod.end(), [&](const Claim& claim) {
        const auto& users = ledger.volumes().users(claim->meta.full_name());
        return std::any_of(users.begin(), users.end(), [&](const auto& user) { return !is_matched(ask, user); });
    });
}

class VolumeRestrictions final : public Filter {
public:
    PluginId plugin() const override { return kPlugin; }
    bool concerns(const Ask& ask, const View&) const override { return may_concern(*ask.spec); }
    bool may_concern(const model::PodSpec& spec) const override { return !spec.volumes.empty(); }
    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        if (ask.spec->volumes.empty()) return;
        std::vector<Volume> disks;
        std::copy_if(ask.spec->volumes.begin(), ask.spec->volumes.end(), std::back_inserter(disks), is_disk);
        const bool taken = in_use(claims_of(ask, ledger), ask, ledger);
        if (disks.empty() && !taken) return;
        const auto disk = strikes.refusal(kPlugin, {"node(s) had no available disk"}, false);
        const auto once = strikes.refusal(kPlugin,
                                          {"node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod "
                                           "access mode already in-use by another pod"},
                                          false);
        strikes.each_open([&](Row row) {
            if (clashes(disks, ask, ledger, row)) return strikes.strike(row, disk);
            if (taken) strikes.strike(row, once);
        });
    }
};

}  // namespace

std::shared_ptr<const Filter> volume_restrictions() {
    return std::make_shared<VolumeRestrictions>();
}

}  // namespace berth::sched::plugins
