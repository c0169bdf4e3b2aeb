#pragma once

#include <memory>

#include "sched/plugin.h"

// One factory a plugin; the list with order and weights is in registry.cc.
namespace berth::sched::plugins {

std::shared_ptr<const Filter> node_unschedulable();
std::shared_ptr<const Filter> node_name();
std::shared_ptr<const Filter> taint_filter();
std::shared_ptr<const Scorer> taint_scorer();
std::shared_ptr<const Filter> named_nodes_filter();
std::shared_ptr<const Filter> node_affinity_filter();
std::shared_ptr<const Scorer> node_affinity_scorer();
std::shared_ptr<const Filter> node_ports();
std::shared_ptr<const Filter> fit_filter();
std::shared_ptr<const Filter> volume_claims();
std::shared_ptr<const Filter> volume_restrictions();
std::shared_ptr<const Filter> volume_limits();
std::shared_ptr<const Filter> volume_binding();
std::shared_ptr<const Filter> volume_zone();
std::shared_ptr<const Filter> reservation_match();
std::shared_ptr<const Filter> reservation_fit();
std::shared_ptr<const Scorer> least_allocated();

// Constraints for pods that have none of their own. System: nodes without a key still take part in the others.
struct SpreadDefaults {
    std::vector<model::SpreadConstraint> constraints;
    bool system = false;
};
// Hostname with skew 3 and zone with skew 5, both ScheduleAnyway.
SpreadDefaults system_spread_defaults();
std::shared_ptr<const Filter> spread_filter(SpreadDefaults defaults);
std::shared_ptr<const Scorer> spread_scorer(SpreadDefaults defaults);

struct AffinityWeights {
    int64_t required_affinity = 1;              // hardPodAffinityWeight
    bool ignore_held_when_indifferent = false;  // ignorePreferredTermsOfExistingPods
};
std::shared_ptr<const Filter> pod_affinity_filter();
std::shared_ptr<const Scorer> pod_affinity_scorer(AffinityWeights weights);

std::shared_ptr<const Scorer> balanced_allocation();
std::shared_ptr<const Scorer> image_locality();

}  // namespace berth::sched::plugins
