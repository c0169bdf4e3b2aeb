#pragma once

#include "node/cores.h"

namespace berth::node {

inline constexpr std::string_view kTopologyResource = "topology.node.k8s.io/noderesourcetopologies";

inline constexpr std::string_view kPodCpus = "node.koordinator.sh/pod-cpu-allocs";

struct TopologyFacts {
    const Machine& machine;
    const model::Node& node;
    const Cores& cores;
    const Kubelet& kubelet;
    const std::vector<NodePod>& pods;
};

// The NodeResourceTopology of a node: its CPUs, pools and reserved cores in annotations, a zone for each NUMA node.
// Zones say what the machine has; nothing is taken off there, so that nobody takes it off twice.
Json topology_object(const TopologyFacts& facts);

// [{"socket":0,"node":0,"cpuset":"1-5,12-17"},...]
Json pools_json(const Pools& pools);

}  // namespace berth::node
