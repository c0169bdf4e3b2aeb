#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/reconciler.h"

namespace berth::control {

// Nodes with this annotation "true" are looked after by the reconcilers below instead of a kubelet.
inline constexpr std::string_view kSimulatedNode = "berth.dev/simulated";

std::unique_ptr<Reconciler> simulated_pods_reconciler();
std::unique_ptr<Reconciler> simulated_nodes_reconciler();

struct SimulatedNode {
    std::string name;
    std::string cpu = "4";
    std::string memory = "32Gi";
    std::vector<std::pair<std::string, std::string>> labels;
    std::vector<std::pair<std::string, std::string>> amounts = {};  // of other resources
};

// A whole v1 Node, Ready.
Json simulated_node(const SimulatedNode& wanted, base::Time now);

}  // namespace berth::control
