#include "sched/claiming.h"

#include "model/reservation_status.h"

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

std::optional<ClaimReservation> release_of(ledger::ReservationIndex index, const ledger::View& ledger,
                                           base::Time wall) {
    const auto& entry = ledger.reservation(index);
    const auto& object = *entry.object;
    if (!model::holds_room(object) || !entry.owners.empty()) return std::nullopt;
    if (entry.used_up) {
        auto end = claim_on(object, "", object.current_owners);
        end.status = model::ended_by_bind(std::move(end.status), wall);
        return end;
    }
    if (!model::is_claimed(object)) return std::nullopt;
    return claim_on(object, "", {});
}

}  // namespace berth::sched
