#include "base/loop.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace berth::base {
namespace {

using std::chrono::seconds;

TEST(VirtualLoop, WithoutSeedKeepsTheOrder) {
    ManualClock clock;
    VirtualLoop loop(clock);
    std::string seen;
    loop.run_after(seconds(2), [&] { seen += "c"; });
    loop.run_after(seconds(1), [&] {
        seen += "b";
        loop.post([&] { seen += "B"; });
    });
    loop.post([&] { seen += "a"; });
    loop.run_at(clock.now(), [&] { seen += "A"; });
    EXPECT_TRUE(loop.run_until_idle());
    EXPECT_EQ(seen, "aAbBc");
    EXPECT_EQ(clock.now(), Instant{} + seconds(2));
    EXPECT_FALSE(loop.step());
}

TEST(VirtualLoop, SeedsExploreOrdersAndRepeat) {
    const auto order = [](uint64_t seed) {
        ManualClock clock;
        VirtualLoop loop(clock, seed);
        std::string seen;
        for (char c = 'a'; c < 'f'; ++c) loop.post([&seen, c] { seen.push_back(c); });
        loop.run_at(Instant{}, [&] { seen += "T"; });
        EXPECT_TRUE(loop.run_until_idle());
        return seen;
    };
    std::set<std::string> orders;
    for (uint64_t seed = 0; seed < 50; ++seed) {
        EXPECT_EQ(order(seed), order(seed)) << seed;
        orders.insert(order(seed));
    }
    EXPECT_GT(orders.size(), 20u);
}

TEST(VirtualLoop, CancelledTasksNeverRun) {
    ManualClock clock;
    VirtualLoop loop(clock);
    int runs = 0;
    const TimerId later = loop.run_after(seconds(5), [&] { ++runs; });
    EXPECT_TRUE(loop.cancel(later));
    EXPECT_FALSE(loop.cancel(later));
    EXPECT_FALSE(loop.cancel({}));
    TimerId due;
    loop.post([&] { EXPECT_TRUE(loop.cancel(due)); });
    due = loop.run_at(clock.now(), [&] { ++runs; });
    const TimerId once = loop.run_after(seconds(1), [&] { runs += 10; });
    loop.run_for(seconds(10));
    EXPECT_EQ(runs, 10);
    EXPECT_FALSE(loop.cancel(once));
}

TEST(VirtualLoop, RunUntilLeavesTheClockThere) {
    ManualClock clock;
    VirtualLoop loop(clock, 3);
    int ticks = 0;
    std::function<void()> tick = [&] {
        ++ticks;
        loop.run_after(seconds(1), tick);
    };
    loop.run_after(seconds(1), tick);
    loop.run_for(std::chrono::milliseconds(3500));
    EXPECT_EQ(ticks, 3);
    EXPECT_EQ(clock.now().nanos, 3'500'000'000);
    EXPECT_FALSE(loop.run_until_idle(100));
    EXPECT_EQ(ticks, 103);
    EXPECT_EQ(loop.pending(), 1u);
}

}  // namespace
}  // namespace berth::base
