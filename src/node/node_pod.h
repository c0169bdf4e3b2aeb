#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/cpu_list.h"
#include "model/pod_qos.h"

namespace berth::node {

struct Container {
    std::string name;
    std::string runtime;      // "containerd"
    std::string id;           // 64 hexadecimal digits
    int64_t limit_milli = 0;  // of cpu; 0 is none
};

// A pod as the agent sees it. What of it is hostile has been refused: its uid and the ids of its containers become
// parts of paths.
struct NodePod {
    std::string ns, name, uid;
    int32_t priority = 0;
    int32_t sub_priority = 0;
    model::KubeQos kube = model::KubeQos::BestEffort;
    model::Qos qos = model::Qos::BE;
    model::PriorityBand band = model::PriorityBand::Batch;
    std::optional<model::CpuIds> cpus;  // its resource-status binds it to these
    std::vector<int32_t> numas;         // or to the pools of these
    std::vector<Container> containers;
    int64_t cpu_request = 0;        // thousandths of a core; of its containers, a limit standing in for a request
    int64_t memory_request = 0;     // bytes
    int64_t batch_cpu_request = 0;  // thousandths of a core
    int64_t batch_cpu_limit = 0;
    bool ends = false;  // deletionTimestamp

    // The sum of its containers' limits of cpu, where each has one; else 0.
    int64_t limit_milli() const;
    std::string full_name() const { return ns + "/" + name; }
};

inline constexpr std::string_view kResourceStatus = "scheduling.koordinator.sh/resource-status";

// 36 of 0-9, a-f and -, or the 32 digits of a static pod's hash.
bool is_pod_uid(std::string_view uid);
bool is_container_id(std::string_view id);

// nullopt: it is not on this node, or has ended. What is wrong is a fault, and the rest is taken; a uid that is none is
// empty, and such a pod has no groups.
std::optional<NodePod> read_node_pod(const Json& pod, std::string_view node, std::vector<std::string>& faults);

}  // namespace berth::node
