#include "sched/nominated.h"

#include <algorithm>

#include "model/preemption_hold.h"
#include "sched/credit.h"
#include "sched/kept_parts.h"
#include "sched/which.h"

namespace berth::sched {
namespace {

using PodPtr = std::shared_ptr<const model::Pod>;
using ChargesPtr = std::shared_ptr<const ledger::Charges>;

ChargesPtr charges_of(const PromisedPtr& promised) {
    return promised ? ChargesPtr(promised, &promised->charges) : nullptr;
}

bool is_itself(const model::Pod& pod, const Ask& ask) {
    if (ask.reservation) return model::preemption_hold_owner(*ask.reservation) == pod.meta.uid;
    return ask.pod && ask.pod->meta.uid == pod.meta.uid;
}

bool draws_on(const model::Pod& pod, const View& ledger, Row row) {
    return !ledger.at(row).reservations.empty() && ask_on(pod, ledger, row).credit(row) != nullptr;
}

// The ask on the row as it is now, bound to what was promised as far as that is there for the pod.
Ask promised_on(const model::Pod& pod, const View& ledger, Row row, const ChargesPtr& promised) {
    Ask ask = ask_on(pod, ledger, row);
    const Credit* credit = ask.credit(row);
    if (!promised || !credit) return ask;
    const bool there = std::all_of(promised->begin(), promised->end(),
                                   [&](const ledger::Charge& charge) { return credit->covers(charge.reservation); });
    if (there) ask.credits[row].promised = promised;
    return ask;
}

// The ask on the row as it is now; what it is bound to stays.
Ask again(const Ask& ask, const View& ledger, Row row) {
    const Credit* credit = ask.credit(row);
    if (!credit) return ask;
    Ask now = promised_on(*ask.pod, ledger, row, credit->promised);
    now.looks = ask.looks;
    return now;
}

// One that is used up holds what its owner left, a port for instance, until its end is stored.
bool lets_go_soon(const View& ledger, Row row) {
    const auto& here = ledger.at(row).reservations;
    return std::any_of(here.begin(), here.end(), [&](ReservationIndex index) {
        const auto& entry = ledger.reservation(index);
        return entry.once && (entry.used_up || !entry.owners.empty());
    });
}

bool keeps_parts(const Yielding& before) {
    return std::any_of(before.pods.begin(), before.pods.end(),
                       [](const auto& place) { return place.promised && place.promised->which; });
}

// First as the row will be; then, with the same charges and without what was promised to others, as it is.
Strikes filter_beside(const Ask& ask, Ledger& ledger, const Profile& profile, Row row, const Yielding& before) {
    Ask bound = ask;
    {
        const Overlay overlay(ledger, row, before);
        bound = again(ask, ledger, row);
        Strikes strikes = filter(bound, ledger, profile, row, row + 1);
        const bool same = !ask.credit(row) && !(keeps_parts(before) && wants_parts(ask, ledger, row));
        if (same || !strikes.open(row)) return strikes;
        if (bound.credit(row)) {
            bound.credits[row].promised = std::make_shared<const ledger::Charges>(charges_on(bound, ledger, row));
        }
    }
    const KeptParts kept(bound, ledger, row, before);
    return filter(bound, ledger, profile, row, row + 1);
}

}  // namespace

void Nominated::put(PodPtr pod, std::string_view node, std::vector<std::string> victims, PromisedPtr promised) {
    remove(pod->meta.uid);
    waits_.emplace(pod->meta.uid, Wait{std::string(node), std::move(victims), std::move(promised)});
    auto& here = by_node_[std::string(node)];
    here.push_back(std::move(pod));
    std::sort(here.begin(), here.end(), [](const auto& a, const auto& b) { return a->meta.uid < b->meta.uid; });
}

void Nominated::remove(std::string_view uid) {
    const auto found = waits_.find(uid);
    if (found == waits_.end()) return;
    const auto here = by_node_.find(found->second.node);
    std::erase_if(here->second, [&](const auto& pod) { return pod->meta.uid == uid; });
    if (here->second.empty()) by_node_.erase(here);
    waits_.erase(found);
}

std::vector<std::string> Nominated::victims(std::string_view uid) const {
    const auto found = waits_.find(uid);
    return found == waits_.end() ? std::vector<std::string>() : found->second.victims;
}

// Whom nothing was promised, since it was nominated before a restart, comes after those who were promised something.
bool Nominated::yields(const Ask& ask, const View& ledger, Row row, const model::Pod& to) const {
    if (ask.reservation || to.spec->priority >= ask.spec->priority) return true;
    if (waits_.find(to.meta.uid)->second.promised) return true;
    return !promised(ask, ledger, row) && draws_on(to, ledger, row);
}

Yielding Nominated::before(const Ask& ask, const View& ledger, Row row) const {
    Yielding out;
    const auto found = by_node_.find(ledger.name(row));
    if (found == by_node_.end()) return out;
    for (const auto& pod : found->second) {
        if (is_itself(*pod, ask) || !yields(ask, ledger, row, *pod)) continue;
        out.pods.push_back({pod, waits_.find(pod->meta.uid)->second.promised});
    }
    if (ledger.at(row).reservations.empty() && !ledger.cores().at(row) && !ledger.devices().at(row)) return out;
    const auto own = ask.pod ? waits_.find(ask.pod->meta.uid) : waits_.end();
    const bool waits_too = own != waits_.end() && own->second.node == found->first;
    for (const ledger::PodIndex index : ledger.at(row).pods) {
        const auto& held = ledger.pod(index);
        const bool leaves = std::any_of(out.pods.begin(), out.pods.end(), [&](const Yielding::Place& place) {
            const auto& victims = waits_.find(place.pod->meta.uid)->second.victims;
            return (held.terminating && held.priority < place.pod->spec->priority) ||
                   (!victims.empty() && std::find(victims.begin(), victims.end(), held.uid.text()) != victims.end());
        });
        const bool leaves_for_it = waits_too && held.terminating && held.priority < ask.spec->priority;
        if (leaves || leaves_for_it) out.leaving.push_back(index);
    }
    return out;
}

std::vector<PodPtr> Nominated::behind(const Ask& ask, const View& ledger, Row row) const {
    std::vector<PodPtr> out;
    const auto found = by_node_.find(ledger.name(row));
    if (found == by_node_.end()) return out;
    std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(out),
                 [&](const auto& pod) { return !is_itself(*pod, ask) && !yields(ask, ledger, row, *pod); });
    return out;
}

