#pragma once

#include "sched/draw.h"

// What the reservations of one row are to a pod.
namespace berth::sched {

Credit credit_of(Few matched, const View& ledger);

// The ask for the pod as far as this row is concerned: its credit elsewhere is left out.
Ask ask_on(const model::Pod& pod, const View& ledger, Row row);

// Whether a row with credit takes the pod, as far as NodePorts, NodeResourcesFit and Reservation are concerned.
bool admits(const Credit& credit, const Drawing& drawing, const Ask& ask, const View& ledger, Row row);

}  // namespace berth::sched
