#pragma once

#include <optional>
#include <vector>

#include "sched/ask.h"

namespace berth::sched::plugins {

// The reservations that the ask matches: to it they are not there, on any node.
inline std::vector<ReservationIndex> invisible(const Ask& ask) {
    std::vector<ReservationIndex> all;
    for (const auto& [row, credit] : ask.credits) all.insert(all.end(), credit.matched.begin(), credit.matched.end());
    return all;
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
