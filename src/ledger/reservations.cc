// The half of the ledger that counts reservations; who is charged to them is in links.cc.
#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "base/saturating.h"
#include "ledger/ledger.h"
#include "ledger/spaces.h"
#include "ledger/which.h"

namespace berth::ledger {
namespace {

bool is_listed(const ReservationEntry& entry) {
    return entry.open() || entry.closed == model::Closed::Taken;
}

}  // namespace

// ---- the row's sums

void Ledger::recompute_charged(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    entry.charged.clear();
    for (const PodIndex owner : entry.owners) {
        pods_[owner].each_charge([&](ReservationIndex to, const Resources& amount) {
            if (to == index) entry.charged.add(amount);
        });
    }
    index_owners(index);
}

// A port that a pod holds has left its reservation, so no port has two holders. Of one on all addresses the reservation
// keeps those that the pod did not take.
void Ledger::recompute_ports(Row row) {
    NodeEntry& node = nodes_[row];
    Ports ports;
    for (const PodIndex pod : node.pods) ports.add(pods_[pod].spec->ports);
    const std::vector<model::HostPort> taken = ports.held();
    for (const ReservationIndex index : node.reservations) {
        ReservationEntry& entry = reservations_[index];
        entry.ports.clear();
        for (const auto& port : entry.spec->ports) {
            const bool gone =
                std::any_of(taken.begin(), taken.end(), [&](const auto& held) { return covers(held, port); });
            if (!gone) entry.ports.push_back(port);
        }
        ports.add(entry.ports);
    }
    node.ports = std::move(ports);
}

bool Ledger::reserves_ports(Row row) const {
    const auto& all = nodes_[row].reservations;
    return std::any_of(all.begin(), all.end(),
                       [&](ReservationIndex index) { return !reservations_[index].spec->ports.empty(); });
}

// Enters the row's sums.
void Ledger::hold(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    nodes_[entry.row].reservations.push_back(index);
    volumes_.enter({true, index}, entry.row, entry.spec);
    show_near(index);
    change_sums(entry, 1);
    mend_sums(entry.row);
    if (!entry.spec->ports.empty()) recompute_ports(entry.row);
    entry.which = entry.recorded;
    enter_parts_of(index);
    touch_reservations(entry.row);
}

// Leaves the row's sums.
void Ledger::release(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    terms_->hide(index);
    leave_parts_of(index);
    entry.which = nullptr;
    const bool ports = !entry.spec->ports.empty();
    std::erase(nodes_[entry.row].reservations, index);
    volumes_.leave({true, index}, entry.row);
    change_sums(entry, -1);
    mend_sums(entry.row);
    if (ports) recompute_ports(entry.row);
    entry.ports.clear();
    touch_reservations(entry.row);
}

void Ledger::touch_reservations(Row row) {
    nodes_[row].reservations_epoch = ++reservations_epochs_;
    changes_.touch(row);
}

// ---- their states

// Whether an owner has been bound, and not only assumed.
bool Ledger::was_used(ReservationIndex index) const {
    const ReservationEntry& entry = reservations_[index];
    return std::any_of(entry.owners.begin(), entry.owners.end(),
                       [&](PodIndex owner) { return !pods_[owner].assumed; }) ||
           ended_.had(*entry.object, entry.node);
}

// Brings what it holds in line with what is known of it.
void Ledger::refresh(ReservationIndex index, Holding next) {
    ReservationEntry& entry = reservations_[index];
    entry.used_up = entry.used_up || (entry.holds_room() && entry.once && was_used(index));
    const bool holds = next != Holding::None;
    const Row row = holds ? row_of(entry.node) : kNoRow;
    await_node(index, holds && row == kNoRow);
    const bool same = holds == entry.holds_room() && row == entry.row && entry.reserved == entry.allocatable &&
                      (row == kNoRow || same_which(entry.recorded, entry.which));
    if (same) {
        entry.holding = next;
        return index_owners(index);
    }
    const std::string uid = entry.object->meta.uid;
    if (entry.row != kNoRow) {
        entry.holding = Holding::None;
        relink(uid);
        release(index);
    }
    entry.holding = next;
    entry.row = row;
    entry.allocatable = entry.reserved;
    if (row != kNoRow) {
        hold(index);
        relink(uid);
    }
    index_owners(index);
    if (entry.holds_room() && entry.once && !entry.used_up && was_used(index)) refresh(index);
}

// Remembers, or forgets, that it waits for its node to appear. It holds its claims meanwhile.
void Ledger::await_node(ReservationIndex index, bool waits) {
    const std::string& node = reservations_[index].node;
    volumes_.leave({true, index}, kNoRow);
    if (const auto found = stranded_.find(node); found != stranded_.end()) {
        std::erase(found->second, index);
        if (found->second.empty()) stranded_.erase(found);
    }
    if (!waits) return;
    stranded_[node].push_back(index);
    volumes_.enter({true, index}, kNoRow, reservations_[index].spec);
}

// Says whether it is closed, and keeps those that somebody might draw from in the index. One that is only for one pod
// and was assumed for it stays there until that pod is bound: it may be given back.
void Ledger::index_owners(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    const bool was_listed = is_listed(entry);
    entry.closed = model::why_closed({.by_object = entry.closed_by_object,
                                      .available = entry.holding == Holding::Available && entry.row != kNoRow,
                                      .ended = entry.ended,
                                      .used_up = entry.used_up,
                                      .taken = entry.once && !entry.owners.empty()});
    const bool listed = is_listed(entry);
    if (listed == was_listed) return;
    if (listed) {
        owner_index_.add(index, entry.object->owners);
    } else {
        owner_index_.remove(index);
    }
}

// Its owners may be others from now on.
void Ledger::unindex_owners(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    if (is_listed(entry)) owner_index_.remove(index);
    entry.closed = model::Closed::NotAvailable;
}

std::vector<ReservationIndex> Ledger::pass_time(base::Time wall, base::Instant now) {
    std::vector<ReservationIndex> ended = ends_.look(wall, now);
    for (const ReservationIndex index : ended) {
        reservations_[index].ended = true;
        index_owners(index);
        if (reservations_[index].row != kNoRow) touch_reservations(reservations_[index].row);
    }
    return ended;
}

void Ledger::assume_reservation(ReservationIndex index, Row row, bool waiting, WhichPtr which) {
    ReservationEntry& entry = reservations_[index];
    CHECK(!entry.holds_room());
    entry.assumed = true;
    entry.node = name(row);
    entry.reserved = entry.spec->requests;
    entry.recorded = std::move(which);
    refresh(index, waiting ? Holding::Waiting : Holding::Available);
}

void Ledger::record(ReservationIndex index, WhichPtr which) {
    reservations_[index].recorded = std::move(which);
    refresh(index);
}

void Ledger::unassume_reservation(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    if (!entry.assumed) return;
    entry.assumed = false;
    refresh(index, Holding::None);
    entry.node.clear();
}

ReservationIndex Ledger::new_reservation() {
    if (free_reservations_.empty()) {
        reservations_.emplace_back();
        return static_cast<ReservationIndex>(reservations_.size() - 1);
    }
    const ReservationIndex index = free_reservations_.back();
    free_reservations_.pop_back();
    return index;
}

void Ledger::put(std::shared_ptr<const model::Reservation> reservation) {
    ReservationIndex index = find_reservation(reservation->meta.uid);
    if (index == kNone) {
        index = new_reservation();
        reservation_by_uid_.emplace(reservation->meta.uid, index);
    } else if (reservation->meta.revision < reservations_[index].object->meta.revision) {
        return;
    }
    ReservationEntry& entry = reservations_[index];
    unindex_owners(index);
    reshape(index, std::move(reservation));
    const auto& object = *entry.object;
    entry.ended = ends_.put(index, object);
    await_node(index, false);
    if (!object.node.empty()) entry.node = object.node;
    Holding next = model::is_final(object.phase) ? Holding::None : entry.holding;
    if (model::holds_room(object) && !object.node.empty()) {
        entry.assumed = false;
        next = object.phase == model::ReservationPhase::Waiting ? Holding::Waiting : Holding::Available;
        entry.reserved = object.allocatable.empty() ? object.spec->requests : object.allocatable;
        entry.reserved.set(model::kPods, 1);
        entry.recorded = object.which.empty() ? nullptr : std::make_shared<const model::Which>(object.which);
    }
    relink(object.meta.uid);
    refresh(index, next);
    if (entry.row != kNoRow && spaces_) count_held(index);   // it may be others'
    if (entry.row != kNoRow) touch_reservations(entry.row);  // who may draw from it may have changed
}

// What it holds by its spec leaves the row with the old one, and comes back with the new one.
void Ledger::reshape(ReservationIndex index, std::shared_ptr<const model::Reservation> next) {
    ReservationEntry& entry = reservations_[index];
    const bool other = entry.row != kNoRow && *entry.spec != *next->spec;
    if (other) {
        volumes_.leave({true, index}, entry.row);
        terms_->hide(index);
    }
    entry.object = std::move(next);
    entry.once = entry.object->allocate_once;
    entry.closed_by_object = model::closed_by_object(*entry.object);
    entry.holds_back = !entry.object->held_back.empty();
    entry.policy = entry.object->policy;
    entry.spec = entry.object->spec;
    entry.scoring_cpu = entry.spec->scoring_cpu_milli;
    entry.scoring_memory = entry.spec->scoring_memory;
    if (!other) return;
    rescore(entry);
    volumes_.enter({true, index}, entry.row, entry.spec);
    show_near(index);
    recompute_ports(entry.row);
}

void Ledger::remove_reservation(std::string_view uid) {
    const ReservationIndex index = find_reservation(uid);
    if (index == kNone) return;
    refresh(index, Holding::None);
    ends_.remove(index);
    reservations_[index] = ReservationEntry();
    reservation_by_uid_.erase(uid);
    free_reservations_.push_back(index);
}

// ---- questions

}  // namespace berth::ledger
