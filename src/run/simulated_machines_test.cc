#include "run/simulated_machines.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace berth::run {
namespace {

using base::find;
using base::find_string;

TEST(SimulatedMachines, GpusAreSaidAsANumberAndAModel) {
    const auto plain = read_simulated_gpus("8");
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->count, 8);
    const auto known = read_simulated_gpus("2:T4");
    ASSERT_TRUE(known);
    EXPECT_EQ(known->memory, "16Gi");
    for (const auto* wrong : {"", "x", "-1", "65", "8x", "8:"}) EXPECT_FALSE(read_simulated_gpus(wrong)) << wrong;
}

TEST(SimulatedMachines, ANodeOffersWhatItsDeviceHas) {
    const auto gpus = read_simulated_gpus("4:A10").value();
    control::SimulatedNode node;
    add_gpus(gpus, node);
    const std::vector<std::pair<std::string, std::string>> expected{{"nvidia.com/gpu", "4"},
                                                                    {"koordinator.sh/gpu", "400"},
                                                                    {"koordinator.sh/gpu.shared", "400"},
                                                                    {"koordinator.sh/gpu-core", "400"},
                                                                    {"koordinator.sh/gpu-memory-ratio", "400"},
                                                                    {"koordinator.sh/gpu-memory", "96Gi"}};
    EXPECT_EQ(node.amounts, expected);
}

// Half of the GPUs on each NUMA node, and there on the socket of its CPUs.
TEST(SimulatedMachines, GpusAreSpreadOverNumaNodes) {
    const auto machine = node::read_machine("synthetic:socket:2 numa:1 core:4 pu:2").value();
    const Json device = device_of(read_simulated_gpus("4").value(), machine, "n1");
    std::vector<std::pair<int64_t, int64_t>> places;
    for (const auto& each : find(device, {"spec", "devices"})->as_array()) {
        places.emplace_back(find(each, {"topology", "nodeID"})->as_int64(),
                            find(each, {"topology", "socketID"})->as_int64());
    }
    EXPECT_EQ(places, (std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {0, 0}, {1, 1}, {1, 1}}));
}

TEST(SimulatedMachines, ATopologyHasAZoneForEachNumaNode) {
    const auto machine = node::read_machine("synthetic:socket:2 numa:1 core:4 pu:2").value();
    const Json object = topology_of(machine, "n1");
    const auto& zones = find(object, {"zones"})->as_array();
    ASSERT_EQ(zones.size(), 2u);
    EXPECT_EQ(find_string(zones[1], {"name"}), "node-1");
    EXPECT_EQ(base::to_text(*find(zones[1], {"resources"})),
              R"([{"name":"cpu","capacity":"8","allocatable":"8","available":"8"}])");
}

}  // namespace
}  // namespace berth::run
