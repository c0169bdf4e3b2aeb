#include <algorithm>

#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

constexpr PluginId kPlugin = PluginId::TaintToleration;

class TaintFilter final : public Filter {
public:
    PluginId plugin() const override { return kPlugin; }
    bool by_node_alone() const override { return true; }
    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        const auto refused = strikes.refusal(kPlugin, {"node(s) had untolerated taint(s)"}, true);
        strikes.each_open([&](Row row) {
            for (const auto& taint : ledger.node(row).taints) {
                const bool hard = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
                if (hard && !model::tolerates(ask.spec->tolerations, taint)) return strikes.strike(row, refused);
            }
        });
    }
};

// Fewer untolerated PreferNoSchedule taints are better; when no node has any, every node has the full score.
class TaintScorer final : public NodeScorer {
public:
    PluginId plugin() const override { return kPlugin; }
    Scaling scaling() const override { return Scaling::ByMaxReversed; }
    void raw(const Ask& ask, const View& ledger, std::span<const Row> rows, std::span<int64_t> points) const override {
        std::vector<model::Toleration> soft;
        std::copy_if(ask.spec->tolerations.begin(), ask.spec->tolerations.end(), std::back_inserter(soft),
                     [](const auto& t) { return t.effect.empty() || t.effect == "PreferNoSchedule"; });
        for (size_t i = 0; i < rows.size(); ++i) {
            const auto& taints = ledger.node(rows[i]).taints;
            points[i] = std::count_if(taints.begin(), taints.end(), [&](const auto& taint) {
                return taint.effect == "PreferNoSchedule" && !model::tolerates(soft, taint);
            });
        }
    }
};

}  // namespace

std::shared_ptr<const Filter> taint_filter() {
    return std::make_shared<TaintFilter>();
}

std::shared_ptr<const Scorer> taint_scorer() {
    return std::make_shared<TaintScorer>();
}

}  // namespace berth::sched::plugins
