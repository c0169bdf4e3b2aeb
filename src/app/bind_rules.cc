#include "app/bind_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/allocated.h"
#include "sched/decide.h"
#include "sched/plugins/registry.h"

namespace berth::app {

BindRules::BindRules() {
    filters_.filters = {sched::plugins::node_ports(), sched::plugins::fit_filter()};
}

Status BindRules::judge_bind(const model::Pod& pod, const ledger::Ledger& ledger) const {
    const auto links = model::read_links(pod.meta.annotations);
    if (!links) return base::conflict(links.error().message);
    if (links->empty()) {
        sched::Ask ask;
        ask.spec = pod.spec.get();
        ask.pod = &pod;
        return judge_room(ask, pod.node, ledger);
    }
    const sched::Ask ask = sched::ask_for(pod, ledger);
    const ledger::Row row = ledger.row_of(pod.node);
    const sched::Credit* credit = row == ledger::kNoRow ? nullptr : ask.credit(row);
    const auto wanted = ledger.find_reservation(links->allocated->uid);
    const bool matched =
        credit && std::find(credit->matched.begin(), credit->matched.end(), wanted) != credit->matched.end();
    if (!matched) {
        return base::conflict(fmt::format("reservation \"{}\" on node \"{}\" is not there for pod \"{}\"",
                                          links->allocated->name, pod.node, pod.meta.full_name()));
    }
    return judge_room(ask, pod.node, ledger);
}

Status BindRules::judge_room(const sched::Ask& ask, const std::string& node, const ledger::Ledger& ledger) const {
    const ledger::Row row = ledger.row_of(node);
    if (row == ledger::kNoRow) return base::conflict(fmt::format("there is no node \"{}\"", node));
    const auto strikes = sched::filter(ask, ledger, filters_, row, row + 1);
    if (strikes.open(row)) return {};
    return base::conflict(
        fmt::format("node \"{}\" has no room for it: {}", node, fmt::join(strikes.why(row)->reasons, ", ")));
}

}  // namespace berth::app
