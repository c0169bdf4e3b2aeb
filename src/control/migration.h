#pragma once

#include <memory>

#include "base/json.h"
#include "control/reconciler.h"

// Moving pods: room for the replacement first, then the eviction.
namespace berth::control {

struct MigrationWishes {
    int64_t ttl_s = 0;
    bool pre_allocate = false;  // wait for room on a full node
};

// The reservation that a pod's replacement will use: the pod's own template, anywhere but on its node, for pods of its
// controller. Errors say why the pod cannot be moved: not bound, going already, or nobody would make it again.
Result<Json> migration_of(const Json& pod, const MigrationWishes& wishes);

const Json* controller_of(const Json& pod);
// policy/v1, of exactly this pod.
Json eviction_of(const Json& pod);

inline constexpr const char* kMigrationJobs = "scheduling.koordinator.sh/podmigrationjobs";

// At most so many jobs at once for pods of one node, and of one workload: a tenth of more than ten pods, two of four to
// ten, else one.
inline constexpr int64_t kMovesPerNode = 2;
int64_t moves_per_workload(int64_t pods);

// PodMigrationJobs: those that wait are let through in the order of their pods' priority, then age; ReservationFirst
// holds room elsewhere, evicts, and waits until somebody has taken it; EvictDirectly evicts. A job that is not done
// within its ttl (5 minutes) fails and gives its room back; 5 minutes later it goes.
std::unique_ptr<Reconciler> migration_reconciler();

}  // namespace berth::control
