#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "model/pod_qos.h"

namespace berth::control {

inline constexpr const char* kNodeMetrics = "slo.koordinator.sh/nodemetrics";
inline constexpr const char* kTopologies = "topology.node.k8s.io/noderesourcetopologies";

struct Load {
    int64_t cpu = 0;     // thousandths
    int64_t memory = 0;  // bytes
    Load& operator+=(const Load& other);
    Load& operator-=(const Load& other);  // not below 0
    bool operator==(const Load&) const = default;
};

// What a NodeMetric says.
struct NodeMetric {
    struct Pod {
        Load used;
        model::PriorityBand band = model::PriorityBand::Prod;
        model::Qos qos = model::Qos::LS;
    };
    std::optional<base::Time> updated;  // nullopt: it says nothing
    Load node;
    Load system;  // used by no pod, and by host applications that are as dear as pods
    std::optional<Load> reclaimable;
    std::map<std::string, Pod, std::less<>> pods;  // by namespace/name
};

NodeMetric read_node_metric(const Json& document);

// Thousandths of cpu, else whole units; nullopt where it is no amount.
std::optional<int64_t> amount_at(const Json& resources, const char* name, bool is_cpu);

}  // namespace berth::control
