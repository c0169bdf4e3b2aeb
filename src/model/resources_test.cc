#include "model/resources.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <set>
#include <thread>

#include "base/json.h"
#include "base/json_view.h"
#include "model/device.h"
#include "model/pod_resources.h"
#include "model/reader.h"
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

// As others may say before anybody has asked for one of ours.
TEST(ResourceNamesDeathTest, OursAreKnownWhateverOthersSaidBefore) {
    const auto fill = [] {
        for (size_t i = 0; i < kMaxResourceNames; ++i) (void)intern_resource("example.com/bulk-" + std::to_string(i));
        std::string trouble;
        base::JsonParser parser;
        const auto pod = parser.parse(R"({"containers":[{"resources":{"limits":{"cpu":"1"}}}]})");
        const Resources limits = read_limits(Reader(*pod, trouble));
        const bool devices = device_resources().has(device_resources().gpu);
        bool counted = true;
        for (const auto* name : {"count/pods", "requests.storage", "limits.memory", "kubernetes.io/batch-memory"})
            counted = counted && intern_resource(name).ok();
        std::exit(limits.size() == 1 && devices && counted ? 0 : 1);
    };
    EXPECT_EXIT(fill(), testing::ExitedWithCode(0), "");
}

TEST(ResourceNames, AListNamesSoManyAtMost) {
    const auto trouble_of = [](size_t count) {
        JsonObject amounts;
        for (size_t i = 0; i < count; ++i) amounts["example.com/listed-" + std::to_string(i)] = "1";
        base::JsonParser parser;
        std::string trouble;
        (void)read_offered_resources(Reader(*parser.parse(base::to_text(amounts)), trouble));
        return trouble;
    };
    EXPECT_EQ(trouble_of(kMostNamed), "");
    EXPECT_NE(trouble_of(kMostNamed + 1).find("names 257 resources, at most 256 may be"), std::string::npos);
    EXPECT_FALSE(trouble_of(50'000).empty());
}

}  // namespace
}  // namespace berth::model
