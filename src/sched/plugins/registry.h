#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ledger/change.h"
#include "sched/packing.h"
#include "sched/plugin.h"

namespace berth::model {
class Reader;
}

namespace berth::sched {

using ledger::ChangeSet;
struct PluginArgs;

// All that is known about a plugin.
struct Plugin {
    using MakeFilter = std::shared_ptr<const Filter> (*)(const PluginArgs&);
    using MakeScorer = std::shared_ptr<const Scorer> (*)(const PluginArgs&);

    PluginId id;
    std::string_view name;
    MakeFilter before = nullptr;  // what it says before rows are looked at, ahead of all filters
    MakeFilter filter = nullptr;
    MakeScorer scorer = nullptr;
    int64_t weight = 0;  // of the scorer, when a profile says none
    // Fills in what a pluginConfig entry says; nullptr: it takes no arguments.
    void (*read_args)(const model::Reader& args, PluginArgs& out) = nullptr;
    ChangeSet cured_by = ledger::kAnyChange;  // after which a pod that it refused is worth another try
    bool preempts = false;
    bool ours = false;  // part of every profile; no configuration names it
};
std::span<const Plugin> all_plugins();
const Plugin& plugin_of(PluginId id);

}  // namespace berth::sched

// One factory a plugin; what else there is to say about it is its row in registry.cc.
namespace berth::sched::plugins {

std::shared_ptr<const Filter> node_unschedulable();
std::shared_ptr<const Filter> node_name();
std::shared_ptr<const Filter> taint_filter();
std::shared_ptr<const Scorer> taint_scorer();
std::shared_ptr<const Filter> named_nodes_filter();
// What a profile adds to every pod's own node affinity.
struct AddedAffinity {
    std::optional<std::vector<model::NodeSelectorTerm>> required;  // ORed
    std::vector<model::PreferredNodeTerm> preferred;
};
std::shared_ptr<const Filter> node_affinity_filter(AddedAffinity added = {});
std::shared_ptr<const Scorer> node_affinity_scorer(AddedAffinity added = {});
std::shared_ptr<const Filter> node_ports();
// Requests that the filter does not look at: by name, or all "group/...".
struct FitOptions {
    std::vector<model::ResourceId> ignored;
    std::vector<std::string> ignored_groups;
};
std::shared_ptr<const Filter> fit_filter(FitOptions options = {});
// Whether it is such a filter and does not look at the resource.
bool ignores(const Filter& fit, model::ResourceId id);
std::shared_ptr<const Filter> numa_filter();
std::shared_ptr<const Scorer> numa_scorer();
// Which nodes, and which of their devices, somebody who asks for some should have: those with most left, those with
// least, or, of GPUs, those where what is left is of most use to a mix of demands (sched/packing.h).
struct DeviceStrategy {
    enum class Type : uint8_t { LeastAllocated, MostAllocated, Packed };
    Type type = Type::LeastAllocated;
    Packing packing = Packing::BestFit;
    std::vector<GpuDemand> mix = {};
    bool packs() const { return type != Type::LeastAllocated; }
};
std::shared_ptr<const Filter> device_filter();
std::shared_ptr<const Scorer> device_scorer(DeviceStrategy strategy);
std::shared_ptr<const Filter> volume_claims();
std::shared_ptr<const Filter> volume_restrictions();
std::shared_ptr<const Filter> volume_limits();
std::shared_ptr<const Filter> volume_binding();
std::shared_ptr<const Filter> volume_zone();
std::shared_ptr<const Filter> share_fit();
std::shared_ptr<const Filter> reservation_match();
std::shared_ptr<const Filter> reservation_fit();
std::shared_ptr<const Scorer> least_allocated();

struct ShapePoint {
    int64_t utilization = 0;  // 0..100
    int64_t score = 0;        // 0..100
    bool operator==(const ShapePoint&) const = default;
};
struct FitStrategy {
    enum class Type : uint8_t { LeastAllocated, MostAllocated, RequestedToCapacityRatio };
    Type type = Type::LeastAllocated;
    std::vector<std::pair<model::ResourceId, int64_t>> resources{{model::kCpu, 1}, {model::kMemory, 1}};  // weights
    std::vector<ShapePoint> shape = {};  // of RequestedToCapacityRatio, by rising utilization
    bool operator==(const FitStrategy&) const = default;
};
// least_allocated() for the default strategy.
std::shared_ptr<const Scorer> fit_scorer(FitStrategy strategy);

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
// Over other resources than cpu and memory.
std::shared_ptr<const Scorer> balanced_allocation(std::vector<model::ResourceId> resources);
std::shared_ptr<const Scorer> image_locality();

}  // namespace berth::sched::plugins
