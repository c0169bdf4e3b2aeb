#pragma once

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ledger/ledger.h"
#include "model/pod.h"
#include "model/reservation.h"
#include "model/reservation_affinity.h"

namespace berth::sched {

using ledger::Ledger;
using ledger::ReservationIndex;
using ledger::Row;
using ledger::View;

// Reservations of one node: seldom more than one or two matter to a pod.
using Few = absl::InlinedVector<ReservationIndex, 2>;

// The reservations that a pod matches on one node. What it draws from them is read from the ledger when it is needed
// (draw.h), so that preemption may ask "and without these pods?".
struct Credit {
    Few matched;
    std::vector<model::HostPort> ports;  // held by them, free for this pod
    // What it draws, if that is settled (nominated.h); nullptr: the best there is.
    std::shared_ptr<const ledger::Charges> promised = nullptr;

    bool covers(ReservationIndex index) const {
        return std::find(matched.begin(), matched.end(), index) != matched.end();
    }
};

// By row; seldom more than a few, and mostly one when a single row is looked at.
class Credits {
public:
    using Entry = std::pair<Row, Credit>;

    const Credit* find(Row row) const {
        const auto at = std::lower_bound(entries_.begin(), entries_.end(), row, kByRow);
        return at == entries_.end() || at->first != row ? nullptr : &at->second;
    }
    // Made when it is not there; cheapest when rows come in their order.
    Credit& operator[](Row row);
    bool empty() const { return entries_.empty(); }
    size_t size() const { return entries_.size(); }
    void clear() { entries_.clear(); }
    auto begin() const { return entries_.begin(); }
    auto end() const { return entries_.end(); }
    auto begin() { return entries_.begin(); }
    auto end() { return entries_.end(); }

private:
    static constexpr auto kByRow = [](const Entry& entry, Row row) { return entry.first < row; };
    absl::InlinedVector<Entry, 1> entries_;  // in the order of rows
};

class Shares;

// One question to the table: where could this pod, or the pod that stands for this reservation, go?
struct Ask {
    const model::PodSpec* spec = nullptr;
    const model::Pod* pod = nullptr;                  // nullptr: a reservation asks
    const model::Reservation* reservation = nullptr;  // nullptr: a pod asks
    model::ReservationWishes wishes;
    std::string fault;               // not empty: why the pod goes nowhere, whatever the nodes are like
    Credits credits;                 // empty for almost every pod
    const Shares* shares = nullptr;  // by which its namespace may or may not have more; nullptr: nobody asks for shares
    bool packs = false;              // of a node's devices it gets the fullest that will do, as its profile says
    // Where what it costs is counted: looks at one term on one row, the same on every machine. nullptr: nowhere.
    uint64_t* looks = nullptr;

    const Credit* credit(Row row) const { return credits.find(row); }
    // Reservations change nothing for it, as for almost every pod.
    bool plain() const { return !reservation && credits.empty() && !wishes.affinity && fault.empty(); }
};

Ask ask_for(const model::Pod& pod, const View& ledger, uint64_t* looks = nullptr);
Ask ask_for(const model::Reservation& reservation, uint64_t* looks = nullptr);

}  // namespace berth::sched
