#include "sched/fast/owner_class.h"

#include <algorithm>

#include "sched/credit.h"
#include "sched/match.h"

namespace berth::sched::fast {
namespace {

bool has_name(const model::ReservationOwner& owner) {
    return owner.object && (!owner.object->name.empty() || !owner.object->uid.empty());
}

bool same_wishes(const model::Labels& a, const model::Labels& b) {
    if (a.empty() && b.empty()) return true;
    for (const std::string_view key : {model::kReservationAffinity, model::kExactMatch}) {
        if (a.has(key) != b.has(key) || a.get(key) != b.get(key)) return false;
    }
    return true;
}

}  // namespace

OwnerClass::OwnerClass(const model::Pod& pod) : pod_(pod) {
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

bool OwnerClass::speaks_for(const model::Pod& pod) const {
    return pod.meta.ns == pod_.meta.ns && pod.meta.labels == pod_.meta.labels && pod.meta.owners == pod_.meta.owners &&
           same_wishes(pod.meta.annotations, pod_.meta.annotations);
}

void OwnerClass::follow(const View& ledger, Judge judge) {
    const auto& changes = ledger.changes();
    // Judging one row anew costs about as much as finding it.
    const bool few = changes.sequence() - sequence_ <= 64 + known_rows_;
    if (epoch_ != changes.static_epoch() || !changes.remembers(sequence_) || !few) {
        start_over(ledger, judge);
    } else {
        changes.replay(sequence_, [&](Row row) { look_at(ledger, row, judge); });
    }
    tidy();
    epoch_ = changes.static_epoch();
    sequence_ = changes.sequence();
}

void OwnerClass::start_over(const View& ledger, Judge judge) {
    known_.clear();
    ranked_.clear();
    claimed_.clear();
    supplying_ = known_rows_ = credits_ = open_ = anomalous_ = 0;
    if (!ask_.fault.empty()) return;
    absl::flat_hash_set<Row> rows;
    ledger.owner_index().candidates(model::identity_of(pod_.meta), [&](ledger::ReservationIndex index) {
        rows.insert(ledger.reservation(index).row);
    });
    for (const Row row : rows) look_at(ledger, row, judge);
}

void OwnerClass::look_at(const View& ledger, Row row, Judge judge) {
    const auto& node = ledger.at(row);
    if (node.reservations.empty() && known_rows_ == 0 && claimed_.empty()) return;
    Known* known = known_.find(row);
    if (known) leave(*known);
    if (!known || known->reservations_epoch != node.reservations_epoch) known = meet(ledger, row, known);
    if (!known) return;
    if (known->claimed) note_claims(ledger, row);
    Few matched;
    for (const ReservationIndex index : known->suiting) {
        if (ledger.reservation(index).open()) matched.push_back(index);
    }
    known->credit = !matched.empty();
    if (!known->credit) return;
    const CreditPlace& place = known->place = judge(ask_, credit_of(std::move(matched), ledger), row);
    ++credits_;
    open_ += place.open;
    anomalous_ += place.anomalous;
    supplying_ += place.supplied > 0;
    if (place.supplied > 0) put({place.supplied, place.key, row});
}

// Finds out which of the row's reservations are for these pods. nullptr: none, and nothing is remembered.
OwnerClass::Known* OwnerClass::meet(const View& ledger, Row row, Known* known) {
    const auto& node = ledger.at(row);
    Few suiting;
    for (const ReservationIndex index : node.reservations) {
        if (suits(ledger, index, pod_, ask_.wishes)) suiting.push_back(index);
    }
    note_claims(ledger, row);
    if (!known && suiting.empty()) return nullptr;
    if (!known) known = &known_[row];
    known_rows_ -= !known->suiting.empty();
    known_rows_ += !suiting.empty();
    known->reservations_epoch = node.reservations_epoch;
    known->suiting = std::move(suiting);
    known->claimed = std::any_of(node.reservations.begin(), node.reservations.end(), [&](const auto index) {
        return model::is_claimed(*ledger.reservation(index).object);
    });
    return known;
}

void OwnerClass::note_claims(const View& ledger, Row row) {
    const auto& all = ledger.at(row).reservations;
    const bool claimed = std::any_of(all.begin(), all.end(), [&](const auto index) {
        const auto& entry = ledger.reservation(index);
        return entry.open() && model::is_claimed(*entry.object);
    });
    if (claimed) {
        claimed_.insert(row);
    } else if (!claimed_.empty()) {
        claimed_.erase(row);
    }
}

void OwnerClass::leave(const Known& known) {
    if (!known.credit) return;
    --credits_;
    open_ -= known.place.open;
    anomalous_ -= known.place.anomalous;
    supplying_ -= known.place.supplied > 0;
}

// Whether it is what the place is worth now.
bool OwnerClass::stands(const Rank& standing) const {
    const Known& known = *known_.find(standing.row);
    return known.credit && known.place.supplied == standing.supplied && known.place.key == standing.key;
}

void OwnerClass::put(const Rank& standing) {
    ranked_.push_back(standing);
    std::push_heap(ranked_.begin(), ranked_.end());
}

void OwnerClass::take_best() {
    std::pop_heap(ranked_.begin(), ranked_.end());
    ranked_.pop_back();
}

void OwnerClass::tidy() {
    if (ranked_.size() > 64 + 2 * supplying_) {
        std::erase_if(ranked_, [&](const Rank& standing) { return !stands(standing); });
        std::sort(ranked_.rbegin(), ranked_.rend());
        ranked_.erase(std::unique(ranked_.begin(), ranked_.end()), ranked_.end());
    }
    while (!ranked_.empty() && !stands(ranked_.front())) take_best();
}

ReservationIndex OwnerClass::only_one(Row row) const {
    const Few& suiting = known_.find(row)->suiting;
    return suiting.size() == 1 ? suiting.front() : ledger::kNone;
}

bool OwnerClass::alone_best() {
    const Rank best = ranked_.front();
    take_best();
    while (!ranked_.empty() && (ranked_.front().row == best.row || !stands(ranked_.front()))) take_best();
    const bool alone = ranked_.empty() || ranked_.front().supplied < best.supplied;
    put(best);
    return alone;
}

bool OwnerClass::claims(const model::Pod& pod, const View& ledger) const {
    return std::any_of(claimed_.begin(), claimed_.end(), [&](const Row row) {
        const auto& all = ledger.at(row).reservations;
        return std::any_of(all.begin(), all.end(), [&](const auto index) {
            return model::claimed_by(*ledger.reservation(index).object, pod.meta.uid);
        });
    });
}

bool may_match(const model::Pod& pod, const View& ledger) {
    return ledger.owner_index().any(model::identity_of(pod.meta));
}

bool named_by_reservation(const model::Pod& pod, const View& ledger) {
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
