#pragma once

#include <string>
#include <vector>

#include "cli/explanation.h"
#include "sched/ask.h"

namespace berth::cli {

// One thing that would have to be otherwise: the label, the port, the claim, the rule. Never the refusal again.
struct Change {
    std::string what;      // the same on every node where it is the same
    std::string who = {};  // stands in the way on this one
};
std::vector<Change> advice_for(const sched::Ask& ask, const ledger::View& ledger, ledger::Row row,
                               const std::vector<Explanation::Block>& blocks);

// Of a change that is a command: the nodes follow it.
inline constexpr std::string_view kUncordon = "kubectl uncordon";

// The largest part of the node that is missing, over the resources; 0 when nothing is.
double shortage_share(const sched::Ask& ask, const ledger::View& ledger, ledger::Row row);

}  // namespace berth::cli
