#include "sched/nominated.h"

#include <algorithm>
#include <optional>

#include "model/preemption_hold.h"
#include "sched/credit.h"
#include "sched/victims.h"

namespace berth::sched {
namespace {

using PodPtr = std::shared_ptr<const model::Pod>;

void sort_by_uid(std::vector<PodPtr>& pods) {
    std::sort(pods.begin(), pods.end(), [](const auto& a, const auto& b) { return a->meta.uid < b->meta.uid; });
}

bool is_itself(const model::Pod& pod, const Ask& ask) {
    if (ask.reservation) return model::preemption_hold_owner(*ask.reservation) == pod.meta.uid;
    return ask.pod && ask.pod->meta.uid == pod.meta.uid;
}

bool draws_on(const model::Pod& pod, const Ledger& ledger, Row row) {
    return !ledger.at(row).reservations.empty() && ask_on(pod, ledger, row).credit(row) != nullptr;
}

// The row with those who come before the ask there: what it matched may be taken then. One whose reservations supply
// all it asks for takes nothing of the node, on which those in their way may still be. But it waits if they drew less
// after it: it is charged with all it asks for even where less is left (draw.h), so one that must draw may find
// nothing; or it uses up the one that let them draw jointly.
Strikes filter_beside(const Ask& ask, Ledger& ledger, const Profile& profile, Row row, const Yielding& before) {
    std::optional<Overlay> overlay(std::in_place, ledger, row, before);
    if (!ask.credit(row)) return filter(ask, ledger, profile, row, row + 1);
    const Ask beside = ask_on(*ask.pod, ledger, row);
    const ledger::Charges charges = charges_on(beside, ledger, row);
    const std::optional<PluginId> but = supply_all(charges, ledger) ? std::optional(kFit) : std::nullopt;
    Strikes strikes = filter(beside, ledger, profile, row, row + 1, but);
    if (charges.empty() || !strikes.open(row)) return strikes;
    const Lack lack = overlay->lack();
    overlay.reset();
    if (Overlay(ledger, row, *ask.pod, charges, before).lack().exceeds(lack)) {
        strikes.strike(row, strikes.refusal(PluginId::Reservation, {std::string(kAwaited)}, true));
    }
    return strikes;
}

}  // namespace

void Nominated::put(PodPtr pod, std::string_view node, std::vector<std::string> victims) {
    Wait wait{std::string(node), 0, {}};
    if (const auto known = waits_.find(pod->meta.uid); known != waits_.end() && known->second.node == node) {
        wait = known->second;
    }
    if (wait.turn == 0) wait.turn = ++turns_;
    if (!victims.empty()) wait.victims = std::move(victims);
    remove(pod->meta.uid);
    waits_.emplace(pod->meta.uid, std::move(wait));
    auto& here = by_node_[std::string(node)];
    here.push_back(std::move(pod));
    sort_by_uid(here);
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

std::vector<PodPtr> Nominated::those(const Ask& ask, const Ledger& ledger, Row row, bool yields) const {
    const auto found = by_node_.find(ledger.name(row));
    if (found == by_node_.end()) return {};
    std::vector<PodPtr> out;
    const auto own = ask.pod ? waits_.find(ask.pod->meta.uid) : waits_.end();
    const bool waits_too = own != waits_.end() && own->second.node == found->first;
    const bool draws = waits_too && draws_on(*ask.pod, ledger, row);
    std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(out), [&](const auto& pod) {
        if (is_itself(*pod, ask)) return false;
        if (waits_too && (draws || draws_on(*pod, ledger, row))) {
            return (waits_.find(pod->meta.uid)->second.turn < own->second.turn) == yields;
        }
        const bool first = ask.reservation || pod->spec->priority >= ask.spec->priority || draws_on(*pod, ledger, row);
        return first == yields;
    });
    return out;
}

Yielding Nominated::before(const Ask& ask, const Ledger& ledger, Row row) const {
    Yielding out{those(ask, ledger, row, true), {}};
    if (out.empty() || ledger.at(row).reservations.empty()) return out;
    for (const PodIndex index : ledger.at(row).pods) {
        const auto& held = ledger.pod(index);
        const bool leaves = std::any_of(out.pods.begin(), out.pods.end(), [&](const PodPtr& pod) {
            const auto& victims = waits_.find(pod->meta.uid)->second.victims;
            return (held.terminating && held.priority < pod->spec->priority) ||
                   (!victims.empty() && std::find(victims.begin(), victims.end(), held.uid.text()) != victims.end());
        });
        if (leaves) out.leaving.push_back(index);
    }
    return out;
}

std::vector<PodPtr> Nominated::behind(const Ask& ask, const Ledger& ledger, Row row) const {
    return those(ask, ledger, row, false);
}

std::vector<std::string> Nominated::nodes() const {
    std::vector<std::string> out;
    for (const auto& [node, pods] : by_node_) out.push_back(node);
    std::sort(out.begin(), out.end());
    return out;
}

bool Lack::exceeds(const Lack& other) const {
    model::Resources both = other.amounts;
    both.max(amounts);
    return refusals > other.refusals || both != other.amounts;
}

Overlay::Overlay(Ledger& ledger, Row row, const Yielding& pods) : ledger_(ledger) {
    put(pods, row);
}

Overlay::Overlay(Ledger& ledger, Row row, const model::Pod& first, const ledger::Charges& charges, const Yielding& then)
    : ledger_(ledger) {
    put(first, row, charges);
    put(then, row);
}

// One that is placed already counts as it is.
void Overlay::put(const model::Pod& pod, Row row, const ledger::Charges& charges) {
    if (ledger_.find_pod(pod.meta.uid) != ledger::kNone) return;
    ledger_.assume(pod, row, charges);
    uids_.push_back(pod.meta.uid);
}

void Overlay::put(const Yielding& pods, Row row) {
    Lifted gone(ledger_);
    for (const PodIndex index : pods.leaving) gone.lift(index);
    for (const auto& pod : pods.pods) {
        const Ask ask = ask_on(*pod, ledger_, row);
        const Credit* credit = ask.credit(row);
        const Drawing drawing = credit ? draw_on(*credit, ask, ledger_, row) : Drawing();
        lack_.amounts.add(drawing.lacking);
        lack_.refusals += drawing.withheld.size() + (ask.wishes.affinity && drawing.charges.empty());
        put(*pod, row, drawing.charges);
    }
}

Overlay::~Overlay() {
    for (const auto& uid : uids_) ledger_.remove_pod(uid);
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

bool waits_its_turn(const Strikes& strikes, Row row) {
    const Refusal* refusal = strikes.why(row);
    return refusal && refusal->reasons.front() == kAwaited;
}

bool yields(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated) {
    if (nominated.empty()) return false;
    for (const auto& node : nominated.nodes()) {
        const Row row = ledger.row_of(node);
        if (row == ledger::kNoRow) continue;
        const auto pods = nominated.before(ask, ledger, row);
        if (pods.empty() || !filter(ask, ledger, profile, row, row + 1).open(row)) continue;
        if (ask.credit(row)) return true;
        const Overlay overlay(ledger, row, pods);
        if (!filter(ask, ledger, profile, row, row + 1).open(row)) return true;
    }
    return false;
}

}  // namespace berth::sched
