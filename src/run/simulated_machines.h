#pragma once

#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"
#include "control/simulated.h"
#include "node/machine.h"

namespace berth::run {

// The GPUs of a simulated node, as --node-gpus says them: "8", or "8:A100".
struct SimulatedGpus {
    int32_t count = 0;
    std::string model;
    std::string memory = "80Gi";  // of each; of a model that we know, its own
};
Result<SimulatedGpus> read_simulated_gpus(const std::string& text);

// What the Node says of them: amounts by the names that pods ask for, and a label for the model.
void add_gpus(const SimulatedGpus& gpus, control::SimulatedNode& node);
// The Device of such a node: two GPUs on a PCIe switch, evenly over the machine's NUMA nodes.
Json device_of(const SimulatedGpus& gpus, const std::optional<node::Machine>& machine, const std::string& name);

// The NodeResourceTopology of a simulated node with these CPUs. Memory is not counted by NUMA node there.
Json topology_of(const node::Machine& machine, const std::string& name);

}  // namespace berth::run
