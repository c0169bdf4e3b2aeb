#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/consumer.h"
#include "model/quota.h"
#include "share/problem.h"

// What shares are computed from: the facts of one moment, as values.
namespace berth::share {

inline constexpr uint32_t kNowhere = UINT32_MAX;
inline constexpr base::Duration kLostAfter = std::chrono::seconds(60);  // a node that is not ready counts so long

struct SceneNode {
    std::string name;
    Resources allocatable;  // less what is kept for processes outside Kubernetes
    bool cordoned = false;  // what it has counts as far as it is used
    bool lost = false;      // not ready for too long: it counts nothing
};

struct ScenePod {
    std::string ns, name, uid;
    Resources size;  // requests, and limits.* where these are shared; no counts
    bool placed = false;
    uint32_t node = kNowhere;  // of a placed one; kNowhere: a node that is not known
    bool started = false;
    bool terminating = false;  // its room counts until it is gone, and is about to be free
    bool gated = false;        // by others' gates
    bool held = false;         // by our gate
    bool granted = false;      // it was told that it may start, and is not seen bound yet: it counts before all others
    bool served = false;       // others went for it already: nobody goes for it again
    uint32_t earmark = kNowhere;  // the node whose room is kept for it
    bool kept = false;            // never evicted: static, of a DaemonSet, critical, opted out
    int32_t priority = 0;
    int64_t deletion_cost = 0;
    base::Time created;
    bool dated = false;               // `created` was given
    std::vector<uint32_t> may_stand;  // of one that waits: the nodes where at most room is missing
    std::vector<uint32_t> budgets;    // that cover it

    std::string full_name() const { return ns + "/" + name; }
};

struct SceneClaim {
    std::string ns, name;
    Resources size;
    bool bound = false;
};

// Room of a Reservation that nobody uses yet.
struct SceneHold {
    std::string ns;  // of its owners; "": more than one
    uint32_t node = kNowhere;
    Resources amount;
};

struct SceneBudget {
    std::string name;
    int64_t allowed = 0;  // evictions, from now on
};

struct Scene {
    std::vector<SceneNode> nodes;
    std::vector<std::string> namespaces;
    std::vector<ScenePod> pods;  // those that wait stand in the order of the queue
    std::vector<SceneClaim> claims;
    std::vector<SceneHold> holds;
    std::vector<SceneBudget> budgets;
    std::vector<model::Consumer> consumers;
    std::vector<model::ResourceQuota> quotas;
};

struct Settings {
    Policy policy = Policy::Surplus;
    bool spread = true;
    base::Time now;
    std::set<std::string, std::less<>> infinite = {"kube-system"};
    base::Duration min_run{0};
    std::optional<uint64_t> random_victims;  // the seed; none: the newest go first
    std::optional<double> limits_factor;     // of what is allocatable; none: limits are infinite
    Resources storage;                       // capacity, by key; a missing one is infinite
};

}  // namespace berth::share
