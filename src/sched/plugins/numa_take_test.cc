// Which CPUs are taken of those that are there.
#include "sched/plugins/numa_take.h"

#include <gtest/gtest.h>

namespace berth::sched::plugins {
namespace {

using ledger::CpuBits;
using model::CpuBinding;
using model::CpuExclusive;

// 2 sockets of 2 NUMA nodes of 2 cores of 2 threads, i and i + 8.
class NumaTake : public testing::Test {
protected:
    NumaTake() {
        auto topology = std::make_shared<model::NodeTopology>();
        topology->meta.name = "n";
        for (int32_t id = 0; id < 16; ++id) topology->cpus.push_back({id, id % 8, id % 8 / 2, id % 8 / 4});
        cores_.put(topology);
        model::Node node;
        node.meta.name = "n";
        cores_.see(0, node);
    }
    void hold(model::CpuIds cpus) {
        auto which = std::make_shared<model::Which>();
        which->cores.cpus = std::move(cpus);
        cores_.enter(0, {false, next_++, which, CpuExclusive::None, {}});
    }
    std::string take(int64_t count, CpuBinding binding = CpuBinding::FullPCPUs, bool required = false,
                     model::CpuIds first = {}) {
        const auto& node = *cores_.at(0);
        Taking taking{node, binding, required, CpuExclusive::None, CpuBits(first), node.free};
        taking.pool.add(taking.first);
        return model::cpu_list_text(plugins::take(taking, count).ids());
    }

    ledger::Cores cores_;
    uint32_t next_ = 0;
};

TEST_F(NumaTake, ANumaNodeIfItHasThem) {
    EXPECT_EQ(take(2), "0,8");
    EXPECT_EQ(take(4), "0-1,8-9");
    hold({0});
    EXPECT_EQ(take(4), "4-5,12-13") << "the socket with most free first";
    EXPECT_EQ(take(1), "4");
}

TEST_F(NumaTake, ThenASocketThenMore) {
    EXPECT_EQ(take(6), "0-2,8-10");
    EXPECT_EQ(take(8), "0-3,8-11");
    EXPECT_EQ(take(16), "0-15");
    EXPECT_EQ(take(17), "");
    hold({0, 4});
    EXPECT_EQ(take(14), "1-3,5-15");
}

TEST_F(NumaTake, SingleThreadsComeFromCoresThatHaveFewest) {
    hold({0, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15});
    EXPECT_EQ(take(1), "8") << "core 1 stays whole";
    EXPECT_EQ(take(2), "1,9");
    EXPECT_EQ(take(3), "1,8-9");
}

TEST_F(NumaTake, RequiredWholeCoresAreWhole) {
    hold({0, 1, 2, 3, 4, 5, 6});
    EXPECT_EQ(take(2, CpuBinding::FullPCPUs, true), "7,15");
    EXPECT_EQ(take(4, CpuBinding::FullPCPUs, true), "");
    EXPECT_EQ(take(4, CpuBinding::FullPCPUs, false).empty(), false);
}

TEST_F(NumaTake, SpreadTakesOneThreadOfEachCoreFirst) {
    EXPECT_EQ(take(2, CpuBinding::SpreadByPCPUs), "0-1");
    EXPECT_EQ(take(3, CpuBinding::SpreadByPCPUs), "0-1,8");
    EXPECT_EQ(take(8, CpuBinding::SpreadByPCPUs, true), "0-7");
    EXPECT_EQ(take(9, CpuBinding::SpreadByPCPUs, true), "");
}

TEST_F(NumaTake, WhatIsReservedComesFirstAndTheRestNearIt) {
    hold({6, 14});
    EXPECT_EQ(take(1, CpuBinding::FullPCPUs, false, {6, 14}), "6");
    EXPECT_EQ(take(4, CpuBinding::FullPCPUs, false, {6, 14}), "6-7,14-15");
    EXPECT_EQ(take(4, CpuBinding::FullPCPUs, true, {6, 14}), "6-7,14-15");
    EXPECT_EQ(take(3, CpuBinding::SpreadByPCPUs, false, {6, 14}), "6-7,14");
}

}  // namespace
}  // namespace berth::sched::plugins
