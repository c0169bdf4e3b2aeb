#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "control/reconciler.h"

// Moving pods: room for the replacement first, then the eviction.
namespace berth::control {

struct MigrationWishes {
    int64_t ttl_s = 0;
    bool pre_allocate = false;  // wait for room on a full node
    std::string to = {};        // on this node; empty: anywhere but on its own
};

// The reservation that a pod's replacement will use: the pod's own template, anywhere but on its node or on the one
// that is wished, for pods of its controller. Errors say why the pod cannot be moved: not bound, going already, or
// nobody would make it again.
Result<Json> migration_of(const Json& pod, const MigrationWishes& wishes);

const Json* controller_of(const Json& pod);
// policy/v1, of exactly this pod.
Json eviction_of(const Json& pod);

inline constexpr const char* kMigrationJobs = "scheduling.koordinator.sh/podmigrationjobs";

// How many jobs may be under way at once; what is not said is not limited.
struct MigrationLimits {
    // A number, or percent of a workload's pods, at least one; unsaid: as whoever reads it says.
    struct Portion {
        std::optional<int64_t> count, percent;
        bool is_said() const { return count || percent; }
        int64_t of(int64_t pods) const;
    };
    int64_t per_node = 2;
    std::optional<int64_t> globally, per_namespace;
    Portion per_workload;        // unsaid: a tenth of more than ten pods, two of four to ten, else one
    Portion unavailable;         // of a workload's pods, those that are moved and those that are not ready together
    base::Duration window = {};  // those of a workload that ended count too when they began within it
    Portion in_window;           // how many then; unsaid: as per_workload
};
int64_t moves_per_workload(int64_t pods, const MigrationLimits& limits);

// A job that moves this pod. `node` is kept under `label`, so that whoever ordered it finds it again.
struct MoveOrder {
    std::string name;
    std::string_view label;
    std::string node;
    std::string mode = "ReservationFirst";
    std::string ttl = "5m";
    std::string to = {};  // its replacement shall be on this node; empty: wherever there is room
    std::string reason;   // what people are told about the pod
    std::string message;
};
Write move_job(const Object& pod, const MoveOrder& order);

// What a job carries once it was let through, and of which pod and workload it is from then on.
inline constexpr std::string_view kPassedArbitration = "descheduler.koordinator.sh/passed-arbitration";
inline constexpr std::string_view kMovedPod = "berth.dev/moved-pod";
inline constexpr std::string_view kMovedWorkload = "berth.dev/moved-workload";
inline constexpr std::string_view kMovedAt = "berth.dev/moved-at";
// The node that a job's room shall be on.
inline constexpr std::string_view kMovesTo = "berth.dev/moves-to";

// PodMigrationJobs: those that wait are let through in the order of their pods' priority, then age; ReservationFirst
// holds room elsewhere, evicts, waits until somebody has taken it and is ready; EvictDirectly evicts. A job that is not
// done within its ttl (5 minutes) fails and gives its room back; 5 minutes later it goes.
std::unique_ptr<Reconciler> migration_reconciler(MigrationLimits limits = {});

}  // namespace berth::control
