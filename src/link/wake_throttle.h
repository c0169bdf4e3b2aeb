#pragma once

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace berth::link {

// How long a thread that was woken and worked rests before it waits again. One that works little, less than a
// twenty-fifth of the time, does not: its messages come one by one and go on at once. One that works more rests, so
// that many messages share a wake-up, which costs more than any of them. Work is processor time: whoever waited for a
// processor on a busy machine has worked no more for that, and makes nobody wait again.
class WakeThrottle {
public:
    using Instant = base::Instant;
    using Span = base::Duration;

    // It has done its work `now`, and has used so much processor time since it began.
    Span after(Instant now, Span processor) {
        const Span worked = processor - std::exchange(processor_, processor);
        debt_ = std::max(debt_ - (now - seen_) / kIdlePerWork, Span::zero()) + worked;
        debt_ = std::min(debt_, kAllowed + kLongest / kIdlePerWork);
        seen_ = now;
        return std::max(kIdlePerWork * (debt_ - kAllowed), Span::zero());
    }

private:
    static constexpr int kIdlePerWork = 25;
    static constexpr Span kAllowed = std::chrono::milliseconds(1);
    static constexpr Span kLongest = std::chrono::milliseconds(20);

    Span debt_{};  // work done that idle time has not paid for
    Span processor_{};
    Instant seen_{};
};

}  // namespace berth::link
