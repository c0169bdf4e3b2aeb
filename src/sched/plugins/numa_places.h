#pragma once

#include <optional>
#include <string>

#include "sched/ask.h"
#include "sched/plugins/numa_take.h"

namespace berth::sched::plugins {

// Somebody who wants his amounts on few NUMA nodes.
struct PlaceAsk {
    const model::PodSpec& spec;
    const Taking& taking;
    const ledger::Charges& charges;
    model::NumaPolicy policy;
    int64_t cpus;  // of his own; 0: none
};

// As the kubelet's topology manager chooses: of the sets of NUMA nodes where all of it is free, and of each node
// something, one of as few nodes as would do on an empty machine (then it is preferred), else the smallest; then where
// his reservations have most left for him, then where most is free (MostAllocated: least), then the lowest nodes.
// Restricted takes a preferred one only, SingleNUMANode one of one node. None: there is no such set.
// Of machines with more than kMostNumas NUMA nodes only single ones, and all together, are looked at.
std::optional<model::CoreRecord> best_places(const PlaceAsk& ask);
inline constexpr size_t kMostNumas = 8;

// What stays free on the NUMA nodes of a record, in hundredths: the mean over cpu and memory.
int64_t points_of(const model::CoreRecord& record, const ledger::NodeCores& cores);
// Why such an amount is not there; empty: it is.
std::string lacks_on_numa(int32_t node, const model::Resources& amount, const Taking& taking,
                          const ledger::Charges& charges);

}  // namespace berth::sched::plugins
