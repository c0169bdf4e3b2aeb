#include "model/resources.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <set>
#include <thread>

#include "model/resource_names.h"

namespace berth::model {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(ResourceNames, TheUsualOnesAreFixed) {
    EXPECT_EQ(*intern_resource("cpu"), kCpu);
    EXPECT_EQ(*intern_resource("memory"), kMemory);
    EXPECT_EQ(*intern_resource("ephemeral-storage"), kEphemeralStorage);
    EXPECT_EQ(*intern_resource("pods"), kPods);
    EXPECT_EQ(resource_name(kPods), "pods");
}

TEST(ResourceNames, ThreadsAgree) {
    std::vector<std::vector<ResourceId>> seen(4);
    {
        std::vector<std::jthread> threads;
        for (auto& mine : seen) {
            threads.emplace_back([&mine] {
                for (int i = 0; i < 500; ++i) {
                    const std::string name = "example.com/r" + std::to_string(i);
                    mine.push_back(*intern_resource(name));
                    ASSERT_EQ(resource_name(mine.back()), name);
                }
            });
        }
    }
    for (const auto& mine : seen) EXPECT_EQ(mine, seen[0]);
    EXPECT_EQ(std::set<ResourceId>(seen[0].begin(), seen[0].end()).size(), 500u);
}

TEST(Resources, CountsInTheUnitsOfTheScheduler) {
    const ResourceId gpu = *intern_resource("nvidia.com/gpu");
    const ResourceId huge = *intern_resource("hugepages-2Mi");
    EXPECT_EQ(amount_of(kCpu, *Quantity::parse("1.5")), 1500);
    EXPECT_EQ(amount_of(kCpu, *Quantity::parse("1n")), 1);
    EXPECT_EQ(amount_of(kMemory, *Quantity::parse("1500m")), 2);
    EXPECT_EQ(amount_of(kMemory, *Quantity::parse("50E")), kMost);
    EXPECT_EQ(quantity_text(kCpu, 1500), "1500m");
    EXPECT_EQ(quantity_text(kCpu, 2000), "2");
    EXPECT_EQ(quantity_text(kMemory, int64_t{4} << 30), "4Gi");
    EXPECT_EQ(quantity_text(huge, 4 << 20), "4Mi");
    EXPECT_EQ(quantity_text(gpu, 3), "3");
    EXPECT_EQ((Resources{{gpu, 1}, {kMemory, int64_t{4} << 30}, {kCpu, 2000}}).text(),
              "{cpu: \"2\", memory: \"4Gi\", nvidia.com/gpu: \"1\"}");
    EXPECT_EQ(Resources().text(), "{}");
}

TEST(Resources, SumsStopAtTheEnds) {
    Resources sum{{kMemory, kMost}};
    sum.add({{kCpu, 5}, {kMemory, kMost}});
    EXPECT_EQ(sum, (Resources{{kCpu, 5}, {kMemory, kMost}}));
    sum.subtract({{kCpu, 7}, {kPods, 1}, {kMemory, std::numeric_limits<int64_t>::min()}});
    EXPECT_EQ(sum, (Resources{{kCpu, -2}, {kMemory, kMost}, {kPods, -1}}));
    sum.max({{kCpu, 1}, {kEphemeralStorage, -3}});
    EXPECT_EQ(sum, (Resources{{kCpu, 1}, {kMemory, kMost}, {kEphemeralStorage, -3}, {kPods, -1}}));
    sum.add(kPods, 4);
    sum.erase(kEphemeralStorage);
    EXPECT_EQ(sum.get(kPods), 3);
    EXPECT_FALSE(sum.has(kEphemeralStorage));
    EXPECT_TRUE((Resources{{kCpu, 0}}).has(kCpu));
    EXPECT_NE((Resources{{kCpu, 0}}), Resources());
}

// In a child process, since it uses up every name.
TEST(ResourceNamesDeathTest, TooManyAreRefused) {
    const auto fill = [] {
        const auto fill_by = [](auto intern) {
            for (size_t i = 0; i < kMaxResourceNames; ++i) (void)intern("example.com/bulk-" + std::to_string(i));
        };
        fill_by(intern_asked_resource);
        // Whatever pods ask for, a node's own is known, and then to pods, too.
        const bool left = intern_resource("example.com/of-a-node").ok() &&
                          intern_asked_resource("example.com/of-a-node").ok() &&
                          !intern_asked_resource("example.com/of-a-pod");
        fill_by(intern_resource);
        const auto refused = intern_resource("example.com/one-too-many");
        const bool right = left && !refused && refused.error().reason == Reason::TooManyRequests &&
                           intern_resource("cpu").ok() && resource_name({kMaxResourceNames - 1}).size() > 12;
        std::exit(right ? 0 : 1);
    };
    EXPECT_EXIT(fill(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace berth::model
