#include "share/above.h"

#include <algorithm>
#include <unordered_map>

namespace berth::share {
namespace {

// Each way up is gone once, until it meets what is known.
std::vector<uint8_t> find_circles(const std::vector<uint32_t>& parent) {
    enum class Way : uint8_t { Unknown, Begun, Ends, Circles };
    std::vector<Way> ways(parent.size(), Way::Unknown);
    std::vector<uint8_t> circles(parent.size(), 0);
    for (uint32_t i = 0; i < parent.size(); ++i) {
        uint32_t at = i;
        for (; at != kNobody && ways[at] == Way::Unknown; at = parent[at]) ways[at] = Way::Begun;
        const bool circle = at != kNobody && ways[at] != Way::Ends;
        for (at = i; at != kNobody && ways[at] == Way::Begun; at = parent[at]) {
            ways[at] = circle ? Way::Circles : Way::Ends;
            circles[at] = circle ? 1 : 0;
        }
    }
    return circles;
}

std::vector<uint32_t> upwards(const std::vector<uint32_t>& parent) {
    std::vector<uint32_t> below(parent.size(), 0), order;
    order.reserve(parent.size());
    for (const uint32_t above : parent)
        if (above != kNobody) ++below[above];
    for (uint32_t i = 0; i < parent.size(); ++i)
        if (below[i] == 0) order.push_back(i);
    for (size_t next = 0; next < order.size(); ++next) {
        const uint32_t above = parent[order[next]];
        if (above != kNobody && --below[above] == 0) order.push_back(above);
    }
    return order;
}

}  // namespace

Above above(const std::vector<Named>& all) {
    Above out;
    out.parent.assign(all.size(), kNobody);
    out.circles.assign(all.size(), 0);
    if (std::any_of(all.begin(), all.end(), [](const Named& one) { return !one.parent.empty(); })) {
        std::unordered_map<std::string_view, uint32_t> known;
        for (uint32_t i = 0; i < all.size(); ++i) known.emplace(all[i].name, i);
        for (uint32_t i = 0; i < all.size(); ++i) {
            const auto found = all[i].parent.empty() ? known.end() : known.find(all[i].parent);
            if (found != known.end()) out.parent[i] = found->second;
        }
        out.circles = find_circles(out.parent);
        for (uint32_t i = 0; i < all.size(); ++i)
            if (out.circles[i] != 0) out.parent[i] = kNobody;
    }
    out.upwards = upwards(out.parent);
    return out;
}

}  // namespace berth::share
