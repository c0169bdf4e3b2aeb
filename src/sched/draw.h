#pragma once

#include <optional>
#include <vector>

#include "model/labels.h"
#include "sched/ask.h"

// What a pod takes from the reservations it matches on one node. Amounts are read from the ledger as it is now, and
// charges_on() matches again, so it may be asked at the moment of assuming.
namespace berth::sched {

// Whether the request fits what is free on the row together with the offer.
bool fits(const Offer& offer, const Ask& ask, const Ledger& ledger, Row row);
// The resources that a Restricted reservation must supply and cannot, by id. The others have none.
std::vector<model::ResourceId> too_little(const Offer& offer, const Ask& ask, const Ledger& ledger);
// Whether the reservation has anything left of what the pod asks for: an amount, a port, or, for a pod that asks for
// neither, its slot.
bool useful(ReservationIndex index, const Ask& ask, const Ledger& ledger);

// What a credit comes to.
struct Drawing {
    bool enough = false;  // one of its offers suffices
    Few from;             // whom the pod would draw from, the nominated one first; empty: from none
};
Drawing draw_on(const Credit& credit, const Ask& ask, const Ledger& ledger, Row row);
// Whom the pod would draw from on the row.
Few nominate(const Ask& ask, const Ledger& ledger, Row row);

// How much of the request they supply, then how full the nominated one ends up: more is better, and any of it outranks
// the scorers. 0: nothing.
int64_t score_of(const Few& from, const Ask& ask, const Ledger& ledger);
int64_t reservation_score(const Ask& ask, const Ledger& ledger, Row row);

// The request split among them: the nominated one first, charged with all that the further draws do not supply.
// E.g. 4 cpu 8Gi, A holds 4 cpu, B holds 8Gi: {A: 4 cpu}, {B: 8Gi}; with 6 cpu asked: {A: 6 cpu}, {B: 8Gi}.
ledger::Charges charges_to(const Few& from, const model::PodSpec& spec, const Ledger& ledger);
ledger::Charges charges_on(const Ask& ask, const Ledger& ledger, Row row);

// What the Binding writes into the pod along with its node.
model::Labels annotations_for(const ledger::Charges& charges, const model::Pod& pod, const Ledger& ledger);

}  // namespace berth::sched
