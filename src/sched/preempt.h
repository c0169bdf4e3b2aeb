#pragma once

#include <optional>
#include <string>

#include "sched/costs.h"

namespace berth::sched {

struct Preemption {
    std::optional<Victims> victims;
    size_t candidates = 0;  // rows where somebody's going would help
    // Why nobody goes, to follow the diagnosis: "preemption: 0/3 nodes are available: ...". Empty for reservations.
    std::string message;
    // No node can help at all, so a nomination that the pod still carries means nothing any more.
    bool ends_nomination = false;
};

// Whom to evict for an ask that no row took, `strikes` being what its filters said. Every row that evictions could open
// is looked at; the best has the fewest violated budgets, then the lowest highest priority, the smallest sum of
// priorities, the fewest pods, the latest start among those of the highest priority, the first name.
// The ledger is changed and put back: after the call it is as before. `memory` belongs to this ledger.
Preemption preempt(const Ask& ask, Ledger& ledger, const Profile& profile, const Strikes& strikes,
                   const Nominated& nominated, CostMemory& memory);

// The definition, by filters alone: what preempt() is tested against.
Preemption preempt_by_filters(const Ask& ask, Ledger& ledger, const Profile& profile, const Strikes& strikes,
                              const Nominated& nominated);

}  // namespace berth::sched
