#include "sched/plugins/registry.h"

#include <algorithm>

namespace berth::sched {

// A row's refusal is that of the first filter in this order.
const Profile& default_profile() {
    using namespace plugins;
    static const Profile profile{
        .filters = {reservation_match(), named_nodes_filter(), volume_claims(), node_unschedulable(), node_name(),
                    taint_filter(), node_affinity_filter(), node_ports(), fit_filter(), volume_restrictions(),
                    volume_limits(), volume_binding(), volume_zone(), spread_filter(system_spread_defaults()),
                    pod_affinity_filter(), reservation_fit()},
        .scorers = {{taint_scorer(), 3},
                    {node_affinity_scorer(), 2},
                    {least_allocated(), 1},
                    {spread_scorer(system_spread_defaults()), 2},
                    {pod_affinity_scorer({}), 2},
                    {balanced_allocation(), 1},
                    {image_locality(), 1}},
    };
    return profile;
}

int64_t scaled(int64_t point, int64_t highest, bool reversed) {
    const int64_t part = highest == 0 ? 0 : point * kMaxScore / highest;
    return reversed ? kMaxScore - part : part;
}

void normalize(std::span<int64_t> points, bool reversed) {
    const int64_t highest = points.empty() ? 0 : *std::max_element(points.begin(), points.end());
    for (auto& point : points) point = scaled(point, highest, reversed);
}

void Scorer::score_open(const Ask& ask, const Ledger& ledger, std::span<const uint8_t> open,
                        std::span<int64_t> points) const {
    std::vector<Row> feasible;
    for (Row row = 0; row < open.size(); ++row) {
        if (open[row]) feasible.push_back(row);
    }
    std::vector<int64_t> packed(feasible.size());
    score(ask, ledger, feasible, packed);
    for (size_t i = 0; i < feasible.size(); ++i) points[feasible[i]] = packed[i];
}

void NodeScorer::score(const Ask& ask, const Ledger& ledger, std::span<const Row> feasible,
                       std::span<int64_t> points) const {
    raw(ask, ledger, feasible, points);
    if (scaling() != Scaling::None) normalize(points, scaling() == Scaling::ByMaxReversed);
}

}  // namespace berth::sched
