#include "model/consumer_rules.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::model {
namespace {

// Areas one in another, as many as somebody likes to make: each has half of what is above it.
TEST(ConsumerRules, ParentsMayBeManyAndInACircle) {
    std::vector<Consumer> others(200'000);
    for (size_t i = 0; i < others.size(); ++i) {
        others[i].meta.name = "area-" + std::to_string(i);
        if (i > 0) others[i].parent = "area-" + std::to_string(i - 1);
        others[i].reserved.percents.set(kCpu, 50'000);
    }
    Consumer wanted;
    wanted.meta.name = "wanted";
    wanted.parent = others.back().meta.name;
    wanted.reserved.amounts.set(kCpu, 1);
    const ConsumerContext context{others, {}, {}, Resources{{kCpu, 64'000}}};
    const auto faults = consumer_faults(wanted, nullptr, context);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].message, "Invalid value: \"1m\": is more than its parent has left: 0 available");
    others.front().parent = others.back().meta.name;
    EXPECT_EQ(consumer_faults(wanted, nullptr, context).size(), 1U);
}

}  // namespace
}  // namespace berth::model
