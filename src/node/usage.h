#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/json.h"
#include "model/cpu_list.h"
#include "node/node_pod.h"

namespace berth::node {

struct Used {
    int64_t cpu = 0;     // thousandths of a core
    int64_t memory = 0;  // bytes
};

// What a machine and its pods use, and how far best-effort pods are held back now.
struct Usage {
    Used node;
    std::map<std::string, Used> pods;     // by namespace/name
    std::optional<int64_t> quota;         // microseconds in a period; -1 is none
    std::optional<model::CpuIds> cpuset;  // absent: nobody said

    Used of(const NodePod& pod) const;
    // What no pod uses: node - all pods, not below 0.
    Used system() const;
};

// {"node":{"cpu":"12","memory":"..."},"pods":{"ns/name":{"cpu":"2"}},"current":{"quota":-1,"cpuset":"2,3,6,7"}}. An
// error names the field and the value.
Result<Usage> read_usage(const Json& document);

}  // namespace berth::node
