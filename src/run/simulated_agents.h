#pragma once

#include <memory>
#include <string_view>

#include "control/reconciler.h"

namespace berth::run {

// What a pod, or what runs beside all pods of a Node, is said to use: {"cpu":"2","memory":"1Gi"}. A pod without it uses
// what it asks for.
inline constexpr std::string_view kSimulatedUsage = "berth.dev/simulated-usage";

// The agents of nodes without machines: whatever `berth agent` says of a node is said of those whose
// NodeResourceTopology has kSimulatedAgent, from the CPUs that are listed there. There are no cgroups.
std::unique_ptr<control::Reconciler> simulated_agents_reconciler();

}  // namespace berth::run
