#include "app/bind_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/allocated.h"
#include "sched/decide.h"
#include "sched/draw.h"
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
    if (!links->allocated) {
        return base::conflict(fmt::format("pod \"{}\" has the annotation {} without {}", pod.meta.full_name(),
                                          model::kReservationDraws, model::kReservationAllocated));
    }
    const sched::Ask ask = sched::ask_for(pod, ledger);
    const ledger::Row row = ledger.row_of(pod.node);
    const sched::Credit* credit = row == ledger::kNoRow ? nullptr : ask.credit(row);
    std::vector<std::pair<std::string_view, std::string_view>> wanted{{links->allocated->uid, links->allocated->name}};
    for (const auto& draw : links->draws) wanted.emplace_back(draw.uid, draw.name);
    for (const auto& [uid, name] : wanted) {
        const auto index = ledger.find_reservation(uid);
        if (credit && std::find(credit->matched.begin(), credit->matched.end(), index) != credit->matched.end())
            continue;
        return base::conflict(fmt::format("reservation \"{}\" on node \"{}\" is not there for pod \"{}\"", name,
                                          pod.node, pod.meta.full_name()));
    }
    TRY(judge_room(ask, pod.node, ledger));
    const sched::Offer nominated{{ledger.find_reservation(links->allocated->uid)}};
    if (const auto short_of = sched::too_little(nominated, ask, ledger); !short_of.empty()) {
        return base::conflict(fmt::format("reservation \"{}\" is Restricted and has too little {} left for it",
                                          links->allocated->name, model::resource_name(short_of.front())));
    }
    // Others that it matches may have enough; what counts is what the pod says it takes.
    std::vector<std::string> names;
    ledger.missing(pod.spec->requests, *links, row).for_each([&](model::ResourceId id, int64_t) {
        names.emplace_back(model::resource_name(id));
    });
    if (names.empty()) return {};
    return base::conflict(fmt::format("reservation \"{}\" and node \"{}\" have too little left for it: {}",
                                      links->allocated->name, pod.node, fmt::join(names, ", ")));
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
