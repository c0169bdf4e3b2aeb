#include "model/cpu_topology.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/test_cost.h"

namespace berth::model {
namespace {

std::string taken(const CpuTopology& machine, size_t count) {
    return cpu_list_text(take_cpus(machine, count));
}

TEST(TakeCpus, EvenIdsOnSocketZeroAndSiblingsSixApart) {
    CpuTopology machine;
    for (int32_t id = 0; id < 12; ++id) machine.push_back({id, id % 6, id % 2, id % 2});
    EXPECT_EQ(taken(machine, 2), "0,6");
    EXPECT_EQ(taken(machine, 6), "0,2,4,6,8,10");
    EXPECT_EQ(taken(machine, 8), "0-2,4,6-8,10");
    EXPECT_EQ(taken(machine, 0), "");
    EXPECT_EQ(taken(machine, 99), "0-11");
}

TEST(TakeCpus, TwoSocketsOfTwoNumaNodesOfTenCores) {
    CpuTopology machine;
    for (int32_t id = 0; id < 80; ++id) machine.push_back({id, id % 40, id % 40 / 10, id % 40 / 20});
    EXPECT_EQ(taken(machine, 40), "0-19,40-59");
    EXPECT_EQ(taken(machine, 20), "0-9,40-49");
}

TEST(TakeCpus, SiblingsGoTogether) {
    CpuTopology machine;
    for (int32_t id = 0; id < 24; ++id) machine.push_back({id, id % 12, id % 12 / 6, id % 12 / 6});
    EXPECT_EQ(taken(machine, 2), "0,12");
    EXPECT_EQ(taken(machine, 3), "0-1,12");
}

TEST(CpuTopologyText, IsReadOrRefused) {
    const auto read = read_cpu_topology(
        R"({"detail":[{"id":1,"core":0,"socket":0,"node":0},{"id":0,"core":0,"socket":0,"node":0}]})");
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, (CpuTopology{{0, 0, 0, 0}, {1, 0, 0, 0}}));
    EXPECT_TRUE(read_cpu_topology(
        R"({"detail":[{"id":0,"core":0,"socket":0,"node":0},{"id":1,"core":1,"socket":1,"node":0}]})"))
        << "a machine without NUMA";
    for (const char* bad :
         {"", "{", "[]", "{}", R"({"detail":7})", R"({"detail":[7]})", R"({"detail":[{"id":0,"core":0,"socket":0}]})",
          R"({"detail":[{"id":-1,"core":0,"socket":0,"node":0}]})",
          R"({"detail":[{"id":8192,"core":0,"socket":0,"node":0}]})",
          R"({"detail":[{"id":0,"core":0,"socket":0,"node":0},{"id":0,"core":1,"socket":0,"node":0}]})",
          R"({"detail":[{"id":0,"core":0,"socket":0,"node":0},{"id":1,"core":0,"socket":0,"node":1}]})"}) {
        EXPECT_FALSE(read_cpu_topology(bad)) << bad;
    }
}

// Whoever writes such a list may name every CPU as often as an annotation has room.
TEST(CpuList, CostsItsLengthHoweverOftenItNamesAll) {
    const auto cost = [](std::string_view part) {
        std::string text(part);
        for (int i = 0; i < 5000; ++i) text.append(",").append(part);
        std::string fault;
        const double least = base::least_cost([&] { (void)read_cpu_list(text, fault); });
        EXPECT_EQ(cpu_list_text(read_cpu_list(text, fault)), part);
        return least;
    };
    const auto single = cost("8191");
    EXPECT_LT(cost("0-8191") / single, 24);
}

// 8,192 CPUs, all of which the list of an annotation can name.
TEST(TakeCpus, CostGrowsWithTheMachine) {
    const auto cost = [](int32_t count) {
        CpuTopology machine;
        for (int32_t id = 0; id < count; ++id) machine.push_back({id, id / 2, id / 512, id / 4096});
        return base::least_cost([&] { (void)take_cpus(machine, static_cast<size_t>(count) / 2 + 1); });
    };
    const auto few = cost(1024);
    EXPECT_LT(cost(8192) / few, 24);
}

TEST(CpuTopologyText, HasNumaNodesThatAMachineMayHave) {
    const auto of = [](int32_t numas) {
        std::string text;
        for (int32_t id = 0; id < numas; ++id) {
            text += fmt::format(R"({}{{"id":{},"core":{},"socket":0,"node":{}}})", id == 0 ? "" : ",", id, id, id);
        }
        return read_cpu_topology(fmt::format(R"({{"detail":[{}]}})", text));
    };
    EXPECT_TRUE(of(128));
    const auto refused = of(129);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "annotation \"node.koordinator.sh/cpu-topology\": there are 129 NUMA nodes, at most 128 may be");
}

}  // namespace
}  // namespace berth::model
