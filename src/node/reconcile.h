#pragma once

#include <string>
#include <vector>

#include "node/plan.h"
#include "node/tree.h"

namespace berth::node {

struct Reconciled {
    size_t writes = 0;
    std::vector<std::string> troubles;  // a sentence each
};

// Leads the tree to the goals. A group that is not there, or goes meanwhile, is left out.
Reconciled reconcile(Tree& tree, const Goals& goals);

// Groups below a pod's that its status does not name (its sandbox, a container that just began) are its too.
void add_containers(Tree& tree, NodePod& pod);

// What the best-effort pods have now: from the tree, not from memory, so that a restart changes nothing.
void read_current(Tree& tree, Usage& usage);

// Everything as the kubelet left it: every group has all CPUs, quotas are the limits of containers.
Goals restored(const Situation& situation);

}  // namespace berth::node
