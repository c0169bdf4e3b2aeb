#pragma once

#include <absl/container/flat_hash_map.h>

#include <string>
#include <vector>

#include "ledger/ledger.h"
#include "model/pod.h"
#include "model/reservation.h"

namespace berth::sched {

using ledger::Ledger;
using ledger::ReservationIndex;
using ledger::Row;

// What the reservations that a pod matches give back to it on one node.
struct Credit {
    std::vector<ReservationIndex> matched;
    model::Resources remaining;          // added to what is free there
    std::vector<model::HostPort> ports;  // held by them, free for this pod
};

// One question to the table: where could this pod, or the pod that stands for this reservation, go?
struct Ask {
    const model::PodSpec* spec = nullptr;
    const model::Pod* pod = nullptr;                  // nullptr: a reservation asks
    const model::Reservation* reservation = nullptr;  // nullptr: a pod asks
    absl::flat_hash_map<Row, Credit> credits;         // empty for almost every pod

    const Credit* credit(Row row) const {
        if (credits.empty()) return nullptr;
        const auto found = credits.find(row);
        return found == credits.end() ? nullptr : &found->second;
    }
};

Ask ask_for(const model::Pod& pod, const Ledger& ledger);
Ask ask_for(const model::Reservation& reservation);

}  // namespace berth::sched
