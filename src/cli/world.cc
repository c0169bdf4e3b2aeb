#include "cli/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/json_view.h"
#include "model/node.h"
#include "sched/volume_plan.h"

namespace berth::cli {
namespace {

// The sizes a person speaks of: without the pod slot.
model::Resources without_slot(model::Resources amounts) {
    amounts.erase(model::kPods);
    return amounts;
}

// What owners hold of what was reserved: their requests, limited to the reserved names and amounts.
model::Resources limited(const model::Resources& charged, const model::Resources& reserved) {
    model::Resources out;
    reserved.for_each([&](model::ResourceId id, int64_t amount) {
        if (id != model::kPods && charged.has(id)) out.set(id, std::min(amount, charged.get(id)));
    });
    return out;
}

void fill(Outcome& outcome, const sched::Verdict& verdict, const ledger::Ledger& ledger) {
    for (size_t i = 0; i < verdict.feasible.size(); ++i) {
        const std::string name(ledger.name(verdict.feasible[i]));
        outcome.feasible.push_back(name);
        outcome.scores[name] = verdict.scores[i];
    }
    std::sort(outcome.feasible.begin(), outcome.feasible.end());
    for (ledger::Row row = 0; row < ledger.rows(); ++row) {
        if (!ledger.alive(row)) continue;
        if (const auto* refusal = verdict.strikes.why(row))
            outcome.rejected[std::string(ledger.name(row))] = refusal->reasons;
    }
    if (verdict.chosen == ledger::kNoRow) {
        outcome.message = sched::diagnosis(verdict.strikes, ledger);
    } else {
        outcome.node = ledger.name(verdict.chosen);
    }
}

}  // namespace

// One pending object in the queue: highest priority first, then the oldest, then the first that came.
struct World::Entrant {
    int32_t priority;
    base::Time created;
    uint64_t arrival;
    bool is_reservation;
    std::string key;
    auto rank() const { return std::tuple(-static_cast<int64_t>(priority), created, arrival); }
};

Result<bool> World::put(const Json& object) {
    const std::string_view kind = base::find_string(object, {"kind"});
    const std::string name(base::find_string(object, {"metadata", "name"}));
    base::JsonParser parser;
    const std::string text = base::to_text(object);
    const JsonView view = TRY(parser.parse(text));
    if (kind == "Node") {
        auto node = TRY(model::read_node(view));
        ledger_.put(std::make_shared<model::Node>(std::move(node)));
        return true;
    }
    if (kind == "Namespace") {
        ledger_.put(TRY(model::read_namespace(view)));
        return true;
    }
    if (const auto workload = model::workload_kind(kind)) {
        ledger_.put(TRY(model::read_workload(*workload, view)));
        return true;
    }
    const auto spoiled = [&](bool is_reservation, const Error& error) {
        const auto ns = base::find_string(object, {"metadata", "namespace"});
        broken_.push_back(
            {is_reservation, is_reservation ? "" : std::string(ns.empty() ? "default" : ns), name, error.message});
    };
    if (kind == "Pod") {
        auto pod = model::read_pod(view);
        if (pod) {
            TRY(put_pod(std::move(*pod)));
        } else {
            spoiled(false, pod.error());
        }
        return true;
    }
    if (kind == "Reservation") {
        auto reservation = model::read_reservation(view);
        if (reservation) {
            TRY(put_reservation(std::move(*reservation)));
        } else {
            spoiled(true, reservation.error());
        }
        return true;
    }
    if (kind == "PriorityClass") {
        priorities_.put(TRY(model::read_priority_class(view)));
        return true;
    }
    return put_supporting(kind, view, ledger_);
}

Status World::put_pod(model::Pod pod) {
    const std::string key = pod.meta.full_name();
    const auto [order, fresh] = order_.emplace("pod/" + key, arrivals_);
    if (fresh) ++arrivals_;
    if (pod.meta.uid.empty()) pod.meta.uid = fmt::format("pod-{}", order->second);
    if (pod.meta.created == base::Time{}) pod.meta.created = now_;
    ledger_.put(pod);
    pods_.insert_or_assign(key, std::move(pod));
    return {};
}

Status World::put_reservation(model::Reservation reservation) {
    const std::string key = reservation.meta.name;
    const auto [order, fresh] = order_.emplace("reservation/" + key, arrivals_);
    if (fresh) ++arrivals_;
    if (reservation.meta.uid.empty()) reservation.meta.uid = fmt::format("reservation-{}", order->second);
    if (reservation.meta.created == base::Time{}) reservation.meta.created = now_;
    auto object = std::make_shared<const model::Reservation>(std::move(reservation));
    ledger_.put(object);
    Held held{object,
              {key, object->phase, object->node, without_slot(object->allocatable), {}, object->current_owners}};
    reservations_.insert_or_assign(key, std::move(held));
    return {};
}

void World::remove(std::string_view kind, std::string_view ns, std::string_view name) {
    const std::string key = ns.empty() ? std::string(name) : fmt::format("{}/{}", ns, name);
    if (kind == "Node") ledger_.remove_node(name);
    if (kind == "Namespace") ledger_.remove_namespace(name);
    if (const auto workload = model::workload_kind(kind)) {
        ledger_.remove_workload(*workload, ns.empty() ? "default" : ns, name);
    }
    if (kind == "PriorityClass") priorities_.remove(name);
    remove_supporting(kind, key, ledger_);
    if (const auto pod = pods_.find(key); kind == "Pod" && pod != pods_.end()) {
        ledger_.remove_pod(pod->second.meta.uid);
        pods_.erase(pod);
    }
    if (const auto held = reservations_.find(name); kind == "Reservation" && held != reservations_.end()) {
        ledger_.remove_reservation(held->second.object->meta.uid);
        reservations_.erase(held);
    }
}

void World::advance_to(base::Time now) {
    now_ = now;
}

void World::expire() {
    for (auto& [name, held] : reservations_) {
        const auto end = held.object->end();
        if (model::is_final(held.state.phase) || !end || *end > now_) continue;
        sync(held);
        held.state.phase = model::ReservationPhase::Failed;
        ledger_.finish(ledger_.find_reservation(held.object->meta.uid));
    }
}

std::vector<World::Entrant> World::entrants() const {
    std::vector<Entrant> all;
    for (const auto& [key, pod] : pods_) {
        if (ledger_.find_pod(pod.meta.uid) != ledger::kNone || pod.terminal() || pod.meta.deleted) continue;
        all.push_back({pod.spec->priority, pod.meta.created, order_.find("pod/" + key)->second, false, key});
    }
    for (const auto& [key, held] : reservations_) {
        if (held.state.phase != model::ReservationPhase::Pending) continue;
        const auto& object = *held.object;
        all.push_back(
            {object.spec->priority, object.meta.created, order_.find("reservation/" + key)->second, true, key});
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.rank() < b.rank(); });
    return all;
}

