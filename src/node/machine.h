#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/cpu_topology.h"

namespace berth::node {

inline constexpr int64_t kMilliPerCore = 1000;

// Pages larger than the machine's usual ones, of one size.
struct HugePages {
    int64_t size = 0;  // bytes
    int64_t count = 0;
    bool operator==(const HugePages&) const = default;
};

struct NumaNode {
    int32_t id = 0;
    int64_t memory = 0;  // bytes; 0: nobody said
    std::vector<HugePages> huge;
    bool operator==(const NumaNode&) const = default;
};

// What stands below a node: CPUs by id, NUMA nodes by id (each that has CPUs).
struct Machine {
    model::CpuTopology cpus;
    std::vector<NumaNode> numas;

    model::CpuIds ids() const;
};

// A machine as people name one: "live" (this one), FILE.xml as lstopo writes it, "synthetic:socket:2 numa:2 core:10
// pu:2" with hwloc's own numbering or indexes=, or FILE.json, {"detail":[{"id":0,"core":0,"socket":0,"node":0},...]}.
// An error names the source.
Result<Machine> read_machine(const std::string& source);

}  // namespace berth::node
