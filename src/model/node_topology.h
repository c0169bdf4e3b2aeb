#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "model/core_record.h"
#include "model/core_wish.h"
#include "model/cpu_topology.h"
#include "model/meta.h"
#include "model/node.h"

namespace berth::model {

inline constexpr std::string_view kPodCpuAllocs = "node.koordinator.sh/pod-cpu-allocs";
inline constexpr std::string_view kKubeletCpuManager = "kubelet.koordinator.sh/cpu-manager-policy";
inline constexpr std::string_view kSystemQos = "node.koordinator.sh/system-qos-resource";

// What a NodeResourceTopology says of its node's cores. What cannot be read is remembered in `fault`: then nobody is
// given cores there.
struct NodeTopology {
    Meta meta;                      // its name is the node's
    CpuTopology cpus;               // empty: it says none
    CpuIds reserved;                // for processes outside Kubernetes
    CpuIds kubelet;                 // kept by the kubelet, or given by it to pods
    CpuIds system;                  // for pods of the QoS class SYSTEM alone
    bool full_pcpus_only = false;   // the kubelet's static policy takes nothing but whole cores
    std::vector<NumaAmount> zones;  // allocatable, by NUMA node
    std::string fault;
    bool operator==(const NodeTopology&) const = default;
};
Result<NodeTopology> read_node_topology(JsonView object);

// What a Node itself says of how its cores are given.
struct NodeCoreRules {
    CpuBinding required = CpuBinding::None;  // label cpu-bind-policy
    NumaPolicy numa = NumaPolicy::None;      // label numa-topology-policy
    bool most = false;                       // label numa-allocate-strategy: those come first that have least left
    int64_t amplified_milli = 1000;          // what a core of one's own counts of the node's cpu
    std::string fault;
    bool operator==(const NodeCoreRules&) const = default;
};
NodeCoreRules core_rules_of(const Node& node);

// The cores that the Node's own reservation keeps out, over all CPUs of the machine.
CpuIds reserved_cpus(const Node& node, const CpuTopology& machine);

}  // namespace berth::model
