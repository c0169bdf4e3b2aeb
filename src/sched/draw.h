#pragma once

#include <span>
#include <vector>

#include "model/labels.h"
#include "sched/ask.h"

// What a pod takes from the reservations it matches on one node, and whether that, with what the node has, suffices.
// Both are said by one Drawing: nothing is counted for a pod that it is not charged. Amounts are read from the ledger
// as it is now.
namespace berth::sched {

struct Drawing {
    ledger::Charges charges;                  // the nominated one first; empty: the node alone pays
    model::Resources lacking;                 // what neither they nor the node have for the pod
    std::vector<model::ResourceId> withheld;  // what a Restricted one must supply and cannot, by id
    bool enough() const { return lacking.empty() && withheld.empty(); }
};

// The best drawing there is; if none suffices, the one that lacks least. Aligned and Restricted reservations come first
// and are drawn from alone. Default ones that have anything left of what the pod asks for are drawn from jointly, but
// when all of these are reusable only one is used. Where the credit says what was promised, that is the drawing.
Drawing draw_on(const Credit& credit, const Ask& ask, const View& ledger, Row row);
// On a row where the ask may have credit, what it is charged; none elsewhere.
ledger::Charges charges_on(const Ask& ask, const View& ledger, Row row);

// What of the request a Restricted reservation must supply and cannot. The others have none.
std::vector<model::ResourceId> withheld_by(ReservationIndex index, const model::Resources& request, const View& ledger);
// How much of the request they supply, then how full the nominated one ends up: more is better, and any of it outranks
// the scorers. 0: nothing.
int64_t score_of(const ledger::Charges& charges, const Ask& ask, const View& ledger);
int64_t reservation_score(const Ask& ask, const View& ledger, Row row);

// The request split among them: the nominated one first, charged with all that the further draws do not supply.
// E.g. 4 cpu 8Gi, A holds 4 cpu, B holds 8Gi: {A: 4 cpu}, {B: 8Gi}; with 6 cpu asked: {A: 6 cpu}, {B: 8Gi}.
ledger::Charges charges_to(std::span<const ReservationIndex> from, const model::PodSpec& spec, const View& ledger);

// What the Binding writes into the pod along with its node: who pays, and which ones it gets.
model::Labels annotations_for(const ledger::Charges& charges, const ledger::WhichPtr& which, const model::Pod& pod,
                              const View& ledger);

}  // namespace berth::sched
