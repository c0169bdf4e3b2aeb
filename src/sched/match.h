#pragma once

#include "ledger/ledger.h"
#include "model/reservation_affinity.h"

namespace berth::sched {

// Whether the pod may draw from the reservation: it is available, the pod is one of its owners, affinity and exact
// match hold, its taints are tolerated, and nobody else has it or has claimed it.
bool matches(const ledger::Ledger& ledger, ledger::ReservationIndex index, const model::Pod& pod,
             const model::ReservationWishes& wishes);

}  // namespace berth::sched
