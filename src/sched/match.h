#pragma once

#include <string>

#include "ledger/ledger.h"
#include "model/reservation_affinity.h"

namespace berth::sched {

// Whether the reservation is for the pod: the pod is one of its owners, affinity and exact match hold, its taints are
// tolerated, and nobody else has claimed it. The same as long as its row's reservations_epoch is and the node's labels
// are.
bool suits(const ledger::View& ledger, ledger::ReservationIndex index, const model::Pod& pod,
           const model::ReservationWishes& wishes);

// Whether the pod may draw from the reservation now: it is available, nobody else has it, and it suits.
bool matches(const ledger::View& ledger, ledger::ReservationIndex index, const model::Pod& pod,
             const model::ReservationWishes& wishes);

// In words, what keeps every pod from an available reservation; empty: nothing does.
std::string closed_because(const ledger::View& ledger, ledger::ReservationIndex index);

// What keeps the pod, one of its owners, from it though it is available; empty: nothing does.
std::string why_unsuited(const ledger::View& ledger, ledger::ReservationIndex index, const model::Pod& pod,
                         const model::ReservationWishes& wishes);

}  // namespace berth::sched
