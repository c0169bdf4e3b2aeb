#pragma once

namespace berth {

// Exact sums of 64-bit amounts: 2^63 x 2^63 of them fit, so nothing wraps.
__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;

}  // namespace berth
