#include "sched/queue.h"

#include <gtest/gtest.h>

namespace berth::sched {
namespace {

using base::Instant;

constexpr int64_t kSecond = 1'000'000'000;
Instant at(double seconds) {
    return {static_cast<int64_t>(seconds * kSecond)};
}

TEST(Queue, HighestPriorityThenFirstCome) {
    Queue queue;
    queue.add({"low", 0, {}}, false, at(0));
    queue.add({"high", 10, {}}, false, at(0));
    queue.add({"low-2", 0, {}}, false, at(0));
    EXPECT_EQ(queue.pop(at(0)), "high");
    EXPECT_EQ(queue.pop(at(0)), "low");
    EXPECT_EQ(queue.pop(at(0)), "low-2");
    EXPECT_EQ(queue.pop(at(0)), std::nullopt);
}

TEST(Queue, OnlyAChangeThatCouldCureWakes) {
    Queue queue;
    queue.add({"p", 0, {}}, false, at(0));
    queue.pop(at(0));
    queue.unschedulable("p", {"NodeResourcesFit"}, at(0));
    queue.happened(Change::NodeLabels, at(5));
    EXPECT_EQ(queue.sizes().unschedulable, 1u);
    queue.happened(Change::PodRemoved, at(5));
    EXPECT_EQ(queue.pop(at(5)), "p");
}

TEST(Queue, BackoffDoublesToTenSeconds) {
    Queue queue;
    queue.add({"p", 0, {}}, false, at(0));
    double now = 0;
    for (const double wait : {1, 2, 4, 8, 10, 10}) {
        ASSERT_EQ(queue.pop(at(now)), "p");
        queue.failed("p", at(now));
        EXPECT_EQ(queue.pop(at(now + wait - 0.001)), std::nullopt) << wait;
        now += wait;
    }
}

TEST(Queue, AChangeWhileInFlightIsNotLost) {
    Queue queue;
    queue.add({"p", 0, {}}, false, at(0));
    queue.pop(at(0));
    queue.happened(Change::PodRemoved, at(0));
    queue.unschedulable("p", {"NodeResourcesFit"}, at(0));
    EXPECT_EQ(queue.sizes().backoff, 1u);
    EXPECT_EQ(queue.pop(at(1)), "p");
}

TEST(Queue, SleepersTryAgainAfterFiveMinutes) {
    Queue queue;
    queue.add({"p", 0, {}}, false, at(0));
    queue.pop(at(0));
    queue.unschedulable("p", {"NodeAffinity"}, at(0));
    ASSERT_TRUE(queue.next_wake());
    EXPECT_EQ(*queue.next_wake(), at(300));
    EXPECT_EQ(queue.pop(at(299)), std::nullopt);
    EXPECT_EQ(queue.pop(at(300)), "p");
}

TEST(Queue, GatedWaitOutside) {
    Queue queue;
    queue.add({"p", 0, {}}, true, at(0));
    EXPECT_EQ(queue.pop(at(0)), std::nullopt);
    EXPECT_EQ(queue.sizes().gated, 1u);
    queue.happened(Change::NodeAdded, at(0));
    EXPECT_EQ(queue.pop(at(0)), std::nullopt);
    queue.add({"p", 0, {}}, false, at(1));
    EXPECT_EQ(queue.pop(at(1)), "p");
    queue.remove("p");
    EXPECT_EQ(queue.sizes().gated, 0u);
}

}  // namespace
}  // namespace berth::sched
