#include "sched/ask.h"

#include <algorithm>

namespace berth::sched {
namespace {

bool matched(const ledger::ReservationEntry& entry, const model::Pod& pod) {
    const auto& object = *entry.object;
    if (!entry.live || entry.waiting || object.unschedulable || object.meta.deleted) return false;
    if (object.allocate_once && !entry.owners.empty()) return false;
    return std::any_of(object.owners.begin(), object.owners.end(),
                       [&](const auto& owner) { return model::matches(owner, pod); });
}

}  // namespace

Ask ask_for(const model::Pod& pod, const Ledger& ledger) {
    Ask ask;
    ask.spec = pod.spec.get();
    ask.pod = &pod;
    for (const auto& [uid, index] : ledger.reservations()) {
        const auto& entry = ledger.reservation(index);
        if (!matched(entry, pod)) continue;
        Credit& credit = ask.credits[entry.row];
        credit.matched.push_back(index);
        credit.remaining.add(ledger.remaining(index));
        const auto& ports = entry.object->spec->ports;
        credit.ports.insert(credit.ports.end(), ports.begin(), ports.end());
    }
    return ask;
}

Ask ask_for(const model::Reservation& reservation) {
    Ask ask;
    ask.spec = reservation.spec.get();
    ask.reservation = &reservation;
    return ask;
}

}  // namespace berth::sched
