#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace berth::share {

inline constexpr uint32_t kNobody = UINT32_MAX;

// Who stands above whom, by their places. Nobody is above the cluster's own; who names a parent that does not exist, or
// one from whom the way up leads round in a circle, is one of these. Takes as long as there are many, however deep.
struct Above {
    std::vector<uint32_t> parent;
    std::vector<uint8_t> circles;
    std::vector<uint32_t> upwards;  // everybody, behind all who are below it
};

// Each one's name, and that of its parent; "": none. Of equal names the first counts.
struct Named {
    std::string_view name;
    std::string_view parent;
};
Above above(const std::vector<Named>& all);

}  // namespace berth::share
