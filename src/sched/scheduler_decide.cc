// The half of the scheduler that decides.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "model/reservation_status.h"
#include "sched/credit.h"
#include "sched/draw.h"
#include "sched/fast/decider.h"
#include "sched/kept_parts.h"
#include "sched/plugins/registry.h"
#include "sched/preempt.h"
#include "sched/scheduler.h"
#include "sched/shares.h"
#include "sched/which.h"

namespace berth::sched {
namespace {

// What could cure one of the refusals; anything, where there is no node.
ChangeSet cures_of(const Strikes& strikes) {
    ChangeSet set = 0;
    strikes.each_refusal([&](const Refusal& refusal, size_t) { set |= plugin_of(refusal.plugin).cured_by; });
    return set == 0 ? ledger::kAnyChange : set;
}

// For a row that was found by the fast way: nobody asks why not elsewhere.
Decision decision_for(Row row) {
    return {{{}, {}, {}, row, Strikes(std::vector<uint8_t>())}, {}, {}, {}, false, {}};
}

}  // namespace

// Beside what was promised to others another reservation may pay, with fewer cores or devices left. Without its own it
// is not bound, unless its profile does not give any.
bool Scheduler::lost_parts(const Ask& ask, const Decision& decision, const Profile& profile) {
    const Row row = decision.verdict.chosen;
    if (!lacks_parts(ask, ledger_, row, decision.which)) return false;
    const bool gives = std::any_of(profile.filters.begin(), profile.filters.end(), [](const auto& filter) {
        return filter->plugin() == PluginId::NodeNUMAResource || filter->plugin() == PluginId::DeviceShare;
    });
    const KeptParts kept(ask, ledger_, row, nominated_.before(ask, ledger_, row));
    return gives && !finds_parts(ask, ledger_, row, decision.charges);
}

void Scheduler::decide_one(const std::string& key, base::Instant now, base::Time wall, std::vector<Plan>& plans) {
    if (const auto pod = attempts_.find(key); pod != attempts_.end()) return decide_for(pod->second, now, plans);
    if (const auto held = reservations_.find(key); held != reservations_.end()) {
        return decide_for(held->second, now, wall, plans);
    }
    queue_.remove(key);
}

void Scheduler::bind(Attempt& attempt, const Ask& ask, const Decision& decision, base::Instant now,
                     std::vector<Plan>& plans) {
    const model::Pod& pod = attempt.pod;
    const Row row = decision.verdict.chosen;
    if (lost_parts(ask, decision, profiles_.find(pod.spec->scheduler_name)->second)) {
        return fail(attempt,
                    fmt::format("the cores or devices that it needs of {} are promised to others", ledger_.name(row)),
                    now, plans);
    }
    BindPod bind{pod.meta.uid,
                 pod.meta.ns,
                 pod.meta.name,
                 std::string(ledger_.name(row)),
                 {decision.annotations.begin(), decision.annotations.end()}};
    bind.extender = binder_for(*pod.spec, !decision.charges.empty() || decision.which);
    const bool waits = bind_volumes_first(attempt, ask, row, bind, now, plans);
    attempt.place(row, decision.charges, decision.which);
    if (shares_) shares_->end_promise(pod.meta.uid);
    if (!waits) bind_or_claim(attempt, std::move(bind), plans);
    tell_freed(now);
}

// kNoRow: the plain way has to answer. It does so where a nominated pod, or a nomination, makes a difference.
Row Scheduler::choose_fast(const model::Pod& pod, const Profile& profile) {
    if (!pod.nominated_node.empty() || pod.uses_resource_claims || !pod.spec->preferred_fault.empty())
        return ledger::kNoRow;
    if (!nominated_.empty() && yields(ask_for(pod, ledger_, &looks_), ledger_, profile, nominated_))
        return ledger::kNoRow;
    return deciders_.find(pod.spec->scheduler_name)->second->choose(pod, ledger_);
}

void Scheduler::decide_for(Attempt& attempt, base::Instant now, std::vector<Plan>& plans) {
    if (attempt.telling > 0) {
        attempt.turned = true;
        return;
    }
    const model::Pod& pod = attempt.pod;
    const Profile& profile = profiles_.find(pod.spec->scheduler_name)->second;
    const bool consulted = consults(*pod.spec);
    const Shares* shares = shares_for(attempt);
    const bool may_start = !shares || shares->refusal(ledger_, *pod.spec, pod.meta.uid).empty();
    if (!consulted && may_start) {
        if (const Row row = choose_fast(pod, profile); row != ledger::kNoRow) {
            Ask there = ask_on(pod, ledger_, row);
            there.packs = profile.packs_devices;
            if (options_.witness) options_.witness(there, nullptr);
            Decision decision = decision_for(row);
            decision.charges = deciders_.find(pod.spec->scheduler_name)->second->charges(pod, ledger_, row);
            decision.which = which_on(there, ledger_, row, decision.charges);
            decision.annotations = annotations_for(decision.charges, decision.which, pod, ledger_);
            return bind(attempt, there, decision, now, plans);
        }
    }
    Ask ask = ask_for(pod, ledger_, &looks_);
    ask.packs = profile.packs_devices;
    if (may_start || may_stand_anywhere(ask, profile)) ask.shares = shares;  // else it is told that it fits nowhere
    if (consulted && ask.fault.empty()) return consult(attempt, ask, profile, now, plans);
    Decision decision = decide_pod(ask, ledger_, profile, nominated_);
    const bool placed = decision.verdict.chosen != ledger::kNoRow;
    if (options_.witness) {
        options_.witness(ask, placed || !decision.verdict.fault.empty() ? nullptr : &decision.verdict.strikes);
    }
    if (!decision.verdict.fault.empty()) return fail(attempt, std::move(decision.verdict.fault), now, plans);
    if (placed) {
        return bind(attempt, ask, decision, now, plans);
    }
    refuse(attempt, ask, decision.verdict.strikes, now, plans);
}

// It is tried again later, whatever happens.
void Scheduler::fail(Attempt& attempt, std::string message, base::Instant now, std::vector<Plan>& plans) {
    const model::Pod& pod = attempt.pod;
    ++counts_.errors[pod.spec->scheduler_name];
    queue_.failed(pod.meta.uid, now);
    tell(attempt, std::move(message), "SchedulerError", {}, plans);
}

// Why the pod has no node, unless that was said already and nothing else is to be written.
void Scheduler::tell(Attempt& attempt, std::string message, std::string reason, std::optional<std::string> nominated,
                     std::vector<Plan>& plans) {
    if (message == attempt.refusal && !nominated) return;
    const model::Meta& meta = attempt.pod.meta;
    attempt.refusal = message;
    ++attempt.telling;
    plans.emplace_back(
        RefusePod{meta.uid, meta.ns, meta.name, std::move(message), std::move(reason), std::move(nominated)});
}

void Scheduler::refuse(Attempt& attempt, const Ask& ask, const Strikes& strikes, base::Instant now,
                       std::vector<Plan>& plans) {
    const model::Pod& pod = attempt.pod;
    ++counts_.unschedulable[pod.spec->scheduler_name];
    queue_.unschedulable(pod.meta.uid, cures_of(strikes), now);
    refuse_share(attempt, strikes, now);
    RefusePod refusal{pod.meta.uid, pod.meta.ns, pod.meta.name, ask.fault};
    std::vector<Plan> further;
    if (ask.fault.empty()) {
        refusal.message = diagnosis(strikes, ledger_);
        further = make_room(attempt, ask, strikes, now, refusal);
    }
    tell(attempt, std::move(refusal.message), std::move(refusal.reason), std::move(refusal.nominated), plans);
    std::move(further.begin(), further.end(), std::back_inserter(plans));
}

// What is only assumed may never be: nobody goes for who would draw from it then.
bool Scheduler::draws_from_assumed(const Ask& ask, Row row) const {
    const Credit* credit = ask.credit(row);
    return credit && std::any_of(credit->matched.begin(), credit->matched.end(),
                                 [&](ReservationIndex index) { return ledger_.reservation(index).assumed; });
}

// Whom to evict for a pod that fits nowhere; completes what is written about it.
std::vector<Plan> Scheduler::make_room(Attempt& attempt, const Ask& ask, const Strikes& strikes, base::Instant now,
                                       RefusePod& refusal) {
    std::vector<Plan> plans;
    const model::Pod& pod = attempt.pod;
    const Profile& profile = profiles_.find(pod.spec->scheduler_name)->second;
    if (!profile.preempts || attempt.demands<VictimsAsked>() || evictions_.under_way(pod.meta.uid) ||
        waits_for_room(attempt, now, plans))
        return plans;
    ++counts_.preemptions;
    const Preemption found = preempt(ask, ledger_, profile, strikes, nominated_, costs_);
    if (!found.message.empty() && !refused_by_share(strikes)) refusal.message += " " + found.message;
    if (found.ends_nomination && (nominated_.contains(pod.meta.uid) || !pod.nominated_node.empty())) {
        end_nomination(attempt, now);
        refusal.nominated = "";
    }
    if (!found.victims) return plans;
    if (draws_from_assumed(ask, found.victims->row)) {
        retry(attempt, now);
        return plans;
    }
    const std::string node(ledger_.name(found.victims->row));
    VictimsAsked asked{0, 0, node, found.victims->violations, evictions_for(ask, *found.victims)};
    if (ask_about_victims(attempt, asked, plans)) return plans;
    refusal.nominated = node;
    for (auto& plan : take_room(attempt, ask, node, std::move(asked.evictions), now)) plans.push_back(std::move(plan));
    return plans;
}

// The pod waits for the node; who was to go there after it waits no longer; those who are in its place go, as soon as
// the room is held, or, where none can be, the nomination is stored: a scheduler after this one must know for whom.
std::vector<Plan> Scheduler::take_room(Attempt& attempt, const Ask& ask, const std::string& node,
                                       std::vector<EvictPod> evictions, base::Instant now) {
    std::vector<Plan> plans;
    const model::Pod& pod = attempt.pod;
    const Row row = ledger_.row_of(node);
    for (const auto& loser : nominated_.behind(ask, ledger_, row)) {
        plans.emplace_back(ClearNomination{loser->meta.uid, loser->meta.ns, loser->meta.name});
        Attempt& behind = attempts_.find(loser->meta.uid)->second;
        ++behind.telling;
        behind.end_nomination();
        queue_again(behind.pod, now);
    }
    std::vector<std::string> victims;
    for (const auto& victim : evictions) victims.push_back(victim.uid);
    if (shares_) shares_->promise(ledger_, pod, victims);
    auto kept = attempt.nominate(node, std::move(victims), promise(ask, row, evictions));
    if (may_hold_room(ask, row)) {
        attempt.demand(HoldAsked{std::move(evictions), now});
        plans.emplace_back(HoldRoom{pod.meta.uid, pod.meta.ns, pod.meta.name, node, std::move(kept)});
        return plans;
    }
    attempt.demand(NominationAsked{std::move(evictions)});
    return plans;
}

void Scheduler::lift(const std::vector<EvictPod>& evictions, Row row, Lifted& gone) const {
    for (const auto& victim : evictions) {
        const PodIndex index = ledger_.find_pod(victim.uid);
        if (index != ledger::kNone && ledger_.pod(index).row == row) gone.lift(index);
    }
}

// What the pod has on the row when these have gone; nullptr: nothing there is for it to draw from, and no part of it
// that no room can hold.
PromisedPtr Scheduler::promise(const Ask& ask, Row row, const std::vector<EvictPod>& evictions) {
    if (!ask.credit(row) && !wants_parts(ask, ledger_, row)) return nullptr;
    Lifted gone(ledger_);
    lift(evictions, row, gone);
    Ask there = ask_on(*ask.pod, ledger_, row);
    there.packs = profiles_.find(ask.spec->scheduler_name)->second.packs_devices;
    return promise_beside(there, ledger_, nominated_, row);
}

// What a scheduler before this one promised is not stored. It is promised anew before anything is decided: to the most
// important first, beside those who were promised something, with those gone who are leaving.
void Scheduler::promise_again() {
    std::vector<Attempt*> again;
    for (const auto& uid : std::exchange(unpromised_, {})) {
        if (!nominated_.contains(uid)) continue;
        Attempt& attempt = attempts_.find(uid)->second;
        attempt.end_nomination();
        again.push_back(&attempt);
    }
    std::sort(again.begin(), again.end(), [](const Attempt* a, const Attempt* b) {
        return std::tuple(-int64_t{a->pod.spec->priority}, a->pod.meta.created, std::string_view(a->pod.meta.uid)) <
               std::tuple(-int64_t{b->pod.spec->priority}, b->pod.meta.created, std::string_view(b->pod.meta.uid));
    });
    for (Attempt* attempt : again) {
        const model::Pod& pod = attempt->pod;
        const Row row = ledger_.row_of(pod.nominated_node);
        PromisedPtr promised;
        if (row != ledger::kNoRow) {
            const Ask ask = ask_for(pod, ledger_);
            Victims leaving{row, {}, 0};
            for (const PodIndex index : ledger_.at(row).pods) {
                const auto& held = ledger_.pod(index);
                if (held.terminating && held.priority < pod.spec->priority) leaving.pods.push_back(index);
            }
            promised = promise(ask, row, evictions_for(ask, leaving));
        }
        attempt->nominate(pod.nominated_node, {}, std::move(promised));
    }
}

std::vector<EvictPod> Scheduler::evictions_for(const Ask& ask, const Victims& victims) const {
    std::vector<EvictPod> out;
    for (const PodIndex index : victims.pods) {
        const auto& victim = ledger_.pod(index);
        out.push_back({victim.uid.text(), std::string(victim.ns()), std::string(victim.name.view()),
                       std::string(ledger_.name(victims.row)), ask.pod->meta.uid, ask.spec->scheduler_name});
    }
    return out;
}

// Those who are going already need not be told.
std::vector<Plan> Scheduler::evict(Attempt& by, std::vector<EvictPod> evictions) {
    std::vector<Plan> plans;
    for (auto& victim : evictions) {
        const PodIndex index = ledger_.find_pod(victim.uid);
        if (index == ledger::kNone || ledger_.pod(index).terminating) continue;
        by.evict(victim.uid);
        plans.emplace_back(std::move(victim));
    }
    return plans;
}

// As a pod made from its template; one whose scheduler is none of ours is placed all the same.
const std::string& Scheduler::profile_of(const model::Reservation& object) const {
    const auto named = profiles_.find(object.spec->scheduler_name);
    return named == profiles_.end() ? profiles_.begin()->first : named->first;
}

Decision Scheduler::decide(const model::Reservation& object) {
    const std::string& profile = profile_of(object);
    const Row found = nominated_.empty() ? deciders_.find(profile)->second->choose(object, ledger_) : ledger::kNoRow;
    if (found != ledger::kNoRow) {
        Decision decision = decision_for(found);
        Ask ask = ask_for(object);
        ask.packs = profiles_.find(profile)->second.packs_devices;
        decision.which = which_on(ask, ledger_, found, {});
        return decision;
    }
    return decide_reservation(object, ledger_, profiles_.find(profile)->second, nominated_, &looks_);
}

void Scheduler::decide_for(PendingReservation& pending, base::Instant now, base::Time wall, std::vector<Plan>& plans) {
    const model::Reservation& object = *pending.object;
    const std::string_view for_pod = our_room(object);
    const Decision decision = for_pod.empty() ? decide(object) : decide_room(object);
    const Row row = decision.verdict.chosen;
    if (options_.witness && for_pod.empty()) {
        options_.witness(ask_for(object), row == ledger::kNoRow ? &decision.verdict.strikes : nullptr);
    }
    if (row == ledger::kNoRow) {
        ++counts_.unschedulable[profile_of(object)];
        queue_.unschedulable(object.meta.uid, cures_of(decision.verdict.strikes), now);
        if (!for_pod.empty()) return give_up_room(object, plans);
        std::string message = diagnosis(decision.verdict.strikes, ledger_);
        if (message == pending.refusal) return;
        pending.refusal = message;
        plans.emplace_back(WriteReservation{object.meta.uid, object.meta.name, object.meta.revision,
                                            model::unschedulable(object, message, wall), false, message});
        return;
    }
    if (Attempt* held_for = find(for_pod)) {
        held_for->end_nomination();                         // its place is taken by the room
        if (!decision.waiting) held_for->take_evictions();  // nobody has to go
    }
    ledger_.assume_reservation(ledger_.find_reservation(object.meta.uid), row, decision.waiting, decision.which);
    const std::string node(ledger_.name(row));
    auto status = decision.waiting ? model::placed_waiting(object, node, object.spec->requests, decision.missing, wall)
                                   : model::placed(object, node, object.spec->requests, wall);
    status.which = decision.which ? *decision.which : model::Which();
    plans.emplace_back(WriteReservation{object.meta.uid, object.meta.name, object.meta.revision, std::move(status),
                                        true, fmt::format("Successfully reserved on {}", node)});
}

// ---- questions

Decision Scheduler::would_decide(const model::Pod& pod, const Profile& profile) {
    const auto before = begin_passing(pod);
    Ask ask = ask_for(pod, ledger_);
    if (ledger_.find_pod(pod.meta.uid) == ledger::kNone) ask.shares = shares_.get();
    const auto rows = static_cast<Row>(ledger_.rows());
    auto verdict = weigh(ask, ledger_, profile, filter(ask, ledger_, profile, nominated_, 0, rows));
    end_passing(pod.meta.uid, before);
    const Row waited_for = ledger_.row_of(pod.nominated_node);
    if (waited_for != ledger::kNoRow && verdict.strikes.open(waited_for)) {
        verdict.chosen = waited_for;
        verdict.fault.clear();  // a nominated node is not weighed against others
    }
    return decided(ask, ledger_, nominated_, std::move(verdict));
}

Decision Scheduler::would_decide(const model::Reservation& reservation, const Profile& profile) {
    return decide_reservation(reservation, ledger_, profile, nominated_);
}

Preemption Scheduler::would_preempt(const Ask& ask, const Profile& profile, const Strikes& strikes, CostMemory& costs) {
    Ask here = ask;
    here.shares = shares_.get();
    return preempt(here, ledger_, profile, strikes, nominated_, costs);
}

}  // namespace berth::sched
