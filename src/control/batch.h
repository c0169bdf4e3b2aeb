#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "control/reconciler.h"
#include "model/pod_qos.h"

// What of a node is lent to best-effort work: batch resources, from what others were seen to use, and mid resources,
// from what prod pods were seen not to use.
namespace berth::control {

// Of one resource: cpu in thousandths, memory in bytes.
enum class BatchPolicy : uint8_t { Usage, Request, MaxUsageRequest };

struct BatchPod {
    model::Qos qos = model::Qos::LS;
    model::PriorityBand band = model::PriorityBand::Prod;
    int64_t request = 0;
    std::optional<int64_t> used = {};  // by its metric
    std::vector<int32_t> numas = {};   // that it is on; none: any
};

struct BatchInput {
    int64_t capacity = 0;
    int64_t kubelet_reserved = 0;  // capacity - what the kubelet calls allocatable
    int64_t reserved = 0;          // for processes outside Kubernetes
    int64_t system_used = 0;       // by no pod
    int64_t node_used = 0;
    std::optional<int64_t> prod_reclaimable = {};
    int64_t listed = 0;  // of batch resources themselves, for processes outside Kubernetes
    std::vector<BatchPod> pods;
    bool is_cpu = false;
};

struct BatchRules {
    int64_t reclaim_percent = 65;
    BatchPolicy policy = BatchPolicy::Usage;
    std::optional<int64_t> most_percent = {};  // of the capacity
    int64_t mid_percent = 100;
    int64_t mid_unallocated_percent = 0;
};

// capacity - capacity x (100 - reclaim) / 100 - max(system used, annotation, kubelet) - used by dearer pods, not below
// 0; the product is divided towards 0. E.g. 100 cores, 65 %, system 7, LS 33: 100 - 35 - 7 - 33 = 25; with 20
// reserved 12. An LSE pod counts with what it asks of cpu; one without a metric with what it asks. MaxUsageRequest:
// each with the larger of both. Request (memory): with what they ask, and what the system uses does not count.
int64_t batch_amount(const BatchInput& input, const BatchRules& rules);

// min(min(reclaimable, capacity - used) + unallocated x share, capacity x threshold), each product divided towards 0.
int64_t mid_amount(const BatchInput& input, const BatchRules& rules);

// How a node's amounts are made: its annotation and labels over the defaults.
struct BatchStrategy {
    bool enable = true;
    BatchRules cpu, memory;
    base::Duration degrade = std::chrono::minutes(15);  // an older metric says nothing
    base::Duration refresh = std::chrono::seconds(300);
    int64_t diff_percent = 10;
};
inline constexpr std::string_view kColocation = "node.koordinator.sh/colocation-strategy";
inline constexpr std::string_view kBatchCondition = "BerthBatchResources";

BatchStrategy strategy_of(const Labels& annotations, const Labels& labels, std::string& fault);

// A node's batch-cpu, batch-memory, mid-cpu and mid-memory from its NodeMetric: written when they changed by more than
// a tenth or are 300 s old, removed when the metric is 15 minutes old. A node without a NodeMetric is left alone. Where
// a NodeResourceTopology has zones, batch resources of each are written there likewise (batch_zones.h).
std::unique_ptr<Reconciler> batch_reconciler();

}  // namespace berth::control
