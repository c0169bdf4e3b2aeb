#include <algorithm>

#include "sched/plugins/registry.h"
#include "sched/points.h"

namespace berth::sched::plugins {
namespace {

// A pod that asks for neither cpu nor memory gets 0.
class BalancedAllocation final : public Scorer {
public:
    PluginId plugin() const override { return PluginId::NodeResourcesBalancedAllocation; }
    RowTerm row_term() const override { return RowTerm::BalancedAllocation; }
    void score(const Ask& ask, const View& ledger, std::span<const Row> feasible,
               std::span<int64_t> points) const override {
        const int64_t cpu = ask.spec->requests.get(model::kCpu);
        const int64_t memory = ask.spec->requests.get(model::kMemory);
        if (cpu == 0 && memory == 0) return std::fill(points.begin(), points.end(), 0);
        const auto* cpus = ledger.column(model::kCpu);
        const auto* memories = ledger.column(model::kMemory);
        for (size_t i = 0; i < feasible.size(); ++i) {
            const Row row = feasible[i];
            const RowUse use{cpus ? cpus->allocatable[row] : 0, cpus ? cpus->used[row] : 0,
                             memories ? memories->allocatable[row] : 0, memories ? memories->used[row] : 0};
            points[i] = balanced_points(use, cpu, memory);
        }
    }
};

}  // namespace

std::shared_ptr<const Scorer> balanced_allocation() {
    return std::make_shared<BalancedAllocation>();
}

}  // namespace berth::sched::plugins
