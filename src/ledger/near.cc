// The part of the ledger that tells its terms who is where.
#include "ledger/ledger.h"
#include "ledger/spaces.h"

namespace berth::ledger {

void Ledger::count_near(PodIndex index) {
    PodEntry& pod = pods_[index];
    pod.group = terms_->add(pod.spec, pod.row, pod.terminating);
}

void Ledger::uncount_near(PodIndex index) {
    PodEntry& pod = pods_[index];
    if (pod.group == kNone) return;
    terms_->remove(pod.group, pod.row, pod.terminating);
    pod.group = kNone;
}

void Ledger::set_terminating(PodIndex index, bool terminating) {
    PodEntry& pod = pods_[index];
    if (pod.terminating == terminating) return;
    if (spaces_) spaces_->set_terminating(*pod.spec, terminating);
    const bool counted = pod.group != kNone;
    uncount_near(index);
    pod.terminating = terminating;
    if (counted) count_near(index);
}

// A reservation that holds room counts like a pod until it has owners; then they count instead.
void Ledger::show_near(ReservationIndex index) {
    const ReservationEntry& entry = reservations_[index];
    if (entry.holds_room() && entry.row != kNoRow && entry.owners.empty()) {
        terms_->show(index, entry.spec, entry.row);
    } else {
        terms_->hide(index);
    }
}

// Whoever is on the row moves with it when its labels or taints change.
void Ledger::set_near(Row row) {
    const NodeEntry& entry = nodes_[row];
    if (terms_->refresh(row, entry.node)) return;
    for (const PodIndex pod : entry.pods) uncount_near(pod);
    for (const ReservationIndex reservation : entry.reservations) terms_->hide(reservation);
    terms_->leave(row);
    terms_->enter(row, entry.node);
    for (const PodIndex pod : entry.pods) count_near(pod);
    for (const ReservationIndex reservation : entry.reservations) show_near(reservation);
}

}  // namespace berth::ledger
