#include "sched/claiming.h"

namespace berth::sched {
namespace {

ClaimReservation claim_on(const model::Reservation& object, std::string pod, std::vector<model::PodRef> owners) {
    ClaimReservation out{std::move(pod), 0, object.meta.uid, object.meta.name, object.meta.revision, object};
    out.status.current_owners = std::move(owners);
    return out;
}

}  // namespace

std::vector<ClaimReservation> claims_for(const model::Pod& pod, const ledger::Charges& charges,
                                         const ledger::View& ledger) {
    std::vector<ClaimReservation> out;
    for (const auto& charge : charges) {
        const auto& object = *ledger.reservation(charge.reservation).object;
        // Also when it stands there already: its release may be under way, and then this is refused.
        if (!object.allocate_once) continue;
        out.push_back(claim_on(object, pod.meta.uid, {{pod.meta.ns, pod.meta.name, pod.meta.uid}}));
    }
    return out;
}

std::optional<ClaimReservation> release_of(ledger::ReservationIndex claimed, const ledger::View& ledger) {
    const auto& entry = ledger.reservation(claimed);
    const auto& object = *entry.object;
    if (!model::is_claimed(object) || entry.used_up || !entry.owners.empty()) return std::nullopt;
    return claim_on(object, "", {});
}

}  // namespace berth::sched
