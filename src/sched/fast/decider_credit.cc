// Pods that match reservations. As a rule the best place with credit is known, and what it supplies outranks every
// score. Otherwise the whole table is looked at, with the places that have credit laid over it.
#include <algorithm>

#include "sched/credit.h"
#include "sched/fast/decider.h"

namespace berth::sched::fast {
namespace {

constexpr size_t kMaxOwnerClasses = 8;  // of a class

}  // namespace

// What the pods of a class that differ in labels, owners or wishes have in common with this one.
OwnerClass& Decider::owner_class_of(Class& c, const model::Pod& pod, const View& ledger) {
    auto found = std::find_if(c.owner_classes.begin(), c.owner_classes.end(),
                              [&](const auto& owners) { return owners->speaks_for(pod); });
    if (found == c.owner_classes.end()) {
        if (c.owner_classes.size() >= kMaxOwnerClasses) {
            c.owner_classes.erase(
                std::min_element(c.owner_classes.begin(), c.owner_classes.end(),
                                 [](const auto& a, const auto& b) { return a->last_use < b->last_use; }));
        }
        c.owner_classes.push_back(std::make_unique<OwnerClass>(pod));
        found = c.owner_classes.end() - 1;
    }
    (*found)->last_use = uses_;
    (*found)->follow(ledger,
                     [&](const Ask& ask, const Credit& credit, Row row) { return judge(c, ledger, ask, credit, row); });
    return **found;
}

CreditPlace Decider::judge(const Class& c, const View& ledger, const Ask& ask, const Credit& credit, Row row) const {
    CreditPlace place;
    place.key = worth(c, ledger, row);
    if (place.key == 0) return place;
    const Drawing drawing = draw_on(credit, ask, ledger, row);
    place.open = admits(credit, drawing, ask, ledger, row);
    if (place.open) place.supplied = score_of(drawing.charges, ask, ledger);
    place.anomalous = place.supplied == 0 && place.open != (exact(c, ledger, row) != 0);
    return place;
}

ledger::Charges Decider::charges(const model::Pod& pod, const View& ledger, Row row) const {
    if (!credit_) return {};
    if (only_one_ != ledger::kNone) return charges_to({&only_one_, 1}, *pod.spec, ledger);
    return charges_on(ask_on(pod, ledger, row), ledger, row);
}

Row Decider::choose_with_owners(Class& c, const model::Pod& pod, const View& ledger) {
    ++counts_.matching;
    OwnerClass& owners = owner_class_of(c, pod, ledger);
    if (!owners.fault().empty()) return ledger::kNoRow;
    Ask ask;
    ask.spec = pod.spec.get();
    ask.pod = &pod;
    ask.looks = looks_;
    if (!named_by_reservation(pod, ledger) && !owners.claims(pod, ledger)) {
        if (owners.must_draw() && !owners.any_open()) return ledger::kNoRow;
        if (owners.empty()) return choose_without_credit(c, ask, ledger);
        const auto best_place = owners.best();
        const bool far = reaches_far(c, ask, ledger);
        if (!far && best_place && (c.node_class->groups.size() == 1 || owners.alone_best())) {
            ++counts_.drawn;
            only_one_ = owners.only_one(best_place->row);
            return best_place->row;
        }
        if (!far && !best_place && owners.anomalous() == 0 && !owners.must_draw())
            return choose_without_credit(c, ask, ledger);
    }
    const Ask whole = ask_for(pod, ledger, looks_);
    if (whole.plain()) return choose_without_credit(c, whole, ledger);
    ++counts_.far;
    return choose_with_credit(c, whole, ledger);
}

Row Decider::choose_with_credit(Class& c, const Ask& ask, const View& ledger) {
    std::vector<MaxTree>& trees = trees_of(c, ledger);
    if (!c.exact_keys) make_keys_exact(c, ledger, trees);
    const std::span<const Key> keys = keys_by_row(c, trees);
    if (keys.data() != keys_.data()) keys_.assign(keys.begin(), keys.end());
    open_.resize(ledger.rows());
    open_where(keys_.data(), open_.size(), open_.data());
    if (ask.wishes.affinity) std::fill(open_.begin(), open_.end(), 0);
    for (const auto& [row, credit] : ask.credits) {
        keys_[row] = worth(c, ledger, row);
        open_[row] = keys_[row] != 0 && admits(credit, draw_on(credit, ask, ledger, row), ask, ledger, row);
    }
    close_rows(ask, ledger);
    add_far_points(ask, ledger);
    add_scaled(c);
    if (const Row row = best_supplied(ask, ledger); row != ledger::kNoRow) return row;
    while (true) {
        const uint64_t best = best_total(keys_.data(), totals_.data(), open_.data(), open_.size());
        if (best == 0) return ledger::kNoRow;
        const Row row = columns_.row_of(static_cast<Key>(best & kMaxRank));
        const Key true_key = ask.credit(row) ? keys_[row] : exact(c, ledger, row);
        if (true_key == keys_[row]) return row;
        ++counts_.lowered;
        set(c, row, true_key, trees);
        keys_[row] = true_key;
    }
}

// Of the open rows the one where reservations supply most, if they supply anything anywhere.
Row Decider::best_supplied(const Ask& ask, const View& ledger) const {
    Row best = ledger::kNoRow;
    std::pair<int64_t, int64_t> highest{0, 0};
    for (const auto& [row, credit] : ask.credits) {
        if (!open_[row]) continue;
        const int64_t supplied = reservation_score(ask, ledger, row);
        const std::pair here{supplied, (totals_[row] << kRankBits) + keys_[row]};
        if (supplied == 0 || here <= highest) continue;
        highest = here;
        best = row;
    }
    return best;
}

}  // namespace berth::sched::fast
