#include "run/bind_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "ledger/which.h"
#include "model/allocated.h"
#include "model/preemption_hold.h"
#include "sched/credit.h"
#include "sched/decide.h"
#include "sched/draw.h"
#include "sched/match.h"
#include "sched/plugins/device_share.h"
#include "sched/plugins/numa.h"
#include "sched/plugins/registry.h"
#include "sched/victims.h"

namespace berth::run {
namespace {

Error no_node(const std::string& node) {
    return base::conflict(fmt::format("there is no node \"{}\"", node));
}

Status judge(const sched::Ask& ask, const std::string& node, const ledger::View& ledger,
             const sched::Profile& filters) {
    const ledger::Row row = ledger.row_of(node);
    if (row == ledger::kNoRow) return no_node(node);
    const auto strikes = sched::filter(ask, ledger, filters, row, row + 1);
    if (strikes.open(row)) return {};
    const auto& why = *strikes.why(row);
    Error refused =
        base::conflict(fmt::format("node \"{}\" has no room for it: {}", node, fmt::join(why.reasons, ", ")));
    const auto plugin = sched::name_of(why.plugin);
    refused.causes.push_back(
        {std::string(plugin), fmt::format("Predicate {} failed: {}", plugin, fmt::join(why.reasons, ", ")), ""});
    return refused;
}

// What the reservation itself demands.
Status judge_charge(const ledger::Charge& charge, bool joint, const ledger::View& ledger) {
    const auto& entry = ledger.reservation(charge.reservation);
    const std::string& name = entry.object->meta.name;
    if (joint && entry.policy != model::AllocatePolicy::Default) {
        return base::conflict(fmt::format("reservation \"{}\" is not drawn from beside others", name));
    }
    const auto short_of = sched::withheld_by(charge.reservation, charge.amount, ledger);
    if (short_of.empty()) return {};
    return base::conflict(fmt::format("reservation \"{}\" is Restricted and has too little {} left for it", name,
                                      model::resource_name(short_of.front())));
}

Status judge_parts(const model::Which& which, const model::PodSpec& spec, const std::string& node,
                   const ledger::Charges& charges, const ledger::View& ledger) {
    const ledger::Row row = ledger.row_of(node);
    if (row == ledger::kNoRow) return no_node(node);
    if (const auto why = sched::plugins::judge_record(which.cores, spec, ledger, row, charges); !why.empty()) {
        return base::conflict(fmt::format("node \"{}\" cannot give the cores \"{}\": {}", node,
                                          model::cpu_list_text(which.cores.cpus), why));
    }
    const std::string why = sched::plugins::judge_devices(which.devices, spec, ledger, row, charges);
    if (why.empty()) return {};
    return base::conflict(fmt::format("node \"{}\" cannot give the devices: {}", node, why));
}

// Whether there is anything for judge_parts() to look at.
bool concerns_parts(const model::Which& which, const model::PodSpec& spec) {
    return !which.empty() || spec.devices.asks();
}

// Cores that others have are gone from what is left for those without.
Status judge_amplified(const model::Which& which, const model::PodSpec& spec, const std::string& node,
                       const ledger::Charges& charges, const ledger::View& ledger) {
    const auto cores = static_cast<int64_t>(which.cores.cpus.size());
    const std::string why = sched::plugins::judge_amplified(spec, cores, ledger, ledger.row_of(node), charges);
    if (why.empty()) return {};
    return base::conflict(fmt::format("node \"{}\" has no room for it: {}", node, why));
}

sched::Ask plain_ask(const model::Pod& pod) {
    sched::Ask ask;
    ask.spec = pod.spec.get();
    ask.pod = &pod;
    return ask;
}

// Those who have its ports and claims may be going; other reservations are not.
Status judge_waiting_room(const model::Reservation& reservation, const ledger::View& ledger) {
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

// Those of the pod's links that count on its node; none where they cannot be read: then nobody pays for it.
model::Links counting_links(const model::Pod& pod, const ledger::View& ledger) {
    auto links = model::read_links(pod.meta.annotations);
    if (!links) return {};
    const ledger::Row row = ledger.row_of(pod.node);
    const auto counts = [&](const std::string& uid) {
        const auto found = ledger.find_reservation(uid);
        if (found == ledger::kNone) return false;
        const auto& entry = ledger.reservation(found);
        return entry.holds_room() && entry.row == row && model::owned_by(*entry.object, pod);
    };
    if (links->allocated && !counts(links->allocated->uid)) links->allocated.reset();
    std::erase_if(links->draws, [&](const auto& draw) { return !counts(draw.uid); });
    return std::move(*links);
}

// Kubelets pass over what they do not know: a resource of the cluster, not of the node.
bool unknown_to_kubelet(model::ResourceId id, const model::Node& node) {
    const std::string_view name = model::resource_name(id);
    return name.find('/') != std::string_view::npos && name.find("kubernetes.io/") == std::string_view::npos &&
           !node.allocatable.has(id);
}

// In the order in which a kubelet looks at them.
std::vector<model::ResourceId> in_order(const Resources& amounts) {
    std::vector<model::ResourceId> ids;
    amounts.for_each([&](model::ResourceId id, int64_t) { ids.push_back(id); });
    const auto place = [](model::ResourceId id) {
        const int basic = id == model::kPods ? -1 : std::min<int>(id.index, model::kPods.index);
        return std::tuple(basic, model::resource_name(id));
    };
    std::sort(ids.begin(), ids.end(), [&](auto a, auto b) { return place(a) < place(b); });
    return ids;
}

std::string names_of(const Resources& amounts) {
    std::vector<std::string_view> names;
    for (const auto id : in_order(amounts)) names.push_back(model::resource_name(id));
    return fmt::format("{}", fmt::join(names, ", "));
}

// Cpu is in thousandths, everything else in whole units.
Error out_of(model::ResourceId id, const model::Pod& pod, const ledger::View& ledger) {
    const ledger::Row row = ledger.row_of(pod.node);
    const auto* column = ledger.column(id);
    const auto name = model::resource_name(id);
    Error refused = base::conflict(fmt::format("node \"{}\" has no room for it: Insufficient {}", pod.node, name));
    refused.causes.push_back(
        {fmt::format("OutOf{}", name),
         fmt::format("Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}", name,
                     pod.spec->requests.get(id), column ? column->used[row] : 0, column ? column->allocatable[row] : 0),
         ""});
    return refused;
}

// A further reservation gives no more than it has.
Status judge_draws(const model::Links& links, const ledger::View& ledger) {
    for (const auto& draw : links.draws) {
        const auto index = ledger.find_reservation(draw.uid);
        Status enough;
        draw.amount.for_each([&](model::ResourceId id, int64_t amount) {
            if (!enough || id == model::kPods || amount <= ledger.remaining(index, id)) return;
            enough = base::conflict(
                fmt::format("reservation \"{}\" has too little {} left for it", draw.name, model::resource_name(id)));
        });
        if (!enough) return enough;
    }
    return {};
}

// What a pod draws from is written with its binding, and may only be taken off.
Status judge_links_stay(const model::Pod& before, const model::Pod& after) {
    const auto was = model::read_links(before.meta.annotations);
    const auto is = model::read_links(after.meta.annotations);
    if (!was || (is && (is->empty() || *is == *was))) return {};
    return base::conflict(
        fmt::format("pod \"{}\" is bound, and what it draws from does not change", after.meta.full_name()));
}

// Nor which ones it has, but that it has none any more.
Status judge_which_stays(const model::Pod& before, const model::Pod& after) {
    const model::Which is = model::read_which(after.meta.annotations);
    if (is.empty() || is == model::read_which(before.meta.annotations)) return {};
    return base::conflict(
        fmt::format("pod \"{}\" is bound, and which cores and devices it has does not change", after.meta.full_name()));
}

// As most changes do: they are those of the status.
bool takes_the_same(const ledger::PodEntry& entry, const model::Pod& pod) {
    if (entry.spec->requests != pod.spec->requests) return false;
    const auto& notes = pod.meta.annotations;
    if (!ledger::same_which(entry.which, ledger::which_of(pod))) return false;
    if (!entry.linked && !notes.has(model::kReservationAllocated) && !notes.has(model::kReservationDraws)) return true;
    const auto links = model::read_links(notes);
    return entry.linked && links && entry.linked->fault.empty() && entry.linked->links == *links &&
           entry.linked->owners == pod.meta.owners && entry.spec->labels == pod.spec->labels;
}

// As the node would have said it.
Error by_node(Error refused) {
    for (auto& cause : refused.causes) cause.field = "spec.nodeName";
    return refused;
}

}  // namespace

BindRules::BindRules(const std::map<std::string, sched::Profile, std::less<>>& profiles) {
    ports_.filters = {sched::plugins::node_ports()};
    fit_.filters = {sched::plugins::fit_filter()};
    holders_.filters = {sched::plugins::volume_restrictions()};
    attachments_.filters = {sched::plugins::volume_limits()};
    // Who does without the filter gets ours.
    const auto fit_of = [&](const sched::Profile& profile) {
        sched::Profile fit = fit_;
        for (const auto& filter : profile.filters) {
            if (filter->plugin() == sched::PluginId::NodeResourcesFit) fit.filters = {filter};
        }
        return fit;
    };
    for (const auto& [name, profile] : profiles) fit_by_scheduler_.emplace(name, fit_of(profile));
    reservations_fit_ = profiles.empty() ? fit_ : fit_by_scheduler_.begin()->second;
}

const sched::Profile& BindRules::fit_for(const model::Pod& pod) const {
    const auto found = fit_by_scheduler_.find(pod.spec->scheduler_name);
    return found == fit_by_scheduler_.end() ? fit_ : found->second;
}

// What its node lacks for a pod that is not counted there, of what its scheduler looks at.
Resources BindRules::lacking(const model::Pod& pod, const ledger::View& ledger) const {
    const auto& fit = *fit_for(pod).filters.front();
    const ledger::Row row = ledger.row_of(pod.node);
    const auto charges = ledger.charges_of(pod.spec->requests, counting_links(pod, ledger), row);
    Resources out;
    ledger.lacking(pod.spec->requests, charges, row).for_each([&](model::ResourceId id, int64_t amount) {
        if (!sched::plugins::ignores(fit, id)) out.set(id, amount);
    });
    return out;
}

// A port or a claim is there for every owner of the reservation that holds it, whatever it draws from; room and places
// to attach a volume are given by the reservations that the pod says it draws from.
Status BindRules::judge_bind(const model::Pod& pod, const ledger::View& ledger) const {
    const auto links = model::read_links(pod.meta.annotations);
    if (!links) return base::conflict(links.error().message);
    TRY(judge_which(pod, *links, ledger));
    if (links->empty() && pod.spec->ports.empty() && pod.spec->volumes.empty()) {
        return judge(plain_ask(pod), pod.node, ledger, fit_for(pod));
    }
    const sched::Ask ask = sched::ask_for(pod, ledger);
    TRY(judge(ask, pod.node, ledger, ports_));
    if (links->empty()) {
        TRY(judge(plain_ask(pod), pod.node, ledger, fit_for(pod)));
    } else {
        TRY(judge_links(ask, *links, ledger));
    }
    return pod.spec->volumes.empty() ? Status() : judge_volumes(ask, *links, ledger);
}

Status BindRules::judge_links(const sched::Ask& ask, const model::Links& links, const ledger::View& ledger) const {
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
    TRY(judge_draws(links, ledger));
    const Resources lacks = lacking(pod, ledger);
    if (lacks.empty()) return {};
    return base::conflict(fmt::format("reservation \"{}\" and node \"{}\" have too little left for it: {}",
                                      links.allocated->name, pod.node, names_of(lacks)));
}

// Which ones of the node's parts it says it has must be there for it: nobody else's, and no others than there are.
Status BindRules::judge_which(const model::Pod& pod, const model::Links& links, const ledger::View& ledger) {
    const model::Which which = model::read_which(pod.meta.annotations);
    const ledger::Row row = ledger.row_of(pod.node);
    const bool parts = concerns_parts(which, *pod.spec);
    if (!parts && (row == ledger::kNoRow || ledger.cores().at(row) == nullptr)) return {};
    if (!which.any_fault().empty()) return base::conflict(which.any_fault());
    if (row == ledger::kNoRow) return no_node(pod.node);
    const auto charges = ledger.charges_of(pod.spec->requests, links, row);
    if (parts) TRY(judge_parts(which, *pod.spec, pod.node, charges, ledger));
    return judge_amplified(which, *pod.spec, pod.node, charges, ledger);
}

// What it has does not change, so it must stay as much as it asks for, and what those who pay for it hold.
// E.g. an owner that is none any more has cores that are the reservation's.
Status BindRules::judge_which_serves(const model::Pod& before, const model::Pod& after, const ledger::View& ledger) {
    const auto fits = judge_which(after, counting_links(after, ledger), ledger);
    return fits || !judge_which(before, counting_links(before, ledger), ledger) ? Status() : fits;
}

Status BindRules::judge_volumes(const sched::Ask& ask, const model::Links& links, const ledger::View& ledger) const {
    TRY(judge(ask, ask.pod->node, ledger, holders_));
    sched::Ask drawing = plain_ask(*ask.pod);
    sched::Few from;
    for (const auto& named : links.named()) from.push_back(ledger.find_reservation(named.uid));
    if (!from.empty()) drawing.credits[ledger.row_of(ask.pod->node)] = sched::credit_of(std::move(from), ledger);
    return judge(drawing, ask.pod->node, ledger, attachments_);
}

Status BindRules::judge_created(const model::Pod& pod, const ledger::View& ledger) const {
    const ledger::Row row = ledger.row_of(pod.node);
    if (row == ledger::kNoRow) {
        Error refused = no_node(pod.node);
        refused.causes.push_back({"NodeNotFound", fmt::format("node \"{}\" not found", pod.node), ""});
        return by_node(std::move(refused));
    }
    if (auto fits = judge_which(pod, counting_links(pod, ledger), ledger); !fits) return by_node(fits.error());
    const sched::Ask ask = sched::ask_for(pod, ledger);
    if (auto fits = judge(ask, pod.node, ledger, ports_); !fits) return by_node(fits.error());
    for (const auto id : in_order(lacking(pod, ledger))) {
        if (!unknown_to_kubelet(id, ledger.node(row))) return by_node(out_of(id, pod, ledger));
    }
    if (pod.spec->volumes.empty()) return {};
    if (auto fits = judge_volumes(ask, counting_links(pod, ledger), ledger); !fits) return by_node(fits.error());
    return {};
}

Status BindRules::judge_change(const model::Pod& after, ledger::PodIndex index, ledger::Ledger& ledger,
                               const std::function<Result<model::Pod>()>& before) const {
    const auto& entry = ledger.pod(index);
    if (ledger.node_of(index) != after.node) {
        return base::conflict(
            fmt::format("pod {} is already assigned to node \"{}\"", after.meta.name, ledger.node_of(index)));
    }
    if (takes_the_same(entry, after)) return {};
    if (entry.row == ledger::kNoRow) {
        return base::conflict(fmt::format("there is no node \"{}\" that could say whether it fits", after.node));
    }
    const model::Pod was = TRY(before());
    sched::Lifted lifted(ledger);
    lifted.lift(index);
    return judge_growth(was, after, ledger);
}

Status BindRules::judge_growth(const model::Pod& before, const model::Pod& after, const ledger::View& ledger) const {
    TRY(judge_links_stay(before, after));
    TRY(judge_which_stays(before, after));
    TRY(judge_which_serves(before, after, ledger));
    const Resources lacks = lacking(after, ledger);
    const Resources lacked = lacking(before, ledger);
    for (const auto id : in_order(lacks)) {
        if (lacks.get(id) > lacked.get(id)) return out_of(id, after, ledger);
    }
    const auto links = counting_links(after, ledger);
    if (!links.allocated) return {};
    const auto nominated = ledger.find_reservation(links.allocated->uid);
    const auto was_short = sched::withheld_by(nominated, before.spec->requests, ledger);
    for (const auto id : sched::withheld_by(nominated, after.spec->requests, ledger)) {
        if (std::find(was_short.begin(), was_short.end(), id) != was_short.end()) continue;
        return base::conflict(fmt::format("reservation \"{}\" is Restricted and has too little {} left for it",
                                          links.allocated->name, model::resource_name(id)));
    }
    return {};
}

Status BindRules::judge_opening(const model::Reservation& reservation, const ledger::View& ledger) {
    if (!reservation.which.any_fault().empty()) return base::conflict(reservation.which.any_fault());
    if (!concerns_parts(reservation.which, *reservation.spec)) return {};
    return judge_parts(reservation.which, *reservation.spec, reservation.node, {}, ledger);
}

// It holds what its status says, which may be more than its template asks for.
Status BindRules::judge_place(const model::Reservation& reservation, const ledger::View& ledger) const {
    const auto known = ledger.find_reservation(reservation.meta.uid);
    if (known != ledger::kNone && ledger.reservation(known).ended) {
        return base::conflict(fmt::format("the time of reservation \"{}\" is over", reservation.meta.name));
    }
    model::PodSpec held = *reservation.spec;
    if (!reservation.allocatable.empty()) held.requests = reservation.allocatable;
    held.requests.set(model::kPods, 1);
    sched::Ask ask = sched::ask_for(reservation);
    ask.spec = &held;
    const bool waits = reservation.phase == model::ReservationPhase::Waiting;
    if (waits && !model::preemption_hold_owner(reservation).empty()) return judge_waiting_room(reservation, ledger);
    TRY(judge(ask, reservation.node, ledger, ports_));
    if (!reservation.which.any_fault().empty()) return base::conflict(reservation.which.any_fault());
    if (!waits || !reservation.which.empty()) TRY(judge_parts(reservation.which, held, reservation.node, {}, ledger));
    if (!waits) TRY(judge_amplified(reservation.which, held, reservation.node, {}, ledger));
    if (!waits) TRY(judge(ask, reservation.node, ledger, reservations_fit_));
    if (reservation.spec->volumes.empty()) return {};
    TRY(judge(ask, reservation.node, ledger, holders_));
    return judge(ask, reservation.node, ledger, attachments_);
}

}  // namespace berth::run
