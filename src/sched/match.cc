#include "sched/match.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace berth::sched {
namespace {

using model::Closed;

bool affinity_matches(const model::ReservationAffinity& affinity, const model::Reservation& reservation,
                      const model::Node& node) {
    if (!affinity.terms && affinity.selector.empty()) return affinity.matches(reservation.meta.name, {});
    model::Labels labels = node.meta.labels;
    for (const auto& [key, value] : reservation.meta.labels) labels.set(key, value);
    return affinity.matches(reservation.meta.name, labels);
}

// nullptr: there is none.
const model::Taint* untolerated(const model::Reservation& reservation, const model::Pod& pod,
                                const model::ReservationWishes& wishes) {
    for (const model::Taint& taint : reservation.taints) {
        if (taint.effect == "PreferNoSchedule" || model::tolerates(pod.spec->tolerations, taint)) continue;
        if (!wishes.affinity || !model::tolerates(wishes.affinity->tolerations, taint)) return &taint;
    }
    return nullptr;
}

// Of what has to be equal, the first that is not.
std::optional<model::ResourceId> unequal(const ledger::ReservationEntry& entry, const model::Pod& pod,
                                         const model::ReservationWishes& wishes) {
    const auto found = std::find_if(wishes.exact.begin(), wishes.exact.end(), [&](model::ResourceId id) {
        return pod.spec->requests.get(id) != entry.allocatable.get(id);
    });
    if (found == wishes.exact.end()) return std::nullopt;
    return *found;
}

}  // namespace

bool suits(const ledger::View& ledger, ledger::ReservationIndex index, const model::Pod& pod,
           const model::ReservationWishes& wishes) {
    const ledger::ReservationEntry& entry = ledger.reservation(index);
    const model::Reservation& object = *entry.object;
    if (!model::owned_by(object, pod) || model::claimed_by_another(object, pod.meta.uid)) return false;
    if (untolerated(object, pod, wishes)) return false;
    if (unequal(entry, pod, wishes)) return false;
    return !wishes.affinity || affinity_matches(*wishes.affinity, object, ledger.node(entry.row));
}

bool matches(const ledger::View& ledger, ledger::ReservationIndex index, const model::Pod& pod,
             const model::ReservationWishes& wishes) {
    return ledger.reservation(index).open() && suits(ledger, index, pod, wishes);
}

std::string closed_because(const ledger::View& ledger, ledger::ReservationIndex index) {
    const ledger::ReservationEntry& entry = ledger.reservation(index);
    const model::Reservation& object = *entry.object;
    if (object.phase != model::ReservationPhase::Available || entry.row == ledger::kNoRow) return "";
    if (entry.closed == Closed::Deleted) return "it is being deleted";
    if (entry.closed == Closed::Ended) return "its time is over";
    if (entry.closed == Closed::Unschedulable) return "it is unschedulable";
    if (entry.closed == Closed::Unreadable) return fmt::format("it cannot be read: {}", object.fault);
    if (ledger.at(entry.row).unreadable == 0) return "";
    return fmt::format("{} has a pod whose {} cannot be read", object.node, model::kReservationAllocated);
}

std::string why_unsuited(const ledger::View& ledger, ledger::ReservationIndex index, const model::Pod& pod,
                         const model::ReservationWishes& wishes) {
    const ledger::ReservationEntry& entry = ledger.reservation(index);
    const model::Reservation& object = *entry.object;
    if (object.phase != model::ReservationPhase::Available || entry.row == ledger::kNoRow) return "";
    if (auto closed = closed_because(ledger, index); !closed.empty()) return closed;
    if (entry.used_up || model::claimed_by_another(object, pod.meta.uid)) return "another pod has it";
    if (const auto* taint = untolerated(object, pod, wishes)) {
        return fmt::format("its taint {}{}{}:{} is not tolerated", taint->key, taint->value.empty() ? "" : "=",
                           taint->value, taint->effect);
    }
    if (const auto id = unequal(entry, pod, wishes)) {
        return fmt::format("{} of the pod and of the reservation are not equal", model::resource_name(*id));
    }
    if (wishes.affinity && !affinity_matches(*wishes.affinity, object, ledger.node(entry.row))) {
        return "the pod's reservation affinity does not select it";
    }
    return "";
}

}  // namespace berth::sched