bool Nominated::promised(const Ask& ask, const View& ledger, Row row) const {
    const auto own = ask.pod ? waits_.find(ask.pod->meta.uid) : waits_.end();
    return own != waits_.end() && own->second.promised && own->second.node == ledger.name(row);
}

Ask Nominated::as_promised(const Ask& ask, const View& ledger, Row row) const {
    if (!promised(ask, ledger, row)) return ask;
    Ask bound = promised_on(*ask.pod, ledger, row, charges_of(waits_.find(ask.pod->meta.uid)->second.promised));
    bound.looks = ask.looks;
    bound.packs = ask.packs;
    return bound;
}

std::vector<std::string> Nominated::nodes() const {
    std::vector<std::string> out;
    for (const auto& [node, pods] : by_node_) out.push_back(node);
    std::sort(out.begin(), out.end());
    return out;
}

// One that is placed already counts as it is.
Overlay::Overlay(Ledger& ledger, Row row, const Yielding& those) : ledger_(ledger), gone_(those.leaving) {
    for (const auto index : gone_) ledger_.lift(index);
    for (const bool settled : {true, false}) {
        for (const auto& [pod, promised] : those.pods) {
            if ((promised != nullptr) != settled || ledger_.find_pod(pod->meta.uid) != ledger::kNone) continue;
            const Ask there = promised_on(*pod, ledger_, row, charges_of(promised));
            const auto charges = charges_on(there, ledger_, row);
            const bool has = promised && promised->which && may_have(*promised->which, there, ledger_, row, charges);
            ledger_.assume(*pod, row, charges, has ? promised->which : which_on(there, ledger_, row, charges));
            placed_.push_back(pod);
        }
    }
}

