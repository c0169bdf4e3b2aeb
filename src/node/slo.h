#pragma once

#include <cstdint>
#include <optional>

#include "base/json.h"

namespace berth::node {

// How far best-effort pods of a node may go: spec.resourceUsedThresholdWithBE of its NodeSLO.
struct Slo {
    bool enable = true;
    int64_t cpu_percent = 65;
    int64_t cpu_min_percent = 0;
    bool by_quota = false;  // cfsQuota; else cpuset
    int64_t memory_evict_percent = 70;
    int64_t memory_evict_lower_percent = 68;    // two below the former unless it is said
    std::optional<int64_t> satisfaction_lower;  // percent; nobody is evicted for cpu without both
    std::optional<int64_t> satisfaction_upper;
    int64_t be_usage_percent = 90;
    int64_t window_seconds = 60;
    bool by_allocatable = false;  // evictByAllocatable: satisfaction is limit / allocatable
};

// A NodeSLO; what it does not say is as above. An error names the field and the value.
Result<Slo> read_slo(const Json& document);

}  // namespace berth::node
