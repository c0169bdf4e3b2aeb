#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "control/batch.h"
#include "control/node_metric.h"
#include "ledger/view.h"

// Batch resources of each NUMA node: what a pod that stays within one may use of them.
namespace berth::control {

// When a NodeResourceTopology's zones were written.
inline constexpr std::string_view kZonesWritten = "berth.dev/batch-written";

// The NUMA nodes that a placed pod is on, by its record; none: nobody knows, or it has no such record.
std::vector<int32_t> numas_of(const model::Which* which, const ledger::NodeCores* cores);

// A zone's part of what is known of the node.
struct BatchZone {
    int64_t capacity = 0;
    std::optional<int64_t> reserved = {};  // exactly there; else its part of the node's
    int32_t numa = 0;
};
// The same formula for a zone: what belongs to no NUMA node is divided evenly, rounded up, and so is a pod over those
// that it is on. E.g. of two zones of 50 cpu, system 7, LS pods 33 anywhere, 65 %: 50 - 17.5 - 3.5 - 16.5 = 12.5.
BatchInput zone_input(const BatchInput& node, const BatchZone& zone, int64_t zones);

// Amounts of batch-cpu and batch-memory by NUMA node; of those that name both cpu and memory.
using ZoneAmounts = std::map<int32_t, std::pair<int64_t, int64_t>>;
ZoneAmounts zone_amounts(const BatchInput& cpu, const BatchInput& memory, const ledger::NodeCores& cores,
                         const BatchStrategy& strategy);

// Writes them into the zones of a NodeResourceTopology, beside what its agent says there: when one changed by more than
// a tenth, or is so old that it is renewed; `again`: when that will be. nullptr: all of them become 0, where any is
// said.
std::optional<Write> zones_write(const Object& topology, const ZoneAmounts* amounts, const BatchStrategy& strategy,
                                 base::Time now, std::optional<base::Time>& again);

}  // namespace berth::control
