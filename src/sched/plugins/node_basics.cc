// NodeUnschedulable and NodeName.
#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

class NodeUnschedulable final : public Filter {
public:
    PluginId plugin() const override { return PluginId::NodeUnschedulable; }
    bool by_node_alone() const override { return true; }
    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        static const model::Taint kCordoned{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
        if (model::tolerates(ask.spec->tolerations, kCordoned)) return;
        const auto refused = strikes.refusal(plugin(), {"node(s) were unschedulable"}, true);
        strikes.each_open([&](Row row) {
            if (ledger.node(row).unschedulable) strikes.strike(row, refused);
        });
    }
};

class NodeName final : public Filter {
public:
    PluginId plugin() const override { return PluginId::NodeName; }
    bool by_node_alone() const override { return true; }
    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        if (ask.spec->node_name.empty()) return;
        const auto refused = strikes.refusal(plugin(), {"node(s) didn't match the requested node name"}, true);
        const Row wanted = ledger.row_of(ask.spec->node_name);
        strikes.each_open([&](Row row) {
            if (row != wanted) strikes.strike(row, refused);
        });
    }
};

}  // namespace

std::shared_ptr<const Filter> node_unschedulable() {
    return std::make_shared<NodeUnschedulable>();
}

std::shared_ptr<const Filter> node_name() {
    return std::make_shared<NodeName>();
}

}  // namespace berth::sched::plugins
