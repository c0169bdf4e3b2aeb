#pragma once

#include <memory>
#include <string_view>

#include "control/reconciler.h"

namespace berth::control {

// The node whose reserved cores a PodMigrationJob frees.
inline constexpr std::string_view kMovesFrom = "berth.dev/moves-from";

// LSE and LSR pods on reserved cores are moved, group by group: through a reservation, and where there is no room, by
// eviction. A pod for which both were tried rests until those jobs have gone.
std::unique_ptr<Reconciler> reserved_cores_reconciler();

}  // namespace berth::control
