#include <algorithm>
#include <cmath>

#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

// trunc((1 - |f1 - f2| / 2) x 100), f = min(1, requested / allocatable) of cpu and of memory, real requests.
// A pod that asks for neither gets 0; a node that has only one of the two gets 100.
class BalancedAllocation final : public Scorer {
public:
    std::string_view name() const override { return "NodeResourcesBalancedAllocation"; }
    void score(const Ask& ask, const Ledger& ledger, std::span<const Row> feasible,
               std::span<int64_t> points) const override {
        const int64_t cpu = ask.spec->requests.get(model::kCpu);
        const int64_t memory = ask.spec->requests.get(model::kMemory);
        if (cpu == 0 && memory == 0) return std::fill(points.begin(), points.end(), 0);
        const auto* cpus = ledger.column(model::kCpu);
        const auto* memories = ledger.column(model::kMemory);
        for (size_t i = 0; i < feasible.size(); ++i) {
            const double f1 = fraction(cpus, feasible[i], cpu);
            const double f2 = fraction(memories, feasible[i], memory);
            const double deviation = f1 < 0 || f2 < 0 ? 0 : std::fabs((f1 - f2) / 2);
            points[i] = static_cast<int64_t>((1 - deviation) * static_cast<double>(kMaxScore));
        }
    }

private:
    // -1 when the node has none of it.
    static double fraction(const ledger::Column* column, Row row, int64_t asked) {
        if (!column || column->allocatable[row] == 0) return -1;
        const double used = static_cast<double>(column->used[row]) + static_cast<double>(asked);
        return std::min(1.0, used / static_cast<double>(column->allocatable[row]));
    }
};

}  // namespace

std::shared_ptr<const Scorer> balanced_allocation() {
    return std::make_shared<BalancedAllocation>();
}

}  // namespace berth::sched::plugins
