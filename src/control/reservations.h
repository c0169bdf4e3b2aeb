#pragma once

#include "base/clock.h"
#include "control/ages.h"
#include "control/writes.h"
#include "ledger/ledger.h"

namespace berth::control {

// The life of reservations after they are placed: owners and amounts, success, expiry, loss of the node, waiting for
// room, removal.
struct ReservationPass {
    ledger::Ledger& ledger;  // has seen every stored node, pod and reservation; is told the time
    base::Time wall;
    base::Instant now;
    base::Duration gc = std::chrono::hours(24);  // how long final ones are kept
    bool opens = true;  // when a waiting one has its room; else the scheduler does, which knows what it is binding
};

// Compares each stored status with what is the case. Deciding twice on the same objects decides the same; a write that
// was carried out leads to no further one.
Writes reconcile_reservations(const ReservationPass& pass, Ages& ages);
// The same for some of them between two passes, e.g. those that a pod was just bound to.
Writes reconcile_these(const ReservationPass& pass, Ages& ages, const std::vector<ledger::ReservationIndex>& these);

// A pod's own trouble with the links that only the scheduler may write: on a pod that is not bound they mean nothing;
// on a bound one that cannot be read they close the reservations of its node.
std::vector<Event> judge_links(const model::Pod& pod);

// What the Node controller owes to node.koordinator.sh/reservation: the last valid value beside it; when a part of it
// cannot be used, a condition that says so and, when that is new, a warning.
Writes reconcile_node_reservation(const model::Node& node);

}  // namespace berth::control
