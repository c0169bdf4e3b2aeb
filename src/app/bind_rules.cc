#include "app/bind_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/allocated.h"
#include "model/room.h"
#include "sched/credit.h"
#include "sched/decide.h"
#include "sched/draw.h"
#include "sched/plugins/registry.h"

namespace berth::app {
namespace {

Status judge(const sched::Ask& ask, const std::string& node, const ledger::Ledger& ledger,
             const sched::Profile& filters) {
    const ledger::Row row = ledger.row_of(node);
    if (row == ledger::kNoRow) return base::conflict(fmt::format("there is no node \"{}\"", node));
    const auto strikes = sched::filter(ask, ledger, filters, row, row + 1);
    if (strikes.open(row)) return {};
    return base::conflict(
        fmt::format("node \"{}\" has no room for it: {}", node, fmt::join(strikes.why(row)->reasons, ", ")));
}

// What the reservation itself demands.
Status judge_charge(const ledger::Charge& charge, bool joint, const ledger::Ledger& ledger) {
    const auto& entry = ledger.reservation(charge.reservation);
    const std::string& name = entry.object->meta.name;
    if (joint && entry.policy != model::AllocatePolicy::Default) {
        return base::conflict(fmt::format("reservation \"{}\" is not drawn from together with others", name));
    }
    const auto short_of = sched::withheld_by(charge.reservation, charge.amount, ledger);
    if (short_of.empty()) return {};
    return base::conflict(fmt::format("reservation \"{}\" is Restricted and has too little {} left for it", name,
                                      model::resource_name(short_of.front())));
}

sched::Ask plain_ask(const model::Pod& pod) {
    sched::Ask ask;
    ask.spec = pod.spec.get();
    ask.pod = &pod;
    return ask;
}

// Those who have its ports and claims may be going; other reservations are not.
Status judge_waiting_room(const model::Reservation& reservation, const ledger::Ledger& ledger) {
    const ledger::Row row = ledger.row_of(reservation.node);
    if (row == ledger::kNoRow) return base::conflict(fmt::format("there is no node \"{}\"", reservation.node));
    for (const auto index : ledger.at(row).reservations) {
        const auto& other = ledger.reservation(index);
        for (const auto& port : reservation.spec->ports) {
            const bool named = std::any_of(other.spec->ports.begin(), other.spec->ports.end(),
                                           [&](const auto& held) { return ledger::clash(held, port); });
            if (!named) continue;
            return base::conflict(fmt::format("reservation \"{}\" holds port {} of node \"{}\"",
                                              other.object->meta.name, port.port, reservation.node));
        }
    }
    return {};
}

}  // namespace

BindRules::BindRules() {
    ports_.filters = {sched::plugins::node_ports()};
    fit_.filters = {sched::plugins::fit_filter()};
    holders_.filters = {sched::plugins::volume_restrictions()};
    attachments_.filters = {sched::plugins::volume_limits()};
}

// A port or a claim is there for every owner of the reservation that holds it, whatever it draws from; room and places
// to attach a volume are given by the reservations that the pod says it draws from.
Status BindRules::judge_bind(const model::Pod& pod, const ledger::Ledger& ledger) const {
    const auto links = model::read_links(pod.meta.annotations);
    if (!links) return base::conflict(links.error().message);
    if (links->empty() && pod.spec->ports.empty() && pod.spec->volumes.empty()) {
        return judge(plain_ask(pod), pod.node, ledger, fit_);
    }
    const sched::Ask ask = sched::ask_for(pod, ledger);
    TRY(judge(ask, pod.node, ledger, ports_));
    if (links->empty()) {
        TRY(judge(plain_ask(pod), pod.node, ledger, fit_));
    } else {
        TRY(judge_links(ask, *links, ledger));
    }
    return pod.spec->volumes.empty() ? Status() : judge_volumes(ask, *links, ledger);
}

Status BindRules::judge_links(const sched::Ask& ask, const model::Links& links, const ledger::Ledger& ledger) const {
    const model::Pod& pod = *ask.pod;
    if (!links.allocated) {
        return base::conflict(fmt::format("pod \"{}\" has the annotation {} without {}", pod.meta.full_name(),
                                          model::kReservationDraws, model::kReservationAllocated));
    }
    const ledger::Row row = ledger.row_of(pod.node);
    const sched::Credit* credit = row == ledger::kNoRow ? nullptr : ask.credit(row);
    for (const auto& [name, uid] : links.named()) {
        if (credit && credit->covers(ledger.find_reservation(uid))) continue;
        return base::conflict(fmt::format("reservation \"{}\" on node \"{}\" is not there for pod \"{}\"", name,
                                          pod.node, pod.meta.full_name()));
    }
    // Others that it matches may have enough; what counts is what the pod says it takes.
    const ledger::Charges charges = ledger.charges_of(pod.spec->requests, links, row);
    for (const auto& charge : charges) TRY(judge_charge(charge, charges.size() > 1, ledger));
    std::vector<std::string> names;
    ledger.lacking(pod.spec->requests, charges, row).for_each([&](model::ResourceId id, int64_t) {
        names.emplace_back(model::resource_name(id));
    });
    if (names.empty()) return {};
    return base::conflict(fmt::format("reservation \"{}\" and node \"{}\" have too little left for it: {}",
                                      links.allocated->name, pod.node, fmt::join(names, ", ")));
}

Status BindRules::judge_volumes(const sched::Ask& ask, const model::Links& links, const ledger::Ledger& ledger) const {
    TRY(judge(ask, ask.pod->node, ledger, holders_));
    sched::Ask drawing = plain_ask(*ask.pod);
    sched::Few from;
    for (const auto& named : links.named()) from.push_back(ledger.find_reservation(named.uid));
    if (!from.empty()) drawing.credits[ledger.row_of(ask.pod->node)] = sched::credit_of(std::move(from), ledger);
    return judge(drawing, ask.pod->node, ledger, attachments_);
}

Status BindRules::judge_place(const model::Reservation& reservation, const ledger::Ledger& ledger) const {
    const auto known = ledger.find_reservation(reservation.meta.uid);
    if (known != ledger::kNone && ledger.reservation(known).ended) {
        return base::conflict(fmt::format("the time of reservation \"{}\" is over", reservation.meta.name));
    }
    const bool waits = reservation.phase == model::ReservationPhase::Waiting;
    if (waits && !model::room_owner(reservation).empty()) return judge_waiting_room(reservation, ledger);
    const sched::Ask ask = sched::ask_for(reservation);
    TRY(judge(ask, reservation.node, ledger, ports_));
    if (!waits) TRY(judge(ask, reservation.node, ledger, fit_));
    if (reservation.spec->volumes.empty()) return {};
    TRY(judge(ask, reservation.node, ledger, holders_));
    return judge(ask, reservation.node, ledger, attachments_);
}

}  // namespace berth::app
