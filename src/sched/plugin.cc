#include "sched/plugin.h"

#include <algorithm>

namespace berth::sched {

int64_t scaled(int64_t point, int64_t highest, bool reversed) {
    const int64_t part = highest == 0 ? 0 : point * kMaxScore / highest;
    return reversed ? kMaxScore - part : part;
}

void normalize(std::span<int64_t> points, bool reversed) {
    const int64_t highest = points.empty() ? 0 : *std::max_element(points.begin(), points.end());
    for (auto& point : points) point = scaled(point, highest, reversed);
}

void Scorer::score_open(const Ask& ask, const View& ledger, std::span<const uint8_t> open,
                        std::span<int64_t> points) const {
    std::vector<Row> feasible;
    for (Row row = 0; row < open.size(); ++row) {
        if (open[row]) feasible.push_back(row);
    }
    std::vector<int64_t> packed(feasible.size());
    score(ask, ledger, feasible, packed);
    for (size_t i = 0; i < feasible.size(); ++i) points[feasible[i]] = packed[i];
}

void NodeScorer::score(const Ask& ask, const View& ledger, std::span<const Row> feasible,
                       std::span<int64_t> points) const {
    raw(ask, ledger, feasible, points);
    if (scaling() != Scaling::None) normalize(points, scaling() == Scaling::ByMaxReversed);
}

}  // namespace berth::sched
