// NodeVolumeLimits: how many volumes a CSI driver can attach to a node.
#include <algorithm>
#include <map>

#include "sched/claims.h"
#include "sched/draw.h"
#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

using Attachable = ledger::Volumes::Attachable;
using Attachables = std::vector<Attachable>;  // sorted, distinct

constexpr uint32_t kAsking = ledger::kNone - 1;  // stands for a reservation that is not placed yet

void merge(Attachables& into, Attachables more) {
    into.insert(into.end(), more.begin(), more.end());
    std::sort(into.begin(), into.end());
    into.erase(std::unique(into.begin(), into.end()), into.end());
}

bool has(const Attachables& all, const Attachable& one) {
    return std::binary_search(all.begin(), all.end(), one);
}

int64_t count(const Attachables& all, std::string_view driver) {
    return std::count_if(all.begin(), all.end(), [&](const auto& a) { return a.driver == driver; });
}

Attachables without(Attachables all, const Attachables& others) {
    std::erase_if(all, [&](const auto& a) { return has(others, a); });
    return all;
}

// What one node has attached, by whom.
struct Attached {
    Attachables pods;
    std::map<uint32_t, Attachables> reserved;  // by reservation
    // By the reservation that a pod draws from first, kNone: from none; told apart only where volumes are reserved.
    std::map<uint32_t, Attachables> by;

    void add_pod(uint32_t from, Attachables theirs) {
        if (!reserved.empty()) merge(by[from], theirs);
        merge(pods, std::move(theirs));
    }
    // A reservation keeps max(its own, its owners') places: those of its volumes that no pod has attached, less what
    // is there for its owners alone beside them. E.g. it reserves 2, one owner attached another volume: it still keeps
    // 1. When a stranger uses that volume too, or another reservation holds it, it keeps 2: the volume, or its place,
    // stays when the owner goes.
    int64_t kept(uint32_t reservation, std::string_view driver) const {
        const Attachables& own = reserved.at(reservation);
        const auto owners = by.find(reservation);
        Attachables beside = owners == by.end() ? Attachables() : owners->second;
        for (const auto& [from, theirs] : by) {
            if (from != reservation) beside = without(std::move(beside), theirs);
        }
        for (const auto& [holder, held] : reserved) beside = without(std::move(beside), held);
        return std::max<int64_t>(0, count(without(own, pods), driver) - count(beside, driver));
    }
    int64_t in_use(std::string_view driver) const {
        int64_t sum = count(pods, driver);
        for (const auto& [reservation, own] : reserved) sum += kept(reservation, driver);
        return sum;
    }
};

uint32_t first_payer(const ledger::PodEntry& pod) {
    if (pod.payer != ledger::kNone || pod.parts.empty()) return pod.payer;
    return pod.parts.front().reservation;
}

Attached attached_on(const View& ledger, Row row) {
    Attached out;
    const auto& all = ledger.volumes().placed(row);
    for (const auto& [user, spec] : all) {
        if (user.reservation) out.reserved[user.index] = ledger.volumes().attachables(*spec, true);
    }
    for (const auto& [user, spec] : all) {
        if (user.reservation) continue;
        out.add_pod(first_payer(ledger.pod(user.index)), ledger.volumes().attachables(*spec, false));
    }
    return out;
}

// With the ask.
Attached attached_then(Attached now, const Ask& ask, const Attachables& wanted, const View& ledger, Row row) {
    if (ask.reservation) {
        now.reserved[kAsking] = wanted;
    } else {
        const ledger::Charges charges = charges_on(ask, ledger, row);
        now.add_pod(charges.empty() ? ledger::kNone : charges.front().reservation, wanted);
    }
    return now;
}

class VolumeLimits final : public Filter {
public:
    PluginId plugin() const override { return PluginId::NodeVolumeLimits; }
    bool concerns(const Ask& ask, const View&) const override { return may_concern(*ask.spec); }
    bool may_concern(const model::PodSpec& spec) const override { return !spec.volumes.empty(); }
    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        if (ask.spec->volumes.empty()) return;
        const Attachables wanted = ledger.volumes().attachables(*ask.spec, ask.reservation != nullptr);
        if (wanted.empty()) return;
        const auto refused = strikes.refusal(plugin(), {"node(s) exceed max volume count"}, false);
        strikes.each_open([&](Row row) {
            if (exceeds(ask, wanted, ledger, row)) strikes.strike(row, refused);
        });
    }

private:
    static bool exceeds(const Ask& ask, const Attachables& wanted, const View& ledger, Row row) {
        const auto node = ledger.volumes().csi_nodes().find(ledger.name(row));
        if (!node) return false;
        const Attached before = attached_on(ledger, row);
        const Attachables more = without(wanted, before.pods);
        if (more.empty() && before.reserved.empty()) return false;
        const Attached after = attached_then(before, ask, wanted, ledger, row);
        // A VolumeAttachment of a volume that no pod there uses counts beside the ask's own use of it, as in
        // kube-scheduler.
        const Attachables listed = without(ledger.volumes().attached(ledger.name(row)), before.pods);
        return std::any_of(node->drivers.begin(), node->drivers.end(), [&](const auto& driver) {
            if (!driver.limit) return false;
            const int64_t then = after.in_use(driver.name);
            const bool adds = count(more, driver.name) > 0 || then > before.in_use(driver.name);
            return adds && then + count(listed, driver.name) > *driver.limit;
        });
    }
};

}  // namespace

std::shared_ptr<const Filter> volume_limits() {
    return std::make_shared<VolumeLimits>();
}

}  // namespace berth::sched::plugins
