#pragma once

#include <cstdint>

#include "ledger/cores.h"

namespace berth::sched::plugins {

// Which CPUs somebody takes of those that are there for him. Always the same for the same arguments.
struct Taking {
    const ledger::NodeCores& node;
    model::CpuBinding binding;  // whole cores, or one thread of each core first
    bool required;              // and nothing else
    model::CpuExclusive exclusive;
    ledger::CpuBits first;  // taken before any other: what his reservations have left for him
    ledger::CpuBits pool;   // all that are there for him, `first` among them
};

// How many he can have, whatever he is given.
int64_t takeable(const Taking& taking);
// As many as `count` of them; empty when there are not so many.
//
// Those of `first`, then others, near them if there are. FullPCPUs: of the NUMA node, else the socket, whose wholly
// free cores suffice; else of as many places as it takes, those that have most left first (MostAllocated: least).
// SpreadByPCPUs: of the node, else the socket, that has enough, first one thread of each core. E.g. 2 NUMA nodes of 4
// cores with 2 threads, i and i + 8: 4 CPUs are "0-1,8-9", spread "0-3".
ledger::CpuBits take(const Taking& taking, int64_t count);

}  // namespace berth::sched::plugins
