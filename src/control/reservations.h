#pragma once

#include "base/clock.h"
#include "control/ages.h"
#include "control/reconciler.h"
#include "ledger/ledger.h"
#include "model/write.h"

namespace berth::control {

// The life of reservations after they are placed: owners and amounts, success, expiry, loss of the node, waiting for
// room, removal.
struct ReservationOptions {
    base::Duration gc = std::chrono::hours(24);  // how long final ones are kept
    bool opens = true;  // when a waiting one has its room; else the scheduler does, which knows what it is binding
};

// What is to become of one.
struct ReservationChange {
    std::string name;
    std::string uid;
    uint64_t revision = 0;                           // of what was looked at
    std::optional<model::ReservationStatus> status;  // the whole new one
    bool over = false;                               // it goes
    std::optional<model::Event> event;
};

// Since when one that is final has been so.
base::Time final_since(const model::Reservation& reservation);

// Compares the stored status with what is the case; nullopt: it is so. Deciding twice on the same objects decides the
// same; a write that was carried out leads to no further one. The ledger has seen every stored node, pod and
// reservation, and been told the time.
std::optional<ReservationChange> reconcile_reservation(const ReservationOptions& options, const ledger::View& ledger,
                                                       ledger::ReservationIndex index, base::Time wall,
                                                       std::optional<base::Duration> final_for = {});
// The same for all, by name, of a ledger that has been told the time.
std::vector<ReservationChange> reconcile_reservations(const ReservationOptions& options, const ledger::View& ledger,
                                                      Ages& final_ones, base::Time wall, base::Instant now);

// A pod's own trouble with the links that only the scheduler may write: on a pod that is not bound they mean nothing;
// on a bound one that cannot be read they close the reservations of its node.
std::vector<model::Event> judge_links(const model::Pod& pod);

// What the Node controller owes to node.koordinator.sh/reservation: the last valid value beside it; when a part of it
// cannot be used, a condition that says so and, when that is new, a warning. One write at a time, since each is of the
// revision that was looked at.
std::optional<model::Write> reconcile_node_reservation(const model::Node& node, base::Time wall);

// Both as controllers. They read the ledger of stored objects alone, so that what a scheduler has only assumed never
// shows in a status.
std::vector<std::unique_ptr<Reconciler>> reservation_reconcilers(base::Duration gc);

}  // namespace berth::control
