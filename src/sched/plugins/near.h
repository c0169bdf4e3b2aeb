#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "sched/ask.h"

namespace berth::sched::plugins {

// The reservations that the ask matches: to it they are not there, on any node.
inline std::vector<ReservationIndex> invisible(const Ask& ask) {
    std::vector<ReservationIndex> all;
    for (const auto& [row, credit] : ask.credits) all.insert(all.end(), credit.matched.begin(), credit.matched.end());
    return all;
}

// Replaces each value by f(value), when all lie in [low, high]: a division for each value there can be, not each row.
template <class F>
void map_values(std::span<int64_t> values, int64_t low, int64_t high, F f) {
    if (high - low >= static_cast<int64_t>(values.size())) {
        std::transform(values.begin(), values.end(), values.begin(), f);
        return;
    }
    std::vector<int64_t> table(static_cast<size_t>(high - low) + 1);
    for (size_t i = 0; i < table.size(); ++i) table[i] = f(low + static_cast<int64_t>(i));
    for (auto& value : values) value = table[static_cast<size_t>(value - low)];
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
