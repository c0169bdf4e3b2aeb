#pragma once

#include <algorithm>
#include <chrono>

namespace berth::link {

// How long a thread rests that worked so long since it was woken, before it waits again. Under load many messages share
// a wake-up then, which costs more than any of them; a thread that is mostly idle is hardly delayed.
inline std::chrono::nanoseconds rest_after(std::chrono::nanoseconds work) {
    return std::min<std::chrono::nanoseconds>(25 * work, std::chrono::milliseconds(20));
}

}  // namespace berth::link
