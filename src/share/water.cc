#include "share/water.h"

#include <algorithm>

namespace berth::share {

// From below: each step believes that those who are not full yet never will be, so it never steps over the level.
double water_level(std::span<Vessel> vessels, double amount) {
    double weights = 0;
    for (const auto& vessel : vessels) weights += vessel.weight;
    double level = 0;
    while (weights > 0 && !vessels.empty()) {
        level = std::max(0.0, amount) / weights;
        const auto full = std::partition(vessels.begin(), vessels.end(),
                                         [&](const Vessel& vessel) { return vessel.room > vessel.weight * level; });
        const auto open = static_cast<size_t>(full - vessels.begin());
        if (open == vessels.size()) return level;
        for (const auto& vessel : vessels.subspan(open)) amount -= vessel.room;
        vessels = vessels.first(open);
        weights = 0;
        for (const auto& vessel : vessels) weights += vessel.weight;
    }
    return kInfinity;
}

}  // namespace berth::share
