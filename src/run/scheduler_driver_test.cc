#include "run/scheduler_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run/scripted_server.h"

namespace berth::run {
namespace {

constexpr size_t kMost = 4096;  // under way at once

std::string pod(size_t i) {
    return fmt::format(
        R"({{"metadata":{{"name":"p{0}","namespace":"default","uid":"p{0}-uid"}},"spec":{{"schedulerName":"berth",)"
        R"("containers":[{{"name":"a","resources":{{"requests":{{"cpu":"1m"}}}}}}]}}}})",
        i);
}

TEST(SchedulerDriver, WaitsForAnswersWhileTooMuchIsUnderWay) {
    const auto script = std::make_shared<Script>();
    script->has("nodes", R"({"metadata":{"name":"n1","uid":"n1-uid"},)"
                         R"("status":{"allocatable":{"cpu":"64","memory":"8Gi","pods":"9000"}}})");
    for (size_t i = 0; i < kMost + 100; ++i) script->has("pods", pod(i));
    base::Metrics metrics;
    base::ManualClock clock;
    SchedulerDriver driver({script->server(), [] {}, metrics, clock}, {{"berth", sched::default_profile()}}, {});

    ASSERT_TRUE(turn_until(driver, clock, [&] { return script->requests() == kMost; }));
    // A turn in which nothing comes ends with a wait of a second, though the queue is not empty.
    driver.turn(moment(clock));
    EXPECT_EQ(driver.next(), clock.now() + std::chrono::seconds(1));
    EXPECT_EQ(script->requests(), kMost);

    // Each bind has an event for people behind it.
    script->answer_all({201, "{}", 0});
    EXPECT_TRUE(turn_until(driver, clock, [&] { return script->requests() == 2 * (kMost + 100); }));
}

}  // namespace
}  // namespace berth::run
