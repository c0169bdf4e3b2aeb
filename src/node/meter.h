#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "node/tree.h"
#include "node/usage.h"

namespace berth::node {

// Counters of a machine and its pods at one moment.
struct Sample {
    base::Instant at;
    int64_t node_nanos = 0;  // of processor time, all CPUs together
    int64_t node_memory = 0;
    std::map<std::string, int64_t> pod_nanos;   // by uid
    std::map<std::string, int64_t> pod_memory;  // without what could be dropped at once
};

// Nanoseconds of /proc/stat's first line that some process ran; of /proc/meminfo, what is not available.
Result<int64_t> busy_nanos(std::string_view proc_stat, int64_t ticks_per_second);
Result<int64_t> used_memory(std::string_view meminfo);

// The kernel adds up a group's memory when it is asked, so that is not asked for where an earlier sample will do.
Result<Sample> take_sample(Tree& tree, const std::vector<NodePod>& pods, base::Instant at,
                           const Sample* memory_of = nullptr);

// What ran between two moments. A counter that went back (a pod that began anew) counts from 0; a pod without an
// earlier one is not there.
Usage usage_between(const Sample& before, const Sample& after, const std::vector<NodePod>& pods);

}  // namespace berth::node