// Classes may come after the objects that name them.
void World::resolve_classes() {
    default_storage_class(ledger_);
    for (auto& [key, pod] : pods_) {
        if (pod.has_priority) continue;
        if (priorities_.apply(pod) && pod.has_priority) ledger_.put(pod);
    }
}

std::vector<Outcome> World::settle() {
    expire();
    resolve_classes();
    std::vector<Outcome> outcomes;
    for (const auto& broken : broken_) {
        Outcome outcome;
        outcome.is_reservation = broken.is_reservation;
        outcome.ns = broken.ns;
        outcome.name = broken.name;
        outcome.error = broken.error;
        outcomes.push_back(std::move(outcome));
    }
    broken_.clear();
    for (const auto& entrant : entrants()) {
        outcomes.push_back(entrant.is_reservation ? place_reservation(reservations_.find(entrant.key)->second)
                                                  : place_pod(pods_.find(entrant.key)->second));
    }
    return outcomes;
}

Outcome World::place_pod(const model::Pod& pod) {
    Outcome outcome;
    outcome.ns = pod.meta.ns;
    outcome.name = pod.meta.name;
    if (!pod.gates.empty()) outcome.error = "Scheduling is blocked due to non-empty scheduling gates";
    if (!pod.has_priority && !pod.priority_class.empty()) {
        outcome.error = fmt::format("no PriorityClass with name {} was found", pod.priority_class);
    }
    if (!outcome.error.empty()) return outcome;
    sched::Decision decision = sched::decide_pod(pod, ledger_, sched::default_profile());
    fill(outcome, decision.verdict, ledger_);
    if (decision.verdict.chosen == ledger::kNoRow) {
        make_room(pod, decision.verdict, outcome);
    } else {
        place(pod, std::move(decision), outcome);
    }
    return outcome;
}

