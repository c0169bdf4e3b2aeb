#pragma once

#include <limits>
#include <span>

namespace berth::share {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One who gets weight x level, at most `room`.
struct Vessel {
    double weight = 0;
    double room = 0;
};

// The largest level with sum of min(weight x level, room) <= amount; kInfinity when all rooms fit.
// E.g. amount 10, (1, 2) and (3, 100): the first is full at 2, so 3 x level = 8. Reorders the vessels.
double water_level(std::span<Vessel> vessels, double amount);

}  // namespace berth::share
