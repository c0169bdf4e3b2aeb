#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "sched/ask.h"
#include "sched/plugin.h"
#include "sched/plugins/near_loops.h"

namespace berth::sched::plugins {

// The reservations that the ask matches: to it they are not there, on any node.
inline std::vector<ReservationIndex> invisible(const Ask& ask) {
    std::vector<ReservationIndex> all;
    for (const auto& [row, credit] : ask.credits) all.insert(all.end(), credit.matched.begin(), credit.matched.end());
    return all;
}

// For an ask that needs a label that no node has.
inline ClosedDomains closed_everywhere(const ledger::Terms& terms) {
    return {terms.nobody(), {1}};
}

// The rows that are scored, with the keys' columns beside them: a whole table of which some rows are open, or a list of
// rows, all of them open.
class ScoredRows {
public:
    explicit ScoredRows(std::span<const uint8_t> open) : open_(open) {}
    explicit ScoredRows(std::span<const Row> list) : list_(list), all_(list.size(), 1), open_(all_) {}
    ScoredRows(const ScoredRows&) = delete;
    ScoredRows& operator=(const ScoredRows&) = delete;

    std::span<const uint8_t> open() const { return open_; }
    // May end early: rows beyond it are empty. Good as long as this is.
    std::span<const Domain> column(const ledger::TopologyKey& key) {
        if (all_.empty()) return key.rows().first(std::min(open_.size(), key.rows().size()));
        auto& column = columns_.emplace_back();
        for (const Row row : list_) column.push_back(key.at(row));
        return column;
    }

private:
    std::span<const Row> list_;
    std::vector<uint8_t> all_;
    std::span<const uint8_t> open_;
    std::deque<std::vector<Domain>> columns_;
};

// Does the same to both kinds of rows.
class RowsScorer : public Scorer {
public:
    void score(const Ask& ask, const View& ledger, std::span<const Row> feasible,
               std::span<int64_t> points) const final {
        ScoredRows rows(feasible);
        score_rows(ask, ledger, rows, points);
    }
    void score_open(const Ask& ask, const View& ledger, std::span<const uint8_t> open,
                    std::span<int64_t> points) const final {
        ScoredRows rows(open);
        score_rows(ask, ledger, rows, points);
    }

private:
    virtual void score_rows(const Ask& ask, const View& ledger, ScoredRows& rows, std::span<int64_t> points) const = 0;
};

// Replaces each marked value, which lies in the range, by f(value), and the others by 0: a division for each value
// there can be, not each row.
template <class F>
void map_marked(std::span<const uint8_t> marks, Range range, std::span<int64_t> values, F f) {
    if (range.empty()) return std::fill(values.begin(), values.end(), 0);
    if (range.high - range.low >= static_cast<int64_t>(values.size())) {
        for (size_t i = 0; i < values.size(); ++i) values[i] = marks[i] ? f(values[i]) : 0;
        return;
    }
    std::vector<int64_t> table(static_cast<size_t>(range.high - range.low) + 1);
    for (size_t i = 0; i < table.size(); ++i) table[i] = f(range.low + static_cast<int64_t>(i));
    look_up(table.data(), range.low, marks.data(), values.size(), values.data());
}

// A tally as the ask sees it: the shared one, or its own copy when something is invisible to it.
class SeenTally {
public:
    SeenTally(const ledger::Terms& terms, const ledger::Tally& shared, const std::vector<ReservationIndex>& invisible)
        : shared_(&shared) {
        if (!invisible.empty()) own_ = terms.without(shared, invisible);
    }
    const ledger::Tally& operator*() const { return own_ ? *own_ : *shared_; }
    const ledger::Tally* operator->() const { return &**this; }

private:
    const ledger::Tally* shared_;
    std::optional<ledger::Tally> own_;
};

}  // namespace berth::sched::plugins
