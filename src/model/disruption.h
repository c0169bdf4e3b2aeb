#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "model/meta.h"
#include "model/selector.h"

// Who may be disturbed, and who goes first.
namespace berth::model {

struct PodDisruptionBudget {
    Meta meta;
    Selector selector = Selector::nothing();
    int64_t disruptions_allowed = 0;     // status
    std::vector<std::string> disrupted;  // names of pods whose eviction was granted already; sorted

    // A pod without labels, and a budget without a selector or with an empty one, match nothing.
    bool covers(std::string_view ns, const Labels& labels) const;
    bool already_disrupted(std::string_view pod) const;
};

struct PriorityClass {
    Meta meta;
    int32_t value = 0;
    bool global_default = false;
    bool never_preempts = false;  // preemptionPolicy
};

Result<PodDisruptionBudget> read_pod_disruption_budget(JsonView object);
Result<PriorityClass> read_priority_class(JsonView object);

}  // namespace berth::model