std::vector<Yielding::Place> Overlay::parts() const {
    std::vector<Yielding::Place> out;
    for (const auto& pod : placed_) {
        const auto& entry = ledger_.pod(ledger_.find_pod(pod->meta.uid));
        if (entry.which) out.push_back({pod, std::make_shared<const Promised>(Promised{entry.charges(), entry.which})});
    }
    return out;
}

Overlay::~Overlay() {
    for (const auto& pod : placed_) ledger_.remove_pod(pod->meta.uid);
    for (auto index = gone_.rbegin(); index != gone_.rend(); ++index) ledger_.put_back(*index);
}

Strikes filter(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated, Row begin, Row end) {
    Strikes strikes = filter(ask, ledger, profile, begin, end);
    if (nominated.empty()) return strikes;
    for (const auto& node : nominated.nodes()) {
        const Row row = ledger.row_of(node);
        if (row == ledger::kNoRow || row < begin || row >= end) continue;
        const auto pods = nominated.before(ask, ledger, row);
        if (pods.empty()) continue;
        const Strikes with = filter_beside(ask, ledger, profile, row, pods);
        if (!with.open(row)) strikes.overrule(row, with.why(row));
    }
    return strikes;
}

ledger::Charges charges_beside(const Ask& ask, Ledger& ledger, const Nominated& nominated, Row row) {
    if (nominated.empty() || !ask.credit(row)) return charges_on(ask, ledger, row);
    const Yielding before = nominated.before(ask, ledger, row);
    // It yields to nobody, so filter() looked at the row as it is: those who leave for it have not left yet.
    if (before.empty()) return charges_on(ask, ledger, row);
    const Overlay overlay(ledger, row, before);
    return charges_on(again(ask, ledger, row), ledger, row);
}

ledger::WhichPtr which_beside(const Ask& ask, Ledger& ledger, const Nominated& nominated, Row row,
                              const ledger::Charges& charges) {
    if (nominated.empty() || !wants_parts(ask, ledger, row)) return which_on(ask, ledger, row, charges);
    const KeptParts kept(ask, ledger, row, nominated.before(ask, ledger, row));
    return which_on(ask, ledger, row, charges);
}

PromisedPtr promise_beside(const Ask& ask, Ledger& ledger, const Nominated& nominated, Row row) {
    const Yielding before = nominated.before(ask, ledger, row);
    const auto settle = [&](const Ask& there) {
        ledger::Charges charges = charges_on(there, ledger, row);
        ledger::WhichPtr which = which_on(there, ledger, row, charges);
        return std::make_shared<const Promised>(Promised{std::move(charges), std::move(which)});
    };
    if (before.empty()) return settle(ask);
    const Overlay overlay(ledger, row, before);
    Ask there = again(ask, ledger, row);
    there.packs = ask.packs;
    return settle(there);
}

bool keeps_its_place(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated, Row row) {
    if (!nominated.promised(ask, ledger, row)) return false;
    const Ask promised = nominated.as_promised(ask, ledger, row);
    const Overlay overlay(ledger, row, nominated.before(ask, ledger, row));
    if (lets_go_soon(ledger, row)) return true;
    const auto open_to = [&](const Ask& there) {
        return filter(again(there, ledger, row), ledger, profile, row, row + 1).open(row);
    };
    return open_to(promised) || open_to(ask);
}

bool yields(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated) {
    if (nominated.empty()) return false;
    for (const auto& node : nominated.nodes()) {
        const Row row = ledger.row_of(node);
        if (row == ledger::kNoRow) continue;
        const auto pods = nominated.before(ask, ledger, row);
        if (pods.empty() || !filter(ask, ledger, profile, row, row + 1).open(row)) continue;
        if (ask.credit(row) || wants_parts(ask, ledger, row) ||
            !filter_beside(ask, ledger, profile, row, pods).open(row))
            return true;
    }
    return false;
}

}  // namespace berth::sched
