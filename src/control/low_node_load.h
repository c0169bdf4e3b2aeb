#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/migration.h"
#include "control/movable.h"
#include "control/node_metric.h"
#include "control/reconciler.h"

// Pods of nodes that were seen to be too busy go to those that are nearly idle.
namespace berth::control {

// Percent of what pods may have; what is not said does not count.
struct LoadPercents {
    std::optional<int64_t> cpu, memory;
};

// What is too busy, and what is nearly idle, among nodes that are looked at together.
struct LoadMeasure {
    std::string name;                  // of a pool; empty: the nodes of none
    Selector nodes;                    // these
    LoadPercents low, high;            // a node is low up to all of them, high above any
    LoadPercents prod_low, prod_high;  // the same of what production uses
    bool by_deviation = false;         // the percentages are distances from the mean
    int64_t cpu_weight = 1, memory_weight = 1;
    int64_t abnormal = 5;  // so many looks at a node that is too busy are borne; with 1 none is
};

struct LoadRules : LoadMeasure {
    bool enable = false;
    bool dry_run = false;            // who would be moved is only said
    std::vector<LoadMeasure> pools;  // a node is in the first that has it; those of none are measured by the above
    int64_t number_of_nodes = 0;     // with no more than so many low nodes nothing is done
    bool node_fit = true;            // only what fits on a low node, and does not make it a high one
    Movable movable;
    base::Duration interval = std::chrono::seconds(60);
    base::Duration expiration = std::chrono::seconds(180);  // an older metric says nothing
    std::string job_mode = "ReservationFirst";
    std::string job_ttl = "5m";
    MigrationLimits limits;  // of which each node's, and those of few replicas, hold here already
};

// A pod that may be moved, in the order of who goes first.
struct LoadedPod {
    std::string name;  // namespace/name
    model::PriorityBand band = model::PriorityBand::Prod;
    int64_t priority = 0;
    model::KubeQos kube = model::KubeQos::Burstable;
    model::Qos qos = model::Qos::LS;
    int64_t deletion_cost = 0, eviction_cost = 0;
    Load used, asked;
    base::Time created;
};

struct LoadedNode {
    std::string name;
    Load size;                 // allocatable, less what is reserved for processes outside Kubernetes
    Load used;                 // by the system and by pods that stay
    Load prod;                 // of that, by production
    Load free;                 // that nobody has asked for
    Load coming, coming_prod;  // used by those that are on their way here
    bool schedulable = true;
    int64_t abnormal = 0;  // how often in a row it was seen too busy, this time included
    bool gives = true;     // it may; no: it was looked at a moment ago
    int64_t leaving = 0;   // moves of its pods under way
    std::vector<LoadedPod> pods;
};

struct LoadMove {
    size_t node = 0, pod = 0;
    bool for_prod = false;
    size_t target = 0;
    bool operator==(const LoadMove&) const = default;
};

struct LoadLevels {
    Load low, high;
};
// What is low and high on each node. E.g. 80 % of 16 cpu of which 4 are reserved: 9,600. By deviation, mean 40 %, high
// 10: 50 %.
std::vector<LoadLevels> levels_of(const std::vector<LoadedNode>& nodes, const LoadMeasure& by, bool prod);
bool is_high(const Load& used, const LoadLevels& levels, const LoadPercents& high);
bool is_low(const Load& used, const LoadLevels& levels, const LoadPercents& low);

using Fits = std::function<bool(const LoadMove& pod, size_t target)>;
// Who moves now. The low nodes take up to where they would be high; the busiest nodes give first: pods of lower
// classes, priorities, costs first, then those that use more of what is short, then the newest; until the node is high
// no more, the budget is used, or as many as may be are under way from it. Production's own percentages are looked at
// afterwards.
std::vector<LoadMove> moves_for(std::vector<LoadedNode> nodes, const LoadRules& rules, const LoadMeasure& by,
                                const Fits& fits);

// How often a node was seen too busy in a row: {"times":3,"at":"2026-01-01T00:00:00Z"}; with dryRun also who would be
// moved: "wouldMove":["ns/pod"].
inline constexpr std::string_view kBusyNode = "berth.dev/high-load";
// Marks a job of this descheduler with the node that it relieves.
inline constexpr std::string_view kRelieves = "berth.dev/relieves";

// Needs a metric of each node; what nobody measured is left alone. Each look writes what it saw on busy nodes, so that
// neither a restart nor another leader begins anew, and makes PodMigrationJobs: their limits and rest hold.
std::unique_ptr<Reconciler> low_node_load_reconciler(LoadRules rules);

}  // namespace berth::control
