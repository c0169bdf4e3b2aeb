// The half of the ledger that counts reservations.
#include <algorithm>

#include "base/check.h"
#include "ledger/ledger.h"
#include "model/allocated.h"

namespace berth::ledger {

ReservationIndex Ledger::find_reservation(std::string_view uid) const {
    const auto found = reservation_by_uid_.find(uid);
    return found == reservation_by_uid_.end() ? kNone : found->second;
}

void Ledger::recompute_charged(ReservationEntry& entry) {
    entry.charged.clear();
    for (const PodIndex owner : entry.owners) {
        for (const auto& charge : pods_[owner].charges) {
            if (&reservations_[charge.reservation] == &entry) entry.charged.add(charge.amount);
        }
    }
}

Resources Ledger::remaining(ReservationIndex index) const {
    const ReservationEntry& entry = reservations_[index];
    Resources rest;
    entry.allocatable.for_each(
        [&](ResourceId id, int64_t amount) { rest.set(id, std::max<int64_t>(0, amount - entry.charged.get(id))); });
    return rest;
}

// Enters the row's sums.
void Ledger::hold(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    if (entry.row == kNoRow) return;
    nodes_[entry.row].reservations.push_back(index);
    nodes_[entry.row].ports.add(entry.object->spec->ports);
    volumes_.enter({true, index}, entry.row, entry.object->spec);
    show_near(index);
    recompute_row(entry.row);
    changes_.touch(entry.row);
}

// Leaves the row's sums; owners stay, as ordinary pods.
void Ledger::release(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    if (entry.row == kNoRow) return;
    terms_->hide(index);
    std::erase(nodes_[entry.row].reservations, index);
    nodes_[entry.row].ports.remove(entry.object->spec->ports);
    volumes_.leave({true, index}, entry.row);
    recompute_row(entry.row);
    changes_.touch(entry.row);
}

void Ledger::finish(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    if (!entry.live) return;
    entry.live = false;
    release(index);
    entry.row = kNoRow;
}

void Ledger::assume_reservation(ReservationIndex index, Row row, bool waiting) {
    ReservationEntry& entry = reservations_[index];
    CHECK(!entry.live);
    entry.live = true;
    entry.waiting = waiting;
    entry.assumed = true;
    entry.row = row;
    entry.allocatable = entry.object->spec->requests;
    hold(index);
}

// Pods seen before their reservation find it now.
void Ledger::link_owners(ReservationIndex index) {
    const ReservationEntry& entry = reservations_[index];
    if (entry.row == kNoRow) return;
    const std::vector<PodIndex> pods = nodes_[entry.row].pods;
    for (const PodIndex pod : pods) {
        if (!pods_[pod].charges.empty()) continue;
        const auto& owners = entry.object->current_owners;
        const bool ours =
            std::any_of(owners.begin(), owners.end(), [&](const auto& o) { return pods_[pod].uid == o.uid; });
        if (!ours) continue;
        const Row row = pods_[pod].row;
        unplace(pod);
        pods_[pod].row = row;
        pods_[pod].charges = {{index, pods_[pod].spec->requests}};
        place(pod);
    }
}

void Ledger::put(std::shared_ptr<const model::Reservation> reservation) {
    ReservationIndex index = find_reservation(reservation->meta.uid);
    if (index == kNone) {
        index = static_cast<ReservationIndex>(reservations_.size());
        reservations_.emplace_back();
        reservation_by_uid_.emplace(reservation->meta.uid, index);
    }
    ReservationEntry& entry = reservations_[index];
    const bool seen_placed = reservation->live();
    entry.object = std::move(reservation);
    if (model::is_final(entry.object->phase)) return finish(index);
    if (!seen_placed) return;
    entry.assumed = false;
    entry.waiting = entry.object->phase == model::ReservationPhase::Waiting;
    if (entry.live) return;
    entry.live = true;
    entry.row = row_of(entry.object->node);
    entry.allocatable = entry.object->allocatable.empty() ? entry.object->spec->requests : entry.object->allocatable;
    entry.allocatable.set(model::kPods, 1);
    hold(index);
    link_owners(index);
}

void Ledger::remove_reservation(std::string_view uid) {
    const ReservationIndex index = find_reservation(uid);
    if (index == kNone) return;
    finish(index);
    for (const PodIndex owner : reservations_[index].owners) {
        std::erase_if(pods_[owner].charges, [&](const Charge& charge) { return charge.reservation == index; });
    }
    reservations_[index] = ReservationEntry();
    reservation_by_uid_.erase(uid);
}

std::vector<Charge> Ledger::charges_of(const model::Pod& pod) const {
    const auto links = model::read_links(pod.meta.annotations);
    if (!links || !links->allocated) return {};
    const ReservationIndex index = find_reservation(links->allocated->uid);
    if (index == kNone || !reservations_[index].live || reservations_[index].object->node != pod.node) return {};
    return {{index, pod.spec->requests}};
}

}  // namespace berth::ledger
