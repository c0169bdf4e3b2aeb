#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/cpu_list.h"

namespace berth::model {

struct Cpu {
    int32_t id = 0;
    int32_t core = 0;  // distinct within its socket only
    int32_t numa = 0;
    int32_t socket = 0;
    bool operator==(const Cpu&) const = default;
};
using CpuTopology = std::vector<Cpu>;  // by id, distinct

inline constexpr std::string_view kCpuTopology = "node.koordinator.sh/cpu-topology";

// {"detail":[{"id":0,"core":0,"socket":0,"node":0},...]}. Not one that cannot be: an id twice, negative or beyond
// kMaxCpuId, a core in two NUMA nodes.
Result<CpuTopology> read_cpu_topology(std::string_view text);

// `count` CPUs as the kubelet's static policy takes them: whole sockets, then whole NUMA nodes, then whole cores, then
// single CPUs; inside each level those with fewer CPUs free above them first, then the lower id. All of them when there
// are no more. E.g. 12 CPUs, even ids on socket 0, siblings i and i+6: 2 are "0,6", 8 are "0-2,4,6-8,10".
CpuIds take_cpus(const CpuTopology& machine, size_t count);

}  // namespace berth::model