void World::place(const model::Pod& pod, sched::Decision decision, Outcome& outcome) {
    const ledger::Row row = decision.verdict.chosen;
    outcome.node = ledger_.name(row);
    if (!decision.charges.empty()) {
        outcome.reservation = ledger_.reservation(decision.charges.front().reservation).object->meta.name;
    }
    ledger_.volumes().assume(sched::volume_steps(sched::ask_for(pod, ledger_), ledger_, row));
    ledger_.assume(pod, row, std::move(decision.charges));
    if (!outcome.reservation.empty()) sync(reservations_.find(outcome.reservation)->second);
}

// Victims are gone for the next decisions, and the pod is where they were.
void World::make_room(const model::Pod& pod, const sched::Verdict& verdict, Outcome& outcome) {
    if (!preempts_) return;
    const auto found =
        sched::preempt(sched::ask_for(pod, ledger_), ledger_, sched::default_profile(), verdict.strikes, {}, costs_);
    if (!found.victims) {
        outcome.message += " " + found.message;
        return;
    }
    outcome.message.clear();
    for (const auto index : found.victims->pods) {
        const auto& victim = ledger_.pod(index);
        outcome.victims.push_back(fmt::format("{}/{}", victim.ns(), victim.name.view()));
    }
    for (const auto& name : outcome.victims) {
        const auto slash = name.find('/');
        remove("Pod", name.substr(0, slash), name.substr(slash + 1));
    }
    for (auto& [name, held] : reservations_) sync(held);
    sched::Decision decision = sched::decide_pod(pod, ledger_, sched::default_profile());
    if (decision.verdict.chosen != found.victims->row) decision.charges.clear();
    decision.verdict.chosen = found.victims->row;
    place(pod, std::move(decision), outcome);
}

Outcome World::place_reservation(Held& held) {
    Outcome outcome;
    outcome.is_reservation = true;
    outcome.name = held.object->meta.name;
    const auto [verdict, charges] = sched::decide_reservation(*held.object, ledger_, sched::default_profile());
    fill(outcome, verdict, ledger_);
    if (verdict.chosen == ledger::kNoRow) return outcome;
    ledger_.assume_reservation(ledger_.find_reservation(held.object->meta.uid), verdict.chosen, false);
    held.state.phase = model::ReservationPhase::Available;
    held.state.node = outcome.node;
    sync(held);
    return outcome;
}

// Brings what is told about a reservation in line with the ledger; one that is used up becomes Succeeded.
void World::sync(Held& held) {
    const auto index = ledger_.find_reservation(held.object->meta.uid);
    const auto& entry = ledger_.reservation(index);
    if (!entry.live) return;
    held.state.allocatable = without_slot(entry.allocatable);
    held.state.allocated = limited(entry.charged, entry.allocatable);
    held.state.owners.clear();
    for (const auto owner : entry.owners) {
        const auto& pod = ledger_.pod(owner);
        held.state.owners.push_back({std::string(pod.ns()), std::string(pod.name.view()), pod.uid.text()});
    }
    if (held.object->allocate_once && !entry.owners.empty()) {
        held.state.phase = model::ReservationPhase::Succeeded;
        ledger_.finish(index);
    }
}

std::vector<Holding> World::holdings() const {
    std::vector<Holding> out;
    for (const auto& [name, held] : reservations_) out.push_back(held.state);
    return out;
}

const ledger::PodEntry* World::find_pod(std::string_view ns, std::string_view name) const {
    const auto found = pods_.find(fmt::format("{}/{}", ns, name));
    if (found == pods_.end()) return nullptr;
    const auto index = ledger_.find_pod(found->second.meta.uid);
    return index == ledger::kNone ? nullptr : &ledger_.pod(index);
}

}  // namespace berth::cli
