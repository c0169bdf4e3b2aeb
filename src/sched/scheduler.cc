#include "sched/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/reservation_status.h"

namespace berth::sched {
namespace {

// Which plugins refused: the changes that could cure them wake the pod.
std::vector<std::string_view> refusing_plugins(const Strikes& strikes) {
    std::set<std::string_view> names;
    for (Row row = strikes.begin(); row < strikes.end(); ++row) {
        if (const Refusal* refusal = strikes.why(row)) names.insert(refusal->plugin);
    }
    return {names.begin(), names.end()};
}

}  // namespace

Scheduler::Scheduler(Profiles profiles) : profiles_(std::move(profiles)) {
    for (const auto& [name, profile] : profiles_) deciders_.try_emplace(name, profile);
}

// ---- events

void Scheduler::put(std::shared_ptr<const model::Node> node, base::Instant now) {
    const Row row = ledger_.row_of(node->meta.name);
    if (row == ledger::kNoRow) {
        ledger_.put(std::move(node));
        return queue_.happened(Change::NodeAdded, now);
    }
    const std::shared_ptr<const model::Node> old = ledger_.at(row).node;
    ledger_.put(node);
    if (old->allocatable != node->allocatable) queue_.happened(Change::NodeAllocatable, now);
    if (old->meta.labels != node->meta.labels) queue_.happened(Change::NodeLabels, now);
    if (old->taints != node->taints) queue_.happened(Change::NodeTaints, now);
    if (old->unschedulable && !node->unschedulable) queue_.happened(Change::NodeUnschedulable, now);
}

void Scheduler::remove_node(std::string_view name, base::Instant now) {
    ledger_.remove_node(name);
    queue_.happened(Change::PodRemoved, now);
}

void Scheduler::put(model::Pod pod, base::Instant now) {
    const std::string uid = pod.meta.uid;
    if (pod.terminal()) return remove_pod(uid, now);
    if (!pod.node.empty()) {
        queue_.remove(uid);
        pods_.erase(uid);
        ledger_.put(pod);
        return queue_.happened(Change::PodBound, now);
    }
    if (pod.meta.deleted) return remove_pod(uid, now);
    if (!profiles_.contains(pod.spec->scheduler_name)) return;
    const auto [found, fresh] = pods_.try_emplace(uid);
    PendingPod& pending = found->second;
    const bool changed = fresh || *pending.pod.spec != *pod.spec || pending.pod.gates != pod.gates ||
                         pending.pod.meta.annotations != pod.meta.annotations ||
                         pending.pod.meta.owners != pod.meta.owners;
    pending.pod = std::move(pod);
    const bool assumed = ledger_.find_pod(uid) != ledger::kNone;
    if (!changed || assumed) return;
    queue_.add({uid, pending.pod.spec->priority, pending.pod.meta.created}, !pending.pod.gates.empty(), now);
}

void Scheduler::remove_pod(std::string_view uid, base::Instant now) {
    queue_.remove(uid);
    const bool held = ledger_.find_pod(uid) != ledger::kNone;
    ledger_.remove_pod(uid);
    pods_.erase(uid);
    if (held) queue_.happened(Change::PodRemoved, now);
}

void Scheduler::put(std::shared_ptr<const model::Reservation> reservation, base::Instant now) {
    const std::string uid = reservation->meta.uid;
    ledger_.put(reservation);
    queue_.happened(Change::Reservation, now);
    if (reservation->phase != model::ReservationPhase::Pending || reservation->meta.deleted) {
        queue_.remove(uid);
        reservations_.erase(uid);
        return;
    }
    const auto [found, fresh] = reservations_.try_emplace(uid);
    const bool changed = fresh || *found->second.object->spec != *reservation->spec;
    found->second.object = std::move(reservation);
    const bool assumed = ledger_.reservation(ledger_.find_reservation(uid)).live;
    if (!changed || assumed) return;
    const auto& object = *found->second.object;
    queue_.add({uid, object.spec->priority, object.meta.created}, false, now);
}

void Scheduler::remove_reservation(std::string_view uid, base::Instant now) {
    queue_.remove(uid);
    reservations_.erase(uid);
    ledger_.remove_reservation(uid);
    queue_.happened(Change::Reservation, now);
}

const model::Pod* Scheduler::pending_pod(std::string_view uid) const {
    const auto found = pods_.find(uid);
    return found == pods_.end() ? nullptr : &found->second.pod;
}

// ---- decisions

std::vector<Plan> Scheduler::step(base::Instant now, base::Time wall, size_t most) {
    std::vector<Plan> plans;
    for (size_t i = 0; i < most; ++i) {
        const auto key = queue_.pop(now);
        if (!key) break;
        decide_one(*key, now, wall, plans);
    }
    return plans;
}

void Scheduler::decide_one(const std::string& key, base::Instant now, base::Time wall, std::vector<Plan>& plans) {
    if (const auto pod = pods_.find(key); pod != pods_.end()) return decide_for(pod->second, now, wall, plans);
    if (const auto held = reservations_.find(key); held != reservations_.end()) {
        return decide_for(held->second, now, wall, plans);
    }
    queue_.remove(key);
}

void Scheduler::bind(const model::Pod& pod, Row row, std::vector<ledger::Charge> charges,
                     const model::Labels& annotations, std::vector<Plan>& plans) {
    plans.emplace_back(BindPod{pod.meta.uid,
                               pod.meta.ns,
                               pod.meta.name,
                               std::string(ledger_.name(row)),
                               {annotations.begin(), annotations.end()}});
    ledger_.assume(pod, row, std::move(charges));
}

void Scheduler::decide_for(PendingPod& pending, base::Instant now, base::Time, std::vector<Plan>& plans) {
    const model::Pod& pod = pending.pod;
    const Ask ask = ask_for(pod, ledger_);
    if (ask.plain()) {
        const Row row = deciders_.find(pod.spec->scheduler_name)->second.choose(ask, ledger_);
        if (row != ledger::kNoRow) return bind(pod, row, {}, {}, plans);
    }
    const Profile& profile = profiles_.find(pod.spec->scheduler_name)->second;
    Decision decision = decide_pod(pod, ledger_, profile);
    if (decision.verdict.chosen != ledger::kNoRow) {
        return bind(pod, decision.verdict.chosen, std::move(decision.charges), decision.annotations, plans);
    }
    ++counts_.unschedulable;
    queue_.unschedulable(pod.meta.uid, refusing_plugins(decision.verdict.strikes), now);
    std::string message = ask.fault.empty() ? diagnosis(decision.verdict.strikes, ledger_) : ask.fault;
    if (message == pending.told) return;
    pending.told = message;
    plans.emplace_back(RefusePod{pod.meta.uid, pod.meta.ns, pod.meta.name, std::move(message)});
}

void Scheduler::decide_for(PendingReservation& pending, base::Instant now, base::Time wall, std::vector<Plan>& plans) {
    const model::Reservation& object = *pending.object;
    const Decision decision = decide_reservation(object, ledger_, profiles_.begin()->second);
    const Row row = decision.verdict.chosen;
    if (row == ledger::kNoRow) {
        ++counts_.unschedulable;
        queue_.unschedulable(object.meta.uid, refusing_plugins(decision.verdict.strikes), now);
        std::string message = diagnosis(decision.verdict.strikes, ledger_);
        if (message == pending.told) return;
        pending.told = message;
        plans.emplace_back(WriteReservation{object.meta.uid, object.meta.name, object.meta.revision,
                                            model::unschedulable(object, message, wall), false, message});
        return;
    }
    ledger_.assume_reservation(ledger_.find_reservation(object.meta.uid), row, decision.waiting);
    const std::string node(ledger_.name(row));
    auto status = decision.waiting ? model::placed_waiting(object, node, object.spec->requests, decision.missing, wall)
                                   : model::placed(object, node, object.spec->requests, wall);
    plans.emplace_back(WriteReservation{object.meta.uid, object.meta.name, object.meta.revision, std::move(status),
                                        true, fmt::format("Successfully reserved on {}", node)});
}

// Gives back what was assumed, and tries again after backoff.
void Scheduler::forget(std::string_view uid, base::Instant now) {
    const auto index = ledger_.find_pod(uid);
    if (index != ledger::kNone && ledger_.pod(index).assumed) {
        ledger_.remove_pod(uid);
        queue_.happened(Change::PodRemoved, now);
    }
    const auto reservation = ledger_.find_reservation(uid);
    if (reservation != ledger::kNone && ledger_.reservation(reservation).assumed) {
        ledger_.unassume_reservation(reservation);
        queue_.happened(Change::Reservation, now);
    }
    queue_.failed(uid, now);
    ++counts_.errors;
}

std::vector<Plan> Scheduler::outcome(const Plan& plan, Outcome outcome, base::Instant now) {
    if (const auto* bind = std::get_if<BindPod>(&plan)) {
        if (outcome == Outcome::Done) ++counts_.scheduled;
        if (outcome == Outcome::Refused) forget(bind->uid, now);
        if (outcome == Outcome::Unknown) return {ReadPod{bind->uid, bind->ns, bind->name}};
    }
    if (const auto* read = std::get_if<ReadPod>(&plan)) {
        // Done: put() or remove_pod() has brought what is stored. Still unbound there: the bind did not happen.
        if (outcome != Outcome::Done) return {plan};
        if (pods_.contains(read->uid)) forget(read->uid, now);
    }
    if (const auto* write = std::get_if<WriteReservation>(&plan); write && write->placed) {
        if (outcome == Outcome::Done) ++counts_.scheduled;
        if (outcome != Outcome::Done) forget(write->uid, now);
    }
    return {};
}

}  // namespace berth::sched
