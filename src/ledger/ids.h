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

// Whether a pod on a node waits again when it is given back, among those of its namespace (Spaces): it did when it was
// assumed, and was not seen bound yet.
enum class Waits : uint8_t { No, Uncounted, Counted };

}  // namespace berth::ledger
