// Asks that concern plugins with a longer reach: those plugins' own code over the rows that are left, and the class's
// keys for everything else.
#include <algorithm>
#include <limits>

#include "sched/fast/decider.h"

namespace berth::sched::fast {

Row Decider::choose_far(const Class& c, const Ask& ask, const Ledger& ledger, std::vector<MaxTree>& trees) {
    Strikes strikes(open_rows(c, ledger, trees));
    for (const auto* filter : terms_.far_filters) {
        if (filter->concerns(ask, ledger)) filter->strike(ask, ledger, strikes);
    }
    const std::vector<Row> feasible = strikes.open_rows();
    std::vector<int64_t> extra(feasible.size());
    std::vector<int64_t> points(feasible.size());
    for (const auto& [scorer, weight] : terms_.far_scorers) {
        if (!scorer->concerns(ask, ledger)) continue;
        scorer->score(ask, ledger, feasible, points);
        for (size_t i = 0; i < extra.size(); ++i) extra[i] += weight * points[i];
    }
    add_scaled(c, feasible, extra);
    return best_with(c, ledger, trees, feasible, extra);
}

// The rows that the near plugins leave: exactly, since the others scale over them.
std::vector<uint8_t> Decider::open_rows(const Class& c, const Ledger& ledger, const std::vector<MaxTree>& trees) const {
    std::vector<uint8_t> open(ledger.rows());
    for (Row row = 0; row < open.size(); ++row) open[row] = c.statics->base[row] != 0 && key_of(c, row, trees) != 0;
    for (const auto& want : c.wants) {
        const auto* column = ledger.column(want.id);
        if (!column) {
            std::fill(open.begin(), open.end(), 0);
            break;
        }
        const int64_t* allocatable = column->allocatable.data();
        const int64_t* used = column->used.data();
        for (Row row = 0; row < open.size(); ++row) open[row] &= want.amount <= allocatable[row] - used[row];
    }
    if (!terms_.ports || c.spec->ports.empty()) return open;
    for (Row row = 0; row < open.size(); ++row) {
        if (open[row] && ledger.at(row).ports.clashes(c.spec->ports)) open[row] = 0;
    }
    return open;
}

Key Decider::key_of(const Class& c, Row row, const std::vector<MaxTree>& trees) const {
    if (c.statics->group.empty()) return trees[0].at(row);
    return trees[c.statics->group[row]].at(c.statics->place[row]);
}

void Decider::add_scaled(const Class& c, std::span<const Row> feasible, std::span<int64_t> extra) const {
    if (c.statics->group.empty()) return;
    for (size_t term = 0; term < terms_.scaled.size(); ++term) {
        const auto raw = [&](Row row) { return c.statics->groups[c.statics->group[row]][term]; };
        int64_t highest = std::numeric_limits<int64_t>::min();
        for (const Row row : feasible) highest = std::max(highest, raw(row));
        const auto& [scorer, weight] = terms_.scaled[term];
        const bool reversed = scorer->scaling() == Scaling::ByMaxReversed;
        for (size_t i = 0; i < feasible.size(); ++i) {
            extra[i] += weight * scaled(raw(feasible[i]), highest, reversed);
        }
    }
}

// The highest total; a key that was too high is lowered, and the search repeated.
Row Decider::best_with(const Class& c, const Ledger& ledger, std::vector<MaxTree>& trees, std::span<const Row> feasible,
                       std::span<const int64_t> extra) {
    while (!feasible.empty()) {
        size_t best = 0;
        std::pair<int64_t, uint32_t> highest{std::numeric_limits<int64_t>::min(), 0};
        for (size_t i = 0; i < feasible.size(); ++i) {
            const Key key = key_of(c, feasible[i], trees);
            const std::pair<int64_t, uint32_t> total{extra[i] + (key >> kRankBits), key & kMaxRank};
            if (total <= highest) continue;
            highest = total;
            best = i;
        }
        const Row row = feasible[best];
        const Key exact_key = exact(c, ledger, row);
        if (exact_key == key_of(c, row, trees)) return row;
        ++counts_.lowered;
        set(c, row, exact_key, trees);
    }
    return ledger::kNoRow;
}

}  // namespace berth::sched::fast
