#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

class NodePorts final : public Filter {
public:
    PluginId plugin() const override { return PluginId::NodePorts; }
    RowTerm row_term() const override { return RowTerm::Ports; }
    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        const auto& wanted = ask.spec->ports;
        if (wanted.empty()) return;
        const auto refused =
            strikes.refusal(plugin(), {"node(s) didn't have free ports for the requested pod ports"}, false);
        strikes.each_open([&](Row row) {
            const auto& held = ledger.at(row).ports;
            const Credit* credit = ask.credit(row);
            const bool clashes = credit ? held.clashes(wanted, credit->ports) : held.clashes(wanted);
            if (clashes) strikes.strike(row, refused);
        });
    }
};

}  // namespace

std::shared_ptr<const Filter> node_ports() {
    return std::make_shared<NodePorts>();
}

}  // namespace berth::sched::plugins
