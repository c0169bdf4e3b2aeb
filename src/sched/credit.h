#pragma once

#include <vector>

#include "sched/ask.h"

// What the reservations of one row are to a pod.
namespace berth::sched {

Credit credit_of(Few matched, const Ledger& ledger);

// The ask for the pod as far as this row is concerned: its credit elsewhere is left out.
Ask ask_on(const model::Pod& pod, const Ledger& ledger, Row row);
// Makes the row the only one whose credit the ask knows. False: it has none there.
bool look_only_at(Ask& ask, const Ledger& ledger, Row row);

// Whether a row with credit takes the pod, as far as NodePorts, NodeResourcesFit and Reservation are concerned.
bool admits_with_credit(const Ask& ask, const Ledger& ledger, Row row);

}  // namespace berth::sched
