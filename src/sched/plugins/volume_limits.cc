// NodeVolumeLimits: how many volumes a CSI driver can attach to a node.
#include <algorithm>
#include <map>

#include "sched/claims.h"
#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

using Attachable = ledger::Volumes::Attachable;
using Attachables = std::vector<Attachable>;  // sorted, distinct

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

// What one node has attached, by whom.
struct Attached {
    Attachables pods;
    std::map<uint32_t, Attachables> reservations;  // by index; what its owners have attached is theirs
};

Attached attached_on(const Ledger& ledger, Row row) {
    Attached out;
    for (const auto& placed : ledger.volumes().placed(row)) {
        auto theirs = ledger.volumes().attachables(*placed.spec, placed.user.reservation);
        if (placed.user.reservation) {
            out.reservations[placed.user.index] = std::move(theirs);
        } else {
            merge(out.pods, std::move(theirs));
        }
    }
    return out;
}

// A reservation keeps max(its own, its owners') places: those of its volumes that no pod has attached, less what its
// owners attached beside them. E.g. it reserves 2, one owner attached another volume: it still keeps 1.
int64_t kept(const Ledger& ledger, uint32_t index, const Attachables& own, const Attachables& pods,
             std::string_view driver) {
    const int64_t open =
        std::count_if(own.begin(), own.end(), [&](const auto& a) { return a.driver == driver && !has(pods, a); });
    Attachables beside;
    for (const auto owner : ledger.reservation(index).owners) {
        merge(beside, ledger.volumes().attachables(*ledger.pod(owner).spec, false));
    }
    std::erase_if(beside, [&](const auto& a) { return has(own, a); });
    return std::max<int64_t>(0, open - count(beside, driver));
}

class VolumeLimits final : public Filter {
public:
    std::string_view name() const override { return "NodeVolumeLimits"; }
    bool concerns(const Ask& ask, const Ledger&) const override { return !ask.spec->volumes.empty(); }
    void strike(const Ask& ask, const Ledger& ledger, Strikes& strikes) const override {
        if (ask.spec->volumes.empty()) return;
        const Attachables wanted = ledger.volumes().attachables(*ask.spec, ask.reservation != nullptr);
        if (wanted.empty()) return;
        const auto refused = strikes.refusal(name(), {"node(s) exceed max volume count"}, false);
        strikes.each_open([&](Row row) {
            if (exceeds(ask, wanted, ledger, row)) strikes.strike(row, refused);
        });
    }

private:
    static bool exceeds(const Ask& ask, const Attachables& wanted, const Ledger& ledger, Row row) {
        const auto node = ledger.volumes().csi_nodes().find(ledger.name(row));
        if (!node) return false;
        const Attached here = attached_on(ledger, row);
        const Attachables listed = ledger.volumes().attached(ledger.name(row));
        return std::any_of(node->drivers.begin(), node->drivers.end(), [&](const auto& driver) {
            if (!driver.limit) return false;
            const int64_t more = std::count_if(wanted.begin(), wanted.end(), [&](const auto& a) {
                return a.driver == driver.name && !has(here.pods, a);
            });
            return more > 0 && more + in_use(ask, here, listed, ledger, driver.name) > *driver.limit;
        });
    }

    // A VolumeAttachment of a volume that no pod there uses counts beside the ask's own use of it, as in
    // kube-scheduler.
    static int64_t in_use(const Ask& ask, const Attached& here, const Attachables& listed, const Ledger& ledger,
                          std::string_view driver) {
        int64_t sum = count(here.pods, driver);
        sum += std::count_if(listed.begin(), listed.end(),
                             [&](const auto& a) { return a.driver == driver && !has(here.pods, a); });
        int64_t given = 0;  // an ask draws from one reservation: the one that gives most
        for (const auto& [index, own] : here.reservations) {
            const int64_t places = kept(ledger, index, own, here.pods, driver);
            sum += places;
            if (is_matched(ask, {true, index})) given = std::max(given, places);
        }
        return sum - given;
    }
};

}  // namespace

std::shared_ptr<const Filter> volume_limits() {
    return std::make_shared<VolumeLimits>();
}

}  // namespace berth::sched::plugins
