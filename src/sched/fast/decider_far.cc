// Asks that concern plugins with a longer reach: what those say about domains and rows, over the whole table at once,
// and the class's keys for everything else.
#include <algorithm>
#include <limits>

#include "sched/fast/decider.h"

namespace berth::sched::fast {

Row Decider::choose_far(Class& c, const Ask& ask, const View& ledger, std::vector<MaxTree>& trees) {
    if (!c.exact_keys) make_keys_exact(c, ledger, trees);
    open_.resize(ledger.rows());
    open_where(keys_by_row(c, trees).data(), open_.size(), open_.data());
    const auto none_open = [&] { return std::find(open_.begin(), open_.end(), 1) == open_.end(); };
    if (none_open()) return ledger::kNoRow;
    close_rows(ask, ledger);
    if (none_open()) return ledger::kNoRow;
    add_far_points(ask, ledger);
    add_scaled(c);
    return best_with(c, ledger, trees);
}

// A fill may give a key to a row that misses fitting by a hair. The others scale over the open rows, so here it
// matters.
void Decider::make_keys_exact(Class& c, const View& ledger, std::vector<MaxTree>& trees) {
    const std::span<const Key> keys = keys_by_row(c, trees);
    for (Row row = 0; row < ledger.rows(); ++row) {
        if (keys[row] != 0 && exact(c, ledger, row) == 0) set(c, row, 0, trees);
    }
    c.exact_keys = true;
}

// Good until a key is set.
std::span<const Key> Decider::keys_by_row(const Class& c, const std::vector<MaxTree>& trees) {
    const NodeClass& node_class = *c.node_class;
    if (node_class.group.empty()) return {trees[0].keys(), node_class.base.size()};
    keys_.assign(node_class.base.size(), 0);
    for (Row row = 0; row < node_class.group.size(); ++row) {
        if (node_class.base[row] != 0) keys_[row] = trees[node_class.group[row]].at(node_class.place[row]);
    }
    return keys_;
}

void Decider::close_rows(const Ask& ask, const View& ledger) {
    for (const auto* filter : terms_.far_filters) close_by(*filter, ask, ledger);
    if (cores_are_far(ask, ledger)) close_by(*terms_.cores, ask, ledger);
    if (!ask.reservation) return;
    for (const auto* filter : terms_.credit_filters) close_by(*filter, ask, ledger);
}

void Decider::close_by(const Filter& filter, const Ask& ask, const View& ledger) {
    if (!filter.concerns(ask, ledger)) return;
    if (const auto keys = filter.closed_domains(ask, ledger)) {
        for (const auto& key : *keys) {
            // Rows beyond a key's column are empty.
            close_domains(key.domains.data(), key.closed.data(), static_cast<uint32_t>(key.closed.size() - 1),
                          std::min(open_.size(), key.domains.size()), open_.data());
        }
        return;
    }
    Strikes strikes(open_);
    filter.strike(ask, ledger, strikes);
    for (Row row = 0; row < open_.size(); ++row) open_[row] = strikes.open(row);
}

void Decider::add_far_points(const Ask& ask, const View& ledger) {
    totals_.assign(open_.size(), 0);
    points_.resize(open_.size());
    for (const auto& [scorer, weight] : terms_.far_scorers) {
        if (!scorer->concerns(ask, ledger)) continue;
        scorer->score_open(ask, ledger, open_, points_);
        add_weighted(points_.data(), weight, totals_.size(), totals_.data());
    }
}

// What the scaled scorers give is the same for all rows of a group, and depends on which groups have an open row.
void Decider::add_scaled(const Class& c) {
    const NodeClass& node_class = *c.node_class;
    if (node_class.group.empty()) return;
    std::vector<uint8_t> present(node_class.groups.size());
    for (Row row = 0; row < open_.size(); ++row) {
        if (open_[row]) present[node_class.group[row]] = 1;
    }
    std::vector<int64_t> more(node_class.groups.size());
    for (size_t term = 0; term < terms_.scaled.size(); ++term) {
        int64_t highest = std::numeric_limits<int64_t>::min();
        for (size_t group = 0; group < present.size(); ++group) {
            if (present[group]) highest = std::max(highest, node_class.groups[group][term]);
        }
        const auto& [scorer, weight] = terms_.scaled[term];
        const bool reversed = scorer->scaling() == Scaling::ByMaxReversed;
        for (size_t group = 0; group < present.size(); ++group) {
            if (present[group]) more[group] += weight * scaled(node_class.groups[group][term], highest, reversed);
        }
    }
    for (Row row = 0; row < open_.size(); ++row) {
        if (open_[row]) totals_[row] += more[node_class.group[row]];
    }
}

// The highest total; a key that was too high is lowered, and the search repeated.
Row Decider::best_with(Class& c, const View& ledger, std::vector<MaxTree>& trees) {
    while (true) {
        const std::span<const Key> keys = keys_by_row(c, trees);
        const uint64_t best = best_total(keys.data(), totals_.data(), open_.data(), open_.size());
        if (best == 0) return ledger::kNoRow;
        const Row row = columns_.row_of(static_cast<Key>(best & kMaxRank));
        if (c.is_settled(row)) return row;
        const Key exact_key = exact(c, ledger, row);
        const bool right = exact_key == keys[row];
        set(c, row, exact_key, trees);
        if (right) return row;
        ++counts_.lowered;
    }
}

}  // namespace berth::sched::fast
