#pragma once

#include <set>
#include <string>
#include <vector>

#include "run/world.h"

// Nodes that are taken away, and the pods that lose them.
namespace berth::cli {

// Pods that lost their node. Whoever made them makes them again, now, so they are pending; those of DaemonSets and of
// the kubelet itself are there because the node is, and go with it.
struct Leaving {
    std::vector<std::string> moved;  // namespace/name
    std::vector<std::string> bare;   // of these: nobody controls them, so nobody makes them again
    std::vector<std::string> gone;   // with their node
    std::set<std::string> nodes;
};

// Pods that are bound to nodes which are not there.
Leaving uproot_homeless(run::World& world);

// The nodes that a selector speaks of; an Error: there is none.
Result<std::vector<std::string>> nodes_of(const run::World& world, const std::string& selector);

// What `kubectl drain` would do: the nodes are cordoned, and their pods are evicted as far as disruption budgets allow;
// when a pod has found its new place, its budget allows the next.
struct Drain {
    struct Blocked {
        std::string pod, why;
    };
    std::vector<std::string> nodes;
    std::vector<std::string> moved, bare;
    std::vector<Blocked> blocked;
    std::vector<std::string> staying;       // of DaemonSets and of the kubelet
    std::vector<std::string> reservations;  // that hold room there: lost when the node goes
};
// The answers are those of every round, the newest about each object.
Drain drain(run::World& world, const std::vector<std::string>& nodes, std::vector<run::Placement>& answers);

}  // namespace berth::cli
