#include "link/wake_throttle.h"

#include <gtest/gtest.h>

namespace berth::link {
namespace {

using namespace std::chrono_literals;

// Woken every `period` for `work`, for a second: how long it rested in all, and at most at once.
struct Rested {
    WakeThrottle::Span all{};
    WakeThrottle::Span longest{};
};

Rested second_of(WakeThrottle& rest, WakeThrottle::Span period, WakeThrottle::Span work) {
    Rested out;
    auto now = WakeThrottle::Instant{} + 1h;
    WakeThrottle::Span processor{};
    for (const auto end = now + 1s; now < end; now = now + period) {
        const auto span = rest.after(now + work, processor += work);
        out.all += span;
        out.longest = std::max(out.longest, span);
        now = now + span;
    }
    return out;
}

TEST(WakeThrottle, WhoWorksLittleDoesNotRest) {
    WakeThrottle rest;
    EXPECT_EQ(second_of(rest, 10ms, 300us).all, 0ms) << "3 % of the time";
}

TEST(WakeThrottle, ABurstOfAMillisecondIsFree) {
    WakeThrottle rest;
    const auto start = WakeThrottle::Instant{} + 1h;
    EXPECT_EQ(rest.after(start + 1ms, 1ms), 0ms);
    EXPECT_GT(rest.after(start + 2ms, 2ms), 10ms);
}

TEST(WakeThrottle, WhoWorksMuchRestsMostOfTheTime) {
    WakeThrottle rest;
    const auto rested = second_of(rest, 1ms, 500us);
    EXPECT_GT(rested.all, 850ms);
    EXPECT_LE(rested.longest, 20ms);
}

TEST(WakeThrottle, WhoWaitedForAProcessorDoesNotRest) {
    WakeThrottle rest;
    const auto start = WakeThrottle::Instant{} + 1h;
    EXPECT_EQ(rest.after(start, 100us), 0ms);
    EXPECT_EQ(rest.after(start + 50ms, 200us), 0ms) << "50 ms passed between being woken and here";
}

// No hour of work is paid for by a day of rests.
TEST(WakeThrottle, DebtIsForgiven) {
    WakeThrottle rest;
    const auto start = WakeThrottle::Instant{} + 1h;
    EXPECT_EQ(rest.after(start, 1h), 20ms);
    EXPECT_EQ(rest.after(start + 100ms, 1h + 100us), 0ms);
}

}  // namespace
}  // namespace berth::link
