#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/cpu_list.h"

namespace berth::node {

// Cores that the kubelet's static policy gave to one container.
struct StaticCpus {
    std::string pod_uid;
    std::string container;
    model::CpuIds cpus;
};

// What the kubelet of a machine was told, and what it holds.
struct Kubelet {
    std::string cpu_policy = "none";
    std::map<std::string, std::string> cpu_options;
    model::CpuIds reserved;      // reservedSystemCPUs
    int64_t reserved_milli = 0;  // kubeReserved + systemReserved, or the number of `reserved`
    int64_t reserved_memory = 0;
    std::string topology_policy = "none";
    std::string topology_scope = "container";
    std::string cgroup_driver = "cgroupfs";
    std::string cgroup_root = "/";
    std::vector<StaticCpus> statics;

    bool is_static() const { return cpu_policy == "static"; }
};

// A KubeletConfiguration. An error names the field and the value.
Status read_kubelet_config(const Json& document, Kubelet& out);
// /var/lib/kubelet/cpu_manager_state.
Status read_cpu_manager_state(const Json& document, Kubelet& out);

}  // namespace berth::node
