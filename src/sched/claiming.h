#pragma once

#include <optional>
#include <vector>

#include "ledger/ledger.h"
#include "sched/plan.h"

// Where the binding of a pod and the end of the allocateOnce reservation that it uses up are two writes, the pod claims
// the reservation first: it alone stands in its currentOwners. After a crash a claim of a bound pod means Succeeded,
// any other is released.
namespace berth::sched {

// What has to be claimed before a pod with these charges is bound.
std::vector<ClaimReservation> claims_for(const model::Pod& pod, const ledger::Charges& charges,
                                         const ledger::View& ledger);

// The release of a claim whose pod is neither bound nor being bound.
std::optional<ClaimReservation> release_of(ledger::ReservationIndex claimed, const ledger::View& ledger);

}  // namespace berth::sched
