#include "sched/match.h"

#include <algorithm>

namespace berth::sched {
namespace {

bool claimed_by_another(const model::Reservation& reservation, const model::Pod& pod) {
    const auto& owners = reservation.current_owners;
    return reservation.allocate_once &&
           std::any_of(owners.begin(), owners.end(), [&](const auto& owner) { return owner.uid != pod.meta.uid; });
}

bool affinity_matches(const model::ReservationAffinity& affinity, const model::Reservation& reservation,
                      const model::Node& node) {
    if (!affinity.terms && affinity.selector.empty()) return affinity.matches(reservation.meta.name, {});
    model::Labels labels = node.meta.labels;
    for (const auto& [key, value] : reservation.meta.labels) labels.set(key, value);
    return affinity.matches(reservation.meta.name, labels);
}

bool tolerated(const model::Reservation& reservation, const model::Pod& pod, const model::ReservationWishes& wishes) {
    return std::all_of(reservation.taints.begin(), reservation.taints.end(), [&](const model::Taint& taint) {
        if (taint.effect == "PreferNoSchedule" || model::tolerates(pod.spec->tolerations, taint)) return true;
        return wishes.affinity && model::tolerates(wishes.affinity->tolerations, taint);
    });
}

}  // namespace

bool suits(const ledger::Ledger& ledger, ledger::ReservationIndex index, const model::Pod& pod,
           const model::ReservationWishes& wishes) {
    const ledger::ReservationEntry& entry = ledger.reservation(index);
    const model::Reservation& object = *entry.object;
    const auto identity = model::identity_of(pod);
    const bool owner = std::any_of(object.owners.begin(), object.owners.end(),
                                   [&](const auto& clause) { return model::matches(clause, identity); });
    if (!owner || claimed_by_another(object, pod) || !tolerated(object, pod, wishes)) return false;
    const bool exact = std::all_of(wishes.exact.begin(), wishes.exact.end(), [&](model::ResourceId id) {
        return pod.spec->requests.get(id) == entry.allocatable.get(id);
    });
    return exact && (!wishes.affinity || affinity_matches(*wishes.affinity, object, ledger.node(entry.row)));
}

bool matches(const ledger::Ledger& ledger, ledger::ReservationIndex index, const model::Pod& pod,
             const model::ReservationWishes& wishes) {
    return ledger.reservation(index).open && suits(ledger, index, pod, wishes);
}

}  // namespace berth::sched
