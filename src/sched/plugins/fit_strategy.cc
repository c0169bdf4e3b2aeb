// NodeResourcesFit's score by another strategy than LeastAllocated of cpu and memory, and BalancedAllocation over other
// resources than these.
#include <algorithm>
#include <cmath>

#include "base/int128.h"
#include "base/saturating.h"
#include "sched/plugins/registry.h"
#include "sched/points.h"

namespace berth::sched::plugins {
namespace {

// What a row has, and what it would hold with the ask. A resource that the pod does not ask for, other than the
// node's basic ones, does not take part.
struct Held {
    int64_t allocatable = 0;
    int64_t requested = 0;
};

bool is_basic(model::ResourceId id) {
    return id == model::kCpu || id == model::kMemory || id == model::kEphemeralStorage;
}

// With the amounts that stand in for missing requests (scored), or as requested.
Held held_on(const Ask& ask, const View& ledger, Row row, model::ResourceId id, bool scored) {
    const auto* column = ledger.column(id);
    const int64_t asked = ask.spec->requests.get(id);
    if (!column || (asked == 0 && !is_basic(id))) return {};
    const int64_t allocatable = column->allocatable[row];
    if (scored && id == model::kCpu)
        return {allocatable, base::saturating_add(ledger.scoring_cpu()[row], ask.spec->asked_cpu_milli())};
    if (scored && id == model::kMemory)
        return {allocatable, base::saturating_add(ledger.scoring_memory()[row], ask.spec->asked_memory())};
    return {allocatable, base::saturating_add(column->used[row], asked)};
}

int64_t percent(int64_t part, int64_t of) {
    return static_cast<int64_t>(static_cast<int128>(part) * 100 / of);
}

// The line through the shape's points; flat before the first and after the last.
// E.g. 0 -> 100, 100 -> 0 at 30: 100 + (0 - 100) x 30 / 100 = 70.
int64_t on_line(const std::vector<ShapePoint>& shape, int64_t utilization) {
    for (size_t i = 0; i < shape.size(); ++i) {
        if (utilization > shape[i].utilization) continue;
        if (i == 0) return shape[0].score;
        const auto& [x, y] = shape[i - 1];
        return y + (shape[i].score - y) * (utilization - x) / (shape[i].utilization - x);
    }
    return shape.back().score;
}

class FitScorer final : public Scorer {
public:
    explicit FitScorer(FitStrategy strategy) : strategy_(std::move(strategy)) {}
    PluginId plugin() const override { return PluginId::NodeResourcesFit; }
    void score(const Ask& ask, const View& ledger, std::span<const Row> feasible,
               std::span<int64_t> points) const override {
        for (size_t i = 0; i < feasible.size(); ++i) points[i] = of_row(ask, ledger, feasible[i]);
    }

private:
    int64_t of_row(const Ask& ask, const View& ledger, Row row) const {
        int64_t total = 0;
        int64_t weights = 0;
        const bool ratio = strategy_.type == FitStrategy::Type::RequestedToCapacityRatio;
        for (const auto& [id, weight] : strategy_.resources) {
            const Held held = held_on(ask, ledger, row, id, true);
            if (held.allocatable == 0) continue;
            const int64_t points = of_resource(held);
            // A ratio of 0 takes no part in the mean.
            if (ratio && points <= 0) continue;
            total += points * weight;
            weights += weight;
        }
        if (weights == 0) return 0;
        return ratio ? std::llround(static_cast<double>(total) / static_cast<double>(weights)) : total / weights;
    }

    int64_t of_resource(const Held& held) const {
        const bool over = held.requested > held.allocatable;
        switch (strategy_.type) {
            case FitStrategy::Type::LeastAllocated:
                return over ? 0 : percent(held.allocatable - held.requested, held.allocatable);
            case FitStrategy::Type::MostAllocated:
                return over ? kMaxScore : percent(held.requested, held.allocatable);
            case FitStrategy::Type::RequestedToCapacityRatio:
                return on_line(strategy_.shape, over ? 100 : percent(held.requested, held.allocatable));
        }
        return 0;
    }

    FitStrategy strategy_;
};

// trunc((1 - s) x 100), s the standard deviation of the fractions; of two it is half their distance.
class BalancedOver final : public Scorer {
public:
    explicit BalancedOver(std::vector<model::ResourceId> resources) : resources_(std::move(resources)) {}
    PluginId plugin() const override { return PluginId::NodeResourcesBalancedAllocation; }
    void score(const Ask& ask, const View& ledger, std::span<const Row> feasible,
               std::span<int64_t> points) const override {
        const bool asks = std::any_of(resources_.begin(), resources_.end(),
                                      [&](model::ResourceId id) { return ask.spec->requests.get(id) > 0; });
        if (!asks) return std::fill(points.begin(), points.end(), 0);
        for (size_t i = 0; i < feasible.size(); ++i) points[i] = of_row(ask, ledger, feasible[i]);
    }

private:
    int64_t of_row(const Ask& ask, const View& ledger, Row row) const {
        std::vector<double> fractions;
        for (const auto id : resources_) {
            const Held held = held_on(ask, ledger, row, id, false);
            if (held.allocatable == 0) continue;
            fractions.push_back(
                std::min(1.0, static_cast<double>(held.requested) / static_cast<double>(held.allocatable)));
        }
        double deviation = 0;
        if (fractions.size() == 2) {
            deviation = std::fabs((fractions[0] - fractions[1]) / 2);
        } else if (fractions.size() > 2) {
            const auto count = static_cast<double>(fractions.size());
            double mean = 0;
            for (const double fraction : fractions) mean += fraction;
            mean /= count;
            double squares = 0;
            for (const double fraction : fractions) squares += (fraction - mean) * (fraction - mean);
            deviation = std::sqrt(squares / count);
        }
        return static_cast<int64_t>((1 - deviation) * static_cast<double>(kMaxScore));
    }

    std::vector<model::ResourceId> resources_;
};

}  // namespace

std::shared_ptr<const Scorer> fit_scorer(FitStrategy strategy) {
    if (strategy == FitStrategy()) return least_allocated();
    return std::make_shared<FitScorer>(std::move(strategy));
}

std::shared_ptr<const Scorer> balanced_allocation(std::vector<model::ResourceId> resources) {
    if (resources == std::vector{model::kCpu, model::kMemory}) return balanced_allocation();
    return std::make_shared<BalancedOver>(std::move(resources));
}

}  // namespace berth::sched::plugins
