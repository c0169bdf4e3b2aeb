#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json.h"
#include "control/simulated.h"
#include "node/plan.h"

// What the agent of a node says: that of a machine, and those of simulated nodes.
namespace berth::run {

inline constexpr const char* kNodeSlos = "slo.koordinator.sh/nodeslos";
inline constexpr const char* kNodeMetrics = "slo.koordinator.sh/nodemetrics";
// "true" on a NodeResourceTopology: there is no machine, and `berth up` plays its agent.
inline constexpr std::string_view kSimulatedAgent = control::kSimulatedNode;

// Goes with its Node.
Json new_metric(const std::string& node, const std::string& uid);
// The whole status. What production asks for and does not use, less a tenth of what it uses, can be had back.
JsonObject metric_status(const node::Situation& situation, base::Time now);

// Zones are written whole: what others say of theirs (batch resources) stays in those that are wanted.
void keep_others(const Json& topology, Json& wanted);

// Whether an object has all that is wanted: others may add to it.
bool has_all(const Json& object, const Json& wanted);

}  // namespace berth::run
