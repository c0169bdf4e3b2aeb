#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node/cores.h"
#include "node/slo.h"
#include "node/suppress.h"
#include "node/writes.h"

namespace berth::node {

// All that the agent looks at.
struct Situation {
    Machine machine;
    model::Node node;
    std::vector<NodePod> pods;
    Kubelet kubelet;
    Slo slo;
    Usage usage;
    Hierarchy tree;
};

// How far best-effort pods may go, by either policy.
struct Suppressed {
    int64_t milli = 0;
    int64_t quota = kNoQuota;
    model::CpuIds cpus;
};

// All that the agent wants.
struct Plan {
    Cores cores;
    Json topology;  // the NodeResourceTopology
    Suppressed suppressed;
    bool nothing_left = false;  // no core for best-effort pods
    Goals goals;
    std::vector<std::string> faults;  // each names the object, the field and the value
};

Plan plan(const Situation& situation);

// In the form of `berth agent plan -o json`; `faults` of reading go first.
Json plan_document(const Situation& situation, const Plan& plan, const std::vector<std::string>& faults);

}  // namespace berth::node
