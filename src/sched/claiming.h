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

// What nobody who is bound or being bound draws from: the release of its claim; or its end, where somebody was bound
// and has gone. The controllers write that when they see the pod bound; where they were away meanwhile only we can
// know.
std::optional<ClaimReservation> release_of(ledger::ReservationIndex index, const ledger::View& ledger, base::Time wall);

}  // namespace berth::sched
