#include "sched/fast/side.h"

#include <algorithm>

#include "sched/credit.h"

namespace berth::sched::fast {
namespace {

bool has_name(const model::ReservationOwner& owner) {
    return owner.object && (!owner.object->name.empty() || !owner.object->uid.empty());
}

bool same_text(const model::Labels& a, const model::Labels& b, std::string_view key) {
    const std::string* one = a.find(key);
    const std::string* other = b.find(key);
    return one && other ? *one == *other : one == other;
}

bool is_claimed(const ledger::ReservationEntry& entry) {
    return entry.open && entry.object->allocate_once && !entry.object->current_owners.empty();
}

}  // namespace

Side::Side(const model::Pod& pod) : pod_(pod) {
    pod_.meta.name.clear();
    pod_.meta.uid.clear();
    ask_.spec = pod_.spec.get();
    ask_.pod = &pod_;
    auto wishes = model::read_wishes(pod_.meta.annotations);
    if (wishes) {
        ask_.wishes = std::move(*wishes);
    } else {
        ask_.fault = wishes.error().message;
    }
}

bool Side::speaks_for(const model::Pod& pod) const {
    return pod.meta.ns == pod_.meta.ns && pod.meta.labels == pod_.meta.labels && pod.meta.owners == pod_.meta.owners &&
           same_text(pod.meta.annotations, pod_.meta.annotations, model::kReservationAffinity) &&
           same_text(pod.meta.annotations, pod_.meta.annotations, model::kExactMatch);
}

void Side::follow(const Ledger& ledger, Judge judge) {
    const auto& changes = ledger.changes();
    // Judging one row anew costs about as much as finding it.
    const bool few = changes.sequence() - sequence_ <= 64 + places_.size();
    if (epoch_ != changes.static_epoch() || !changes.remembers(sequence_) || !few) {
        start_over(ledger, judge);
    } else {
        changes.replay(sequence_, [&](Row row) { look_at(ledger, row, judge); });
    }
    epoch_ = changes.static_epoch();
    sequence_ = changes.sequence();
}

void Side::start_over(const Ledger& ledger, Judge judge) {
    places_.clear();
    open_.clear();
    claimed_.clear();
    odd_ = 0;
    if (!ask_.fault.empty()) return;
    absl::flat_hash_set<Row> rows;
    ledger.owner_index().candidates(
        model::identity_of(pod_), [&](ledger::ReservationIndex index) { rows.insert(ledger.reservation(index).row); });
    for (const Row row : rows) look_at(ledger, row, judge);
}

void Side::forget(Row row) {
    const auto found = places_.find(row);
    if (found == places_.end()) return;
    if (found->second.open) open_.erase(found->second);
    odd_ -= found->second.odd;
    places_.erase(found);
}

void Side::look_at(const Ledger& ledger, Row row, Judge judge) {
    const auto& reservations = ledger.at(row).reservations;
    if (reservations.empty() && places_.empty() && claimed_.empty()) return;
    forget(row);
    const bool claimed = std::any_of(reservations.begin(), reservations.end(),
                                     [&](const auto index) { return is_claimed(ledger.reservation(index)); });
    if (claimed) {
        claimed_.insert(row);
    } else if (!claimed_.empty()) {
        claimed_.erase(row);
    }
    if (reservations.empty() || !look_only_at(ask_, ledger, row)) return;
    const CreditPlace place = judge(ask_, row);
    places_.emplace(row, place);
    if (place.open) open_.insert(place);
    odd_ += place.odd;
}

const CreditPlace* Side::best() const {
    if (open_.empty()) return nullptr;
    const CreditPlace& last = *open_.rbegin();
    return last.supplied > 0 ? &last : nullptr;
}

bool Side::alone_best() const {
    const auto last = open_.rbegin();
    const auto next = std::next(last);
    return next == open_.rend() || next->supplied < last->supplied;
}

bool Side::claims(const model::Pod& pod, const Ledger& ledger) const {
    return std::any_of(claimed_.begin(), claimed_.end(), [&](const Row row) {
        const auto& all = ledger.at(row).reservations;
        return std::any_of(all.begin(), all.end(), [&](const auto index) {
            const auto& owners = ledger.reservation(index).object->current_owners;
            return std::any_of(owners.begin(), owners.end(), [&](const auto& o) { return o.uid == pod.meta.uid; });
        });
    });
}

bool may_match(const model::Pod& pod, const Ledger& ledger) {
    return ledger.owner_index().any(model::identity_of(pod));
}

bool named_by_reservation(const model::Pod& pod, const Ledger& ledger) {
    static const model::Labels kNoLabels;
    static const std::vector<model::OwnerRef> kNoOwners;
    if (!ledger.owner_index().names_pods()) return false;
    bool named = false;
    ledger.owner_index().candidates({pod.meta.ns, pod.meta.name, pod.meta.uid, &kNoLabels, &kNoOwners},
                                    [&](ledger::ReservationIndex index) {
                                        const auto& owners = ledger.reservation(index).object->owners;
                                        named = named || std::any_of(owners.begin(), owners.end(), has_name);
                                    });
    return named;
}

}  // namespace berth::sched::fast
