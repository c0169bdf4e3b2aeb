#include "run/scheduler_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run/scripted_server.h"

namespace berth::run {
namespace {

constexpr size_t kMost = 4096;  // under way at once
constexpr size_t kFeeds = 16;

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
    sched::Scheduler::Profiles profiles;
    profiles.emplace("berth", sched::default_profile());
    SchedulerDriver run(script->server(), std::move(profiles), base::system_clock(), metrics, {}, {});

    script->wait_for_requests(kMost);
    // A round in which nothing comes ends with a wait of a second; without it hundreds of rounds would go by.
    const auto since = std::chrono::steady_clock::now();
    script->wait_for_polls(4 * kFeeds);
    EXPECT_GT(std::chrono::steady_clock::now() - since, std::chrono::seconds(1));
    EXPECT_EQ(script->requests(), kMost);

    // Each bind has an event for people behind it.
    script->answer_all({201, "{}", 0});
    script->wait_for_requests(2 * (kMost + 100));
}

}  // namespace
}  // namespace berth::run
