#include "sched/queue.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace berth::sched {
namespace {

using base::Instant;

constexpr int64_t kSecond = 1'000'000'000;
Instant at(double seconds) {
    return {static_cast<int64_t>(seconds * kSecond)};
}

constexpr ChangeSet kRoom = ledger::changes({Change::NodeAdded, Change::PodRemoved});

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

// After a restart all come at once, by name.
TEST(Queue, OfEqualsTheOldestGoesFirst) {
    Queue queue;
    queue.add({"a-young", 0, {20}}, false, at(0));
    queue.add({"b-old", 0, {10}}, false, at(0));
    queue.add({"c-old", 0, {10}}, false, at(0));
    EXPECT_EQ(queue.pop(at(0)), "b-old");
    EXPECT_EQ(queue.pop(at(0)), "c-old");
    queue.failed("b-old", at(0));
    EXPECT_EQ(queue.pop(at(1)), "b-old") << "it is older still";
    EXPECT_EQ(queue.pop(at(1)), "a-young");
}

TEST(Queue, OnlyAChangeThatCouldCureWakes) {
    Queue queue;
    queue.add({"p", 0, {}}, false, at(0));
    queue.pop(at(0));
    queue.unschedulable("p", kRoom, at(0));
    queue.notify(Change::NodeLabels, at(5));
    EXPECT_EQ(queue.sizes().unschedulable, 1u);
    queue.notify(Change::PodRemoved, at(5));
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
    queue.notify(Change::PodRemoved, at(0));
    queue.unschedulable("p", kRoom, at(0));
    EXPECT_EQ(queue.sizes().backoff, 1u);
    EXPECT_EQ(queue.pop(at(1)), "p");
}

TEST(Queue, SleepersTryAgainAfterFiveMinutes) {
    Queue queue;
    queue.add({"p", 0, {}}, false, at(0));
    queue.pop(at(0));
    queue.unschedulable("p", kRoom, at(0));
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
    queue.notify(Change::NodeAdded, at(0));
    EXPECT_EQ(queue.pop(at(0)), std::nullopt);
    queue.add({"p", 0, {}}, false, at(1));
    EXPECT_EQ(queue.pop(at(1)), "p");
    queue.remove("p");
    EXPECT_EQ(queue.sizes().gated, 0u);
}

constexpr uint64_t kDearLooks = 100'000;    // 1 ms
constexpr uint64_t kLongLooks = 2'000'000;  // 20 ms

// Decides for one of them in vain.
std::optional<std::string> fail_next(Queue& queue, uint64_t looks, Instant now) {
    const auto key = queue.pop(now);
    if (!key) return key;
    queue.unschedulable(*key, kRoom, now);
    queue.worked(*key, looks, now);
    return key;
}

TEST(Queue, WhoFailedAtGreatCostLetsOthersGoFirst) {
    Queue queue;
    for (const auto* name : {"d1", "d2", "d3"}) {
        queue.add({name, 5, {}}, false, at(0));
        EXPECT_EQ(fail_next(queue, kDearLooks, at(0)), name);
    }
    queue.notify(Change::PodRemoved, at(10));
    for (const auto* name : {"p1", "p2"}) queue.add({name, 0, {}}, false, at(10));
    EXPECT_EQ(fail_next(queue, kDearLooks, at(10)), "d1");  // their share is not used up
    EXPECT_EQ(queue.pop(at(10)), "p1");
    EXPECT_EQ(queue.pop(at(10)), "p2");
    EXPECT_EQ(fail_next(queue, kDearLooks, at(10)), "d2");  // nobody else waits
    queue.add({"p3", 0, {}}, false, at(10));
    EXPECT_EQ(queue.pop(at(10)), "p3");
    EXPECT_EQ(queue.pop(at(10)), "d3");
}

TEST(Queue, WhoFailedAtGreatCostSitsOutItsBackoff) {
    Queue queue;
    for (const auto* name : {"dear", "plain"}) queue.add({name, 0, {}}, false, at(0));
    fail_next(queue, kDearLooks, at(0));
    fail_next(queue, 10, at(0));
    for (const auto* name : {"dear", "plain"}) queue.add({name, 0, {}}, false, at(0.5));  // both changed
    EXPECT_EQ(queue.pop(at(0.5)), "plain");
    EXPECT_EQ(queue.pop(at(0.5)), std::nullopt);
    EXPECT_EQ(queue.pop(at(1)), "dear");
}

TEST(Queue, LongAttemptsAreFarApart) {
    Queue queue;
    for (const auto* name : {"a", "b"}) {
        queue.add({name, 0, {}}, false, at(0));
        fail_next(queue, kLongLooks, at(0));
    }
    queue.notify(Change::PodRemoved, at(60));
    EXPECT_EQ(fail_next(queue, kLongLooks, at(60)), "a");
    EXPECT_EQ(queue.pop(at(63)), std::nullopt);
    EXPECT_EQ(*queue.next_wake(), at(63.98));
    queue.add({"plain", 0, {}}, false, at(63));
    EXPECT_EQ(queue.pop(at(63)), "plain");
    EXPECT_EQ(queue.pop(at(63.98)), "b");
}

TEST(Queue, FirstAttemptsThatMayBeLongAreFarApart) {
    Queue queue;
    for (const auto* name : {"a", "b"}) queue.add({name, 0, {}, kLongLooks}, false, at(0));
    EXPECT_EQ(fail_next(queue, kLongLooks, at(0)), "a");
    EXPECT_EQ(queue.pop(at(3)), std::nullopt);
    EXPECT_EQ(queue.pop(at(3.98)), "b");
}

// A minute of virtual time in which plain pods come every 10 ms and are decided in 1 ms, and poison changes 20 times a
// second. How long 99 of 100 plain pods waited.
double slowest_of_most(int poison, uint64_t looks) {
    constexpr double kPlain = 0.001;
    Queue queue;
    for (int i = 0; i < poison; ++i) queue.add({"poison-" + std::to_string(i), 1, {}, looks}, false, at(0));
    std::vector<double> arrived, waited;
    double now = 0, changed = 0, next_plain = 0;
    while (now < 60) {
        for (; next_plain <= now; next_plain += 0.01) {
            queue.add({"plain-" + std::to_string(arrived.size()), 0, {}}, false, at(next_plain));
            arrived.push_back(next_plain);
        }
        for (; changed <= now; changed += 0.05) {
            for (int i = 0; i < poison; ++i) queue.add({"poison-" + std::to_string(i), 1, {}, looks}, false, at(now));
        }
        const auto key = queue.pop(at(now));
        if (!key) {
            now = std::min(next_plain, changed);
        } else if (key->starts_with("plain")) {
            now += kPlain;
            waited.push_back(now - arrived[std::stoul(key->substr(6))]);
            queue.worked(*key, 0, at(now));
            queue.remove(*key);
        } else {
            now += static_cast<double>(looks) * 1e-8;
            queue.unschedulable(*key, kRoom, at(now));
            queue.worked(*key, looks, at(now));
        }
    }
    std::sort(waited.begin(), waited.end());
    return waited[waited.size() * 99 / 100];
}

TEST(Queue, PoisonDoesNotStarveOthers) {
    const double alone = slowest_of_most(0, 0);
    for (const uint64_t looks : {uint64_t{900}, uint64_t{60'000}, uint64_t{100'000}, kLongLooks}) {
        EXPECT_LE(slowest_of_most(100, looks), 2 * alone) << looks;
    }
}

}  // namespace
}  // namespace berth::sched
