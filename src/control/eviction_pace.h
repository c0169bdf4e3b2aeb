#pragma once

#include <algorithm>
#include <optional>

#include "base/clock.h"

namespace berth::control {

// How often pods are evicted at most.
struct EvictionPace {
    int64_t milli_per_second = 10'000;
    int64_t burst = 1;
};

// Who may evict now: a bucket of `burst` tokens that fills again at the pace. E.g. 10 a second and a burst of 2: two at
// once, the next after 100 ms.
class EvictionTokens {
public:
    explicit EvictionTokens(const EvictionPace& pace)
        : each_(std::max<int64_t>(1, 1'000'000'000'000 / pace.milli_per_second)), ahead_(each_ * (pace.burst - 1)) {}

    // nullopt: one was taken. Else when there will be one.
    std::optional<base::Instant> take(base::Instant now) {
        if (next_ && now + ahead_ < *next_) return *next_ + -ahead_;
        next_ = std::max(now, next_.value_or(now)) + each_;
        return std::nullopt;
    }

private:
    base::Duration each_, ahead_;
    std::optional<base::Instant> next_;  // when a bucket of one token were full again
};

}  // namespace berth::control
