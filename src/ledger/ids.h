#pragma once

#include <cstdint>

namespace berth::ledger {

// A node's place in every column. Stable while the node exists; reused after it is gone.
using Row = uint32_t;
inline constexpr Row kNoRow = UINT32_MAX;

// Pods and reservations are entries in slabs; an index is stable while the entry exists.
using PodIndex = uint32_t;
using ReservationIndex = uint32_t;
inline constexpr uint32_t kNone = UINT32_MAX;

}  // namespace berth::ledger
