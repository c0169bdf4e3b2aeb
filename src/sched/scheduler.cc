#include "sched/scheduler.h"

#include <algorithm>
#include <utility>

#include "model/node_reservation.h"
#include "sched/decide.h"
#include "sched/fast/decider.h"
#include "sched/shares.h"

namespace berth::sched {
namespace {

// About 2 ms: then what was decided is carried out, and what happened meanwhile is heard.
constexpr uint64_t kMostLooks = 200'000;

// Whether pods have the same of both: what the kubelet reports less what is kept for others.
bool same_room(const model::Node& a, const model::Node& b) {
    const auto same_note = [&](std::string_view key) {
        return a.meta.annotations.get(key) == b.meta.annotations.get(key);
    };
    return a.allocatable == b.allocatable && same_note(model::kNodeReservation) &&
           same_note(model::kReservationApplied);
}

}  // namespace

Scheduler::Scheduler(Profiles profiles, SchedulerOptions options)
    : profiles_(std::move(profiles)),
      options_(std::move(options)),
      queue_({options_.first_backoff, options_.longest_backoff}) {
    for (const auto& [name, profile] : profiles_)
        deciders_.emplace(name, std::make_unique<fast::Decider>(profile, &looks_));
    if (!options_.shares) return;
    ledger_.count_spaces();
    shares_ = std::make_unique<Shares>(*options_.shares);
}

Scheduler::~Scheduler() = default;

// ---- events

void Scheduler::put_node(std::shared_ptr<const model::Node> node, base::Instant now) {
    const Row row = ledger_.row_of(node->meta.name);
    if (row == ledger::kNoRow) {
        ledger_.put(std::move(node));
        return queue_.notify(Change::NodeAdded, now);
    }
    const std::shared_ptr<const model::Node> old = ledger_.at(row).node;
    ledger_.put(node);
    if (!same_room(*old, *node)) queue_.notify(Change::NodeAllocatable, now);
    if (old->meta.labels != node->meta.labels) queue_.notify(Change::NodeLabels, now);
    if (old->taints != node->taints) queue_.notify(Change::NodeTaints, now);
    if (old->unschedulable && !node->unschedulable) queue_.notify(Change::NodeUnschedulable, now);
}

void Scheduler::remove_node(std::string_view name, base::Instant now) {
    ledger_.remove_node(name);
    queue_.notify(Change::PodRemoved, now);
}

Attempt* Scheduler::find(std::string_view pod) {
    const auto found = attempts_.find(pod);
    return found == attempts_.end() ? nullptr : &found->second;
}

void Scheduler::put_pod(model::Pod pod, base::Instant now) {
    const std::string uid = pod.meta.uid;
    if (pod.terminal()) {
        remove_pod(uid, now);
        return ledger_.put(pod);  // it may have used something up
    }
    if (!pod.node.empty()) return put_bound(std::move(pod), now);
    if (pod.meta.deleted) return remove_pod(uid, now);
    if (!profiles_.contains(pod.spec->scheduler_name)) return await(pod);
    const auto [found, fresh] = attempts_.try_emplace(uid, sources_);
    Attempt& attempt = found->second;
    const bool changed = fresh || *attempt.pod.spec != *pod.spec || attempt.pod.gates != pod.gates ||
                         attempt.pod.meta.annotations != pod.meta.annotations ||
                         attempt.pod.meta.owners != pod.meta.owners;
    const std::string nominated_before = std::exchange(attempt.pod, std::move(pod)).nominated_node;
    if (changed && attempt.waits_to_be_bound()) {
        // Nothing has been sent yet that says what it was.
        attempt.give_back();
        tell_freed(now);
        follow_nomination(attempt, "", now);
    }
    const bool assumed = ledger_.find_pod(uid) != ledger::kNone;
    if (!assumed) follow_nomination(attempt, nominated_before, now);
    if (!changed || assumed) return;
    await(attempt.pod);
    attempt.roomless_since.reset();
    const model::PodSpec& spec = *attempt.pod.spec;
    const uint64_t expected = options_.counts_costs ? looks_expected(spec, ledger_) : 0;
    queue_.add({uid, spec.priority, attempt.pod.meta.created, expected}, !attempt.pod.gates.empty(), now);
}

void Scheduler::queue_again(const model::Pod& pod, base::Instant now) {
    queue_.add({pod.meta.uid, pod.spec->priority, pod.meta.created}, !pod.gates.empty(), now);
}

void Scheduler::put_bound(model::Pod pod, base::Instant now) {
    const std::string& uid = pod.meta.uid;
    if (const auto attempt = attempts_.find(uid); attempt != attempts_.end()) {
        queue_.remove(uid);
        attempt->second.landed();
        attempts_.erase(attempt);
    }
    preemption_holds_.pod_moved(uid);
    if (pod.meta.deleted) evictions_.seen(uid);
    // It may leave another node, or room on its own, to others.
    const auto known = ledger_.find_pod(uid);
    bool changed = false;
    if (known != ledger::kNone) {
        const auto& spec = ledger_.pod(known).spec;
        if (*spec == *pod.spec) pod.spec = spec;  // compared once
        changed = ledger_.node_of(known) != pod.node || pod.spec != spec;
        sources_.leaves(known);
    }
    ledger_.put(pod);
    forget_waiting(uid);
    queue_.notify(Change::PodBound, now);
    tell_freed(now);
    if (!changed) return;
    queue_.notify(Change::PodRemoved, now);
    queue_.notify(Change::PodLabels, now);
}

// A nomination of ours stands until it is written; an object that says something new is believed.
void Scheduler::follow_nomination(Attempt& attempt, const std::string& before, base::Instant now) {
    const model::Pod& pod = attempt.pod;
    if (pod.nominated_node == before) return;
    if (pod.nominated_node.empty()) return end_nomination(attempt, now);
    if (!room_stands(pod.meta.uid) && !attempt.nominate(pod.nominated_node)) unpromised_.insert(pod.meta.uid);
}

void Scheduler::end_nomination(Attempt& attempt, base::Instant now) {
    if (shares_) shares_->end_promise(attempt.pod.meta.uid);
    if (attempt.end_nomination()) queue_.notify(Change::PodRemoved, now);
}

// What attempts gave back, others may have.
void Scheduler::tell_freed(base::Instant now) {
    if (std::exchange(sources_.freed, false)) queue_.notify(Change::PodRemoved, now);
}

void Scheduler::remove_pod(std::string_view uid, base::Instant now) {
    queue_.remove(uid);
    evictions_.seen(uid);
    preemption_holds_.pod_moved(uid);
    if (const auto attempt = attempts_.find(uid); attempt != attempts_.end()) attempts_.erase(attempt);
    sources_.take_back(uid);  // it was bound
    forget_waiting(uid);
    tell_freed(now);
}

void Scheduler::put_reservation(std::shared_ptr<const model::Reservation> reservation, base::Instant now) {
    const std::string uid = reservation->meta.uid;
    const auto known = ledger_.find_reservation(uid);
    const auto before = known == ledger::kNone ? nullptr : ledger_.reservation(known).object;
    if (before && reservation->meta.revision < before->meta.revision) return;
    const bool held = before && ledger_.reservation(known).holds_room();
    const bool edited = before && !model::same_wish(*before, *reservation);
    const bool was_open = before && before->phase == model::ReservationPhase::Available;
    const bool opens = (!was_open || edited) && reservation->phase == model::ReservationPhase::Available;
    ledger_.put(reservation);
    resume_claiming_ = true;
    if (model::is_claimed(*reservation)) sources_.claims.insert(uid);
    if (reservation->phase == model::ReservationPhase::Waiting) {
        Opening& opening = waiting_[uid];
        opening.under_way = opening.under_way && opening.tried == reservation->meta.revision;
    } else {
        waiting_.erase(uid);
    }
    see_room(*reservation, now);
    // One that never held anything is of no use to others; nor to itself, when it is told why it waits.
    if (held || reservation->phase != model::ReservationPhase::Pending) queue_.notify(Change::Reservation, now);
    if (opens) opened_.insert(ledger_.find_reservation(uid));
    if (was_open && edited) left_.push_back(before);
    if (reservation->phase != model::ReservationPhase::Pending || reservation->meta.deleted) {
        queue_.remove(uid);
        reservations_.erase(uid);
        return;
    }
    const auto [found, fresh] = reservations_.try_emplace(uid);
    found->second.object = std::move(reservation);
    const auto& entry = ledger_.reservation(ledger_.find_reservation(uid));
    if (entry.ended) return queue_.remove(uid);
    if ((!fresh && !edited) || entry.holds_room()) return;
    const auto& object = *found->second.object;
    queue_.add({uid, object.spec->priority, object.meta.created}, false, now);
}

// Every step on its way to be available has woken its owners, mostly in vain. It opens once, and then with every edit,
// so nobody is hurried for ever. Those who owned it before an edit may have the node's own room now.
void Scheduler::activate_owners() {
    if (opened_.empty() && left_.empty()) return;
    queue_.activate([&](std::string_view uid) {
        const model::Pod* pod = pending_pod(uid);
        if (pod == nullptr) return false;
        const auto identity = model::identity_of(pod->meta);
        bool told =
            std::any_of(left_.begin(), left_.end(), [&](const auto& old) { return model::owned_by(*old, identity); });
        ledger_.owner_index().candidates(identity, [&](ReservationIndex index) {
            told = told || (opened_.contains(index) && model::owned_by(*ledger_.reservation(index).object, identity));
        });
        return told;
    });
    opened_.clear();
    left_.clear();
}

void Scheduler::pass_time(base::Instant now, base::Time wall) {
    const auto ended = ledger_.pass_time(wall, now);
    for (const ReservationIndex index : ended) {
        const std::string& uid = ledger_.reservation(index).object->meta.uid;
        queue_.remove(uid);
        if (!our_room(*ledger_.reservation(index).object).empty()) preemption_holds_.look_again(uid, now);
    }
    if (ended.empty()) return;
    resume_claiming_ = true;
    queue_.notify(Change::Reservation, now);
}

// Time may have passed since it was decided where the pod goes.
bool Scheduler::draws_from_ended(std::string_view pod) const {
    const auto index = ledger_.find_pod(pod);
    bool ended = false;
    if (index == ledger::kNone) return ended;
    ledger_.pod(index).each_charge(
        [&](ReservationIndex to, const model::Resources&) { ended = ended || ledger_.reservation(to).ended; });
    return ended;
}

void Scheduler::remove_reservation(std::string_view uid, base::Instant now) {
    queue_.remove(uid);
    reservations_.erase(uid);
    ledger_.remove_reservation(uid);
    resume_claiming_ = true;
    waiting_.erase(std::string(uid));
    if (Attempt* attempt = find(preemption_holds_.gone(uid))) attempt->take_evictions();
    queue_.notify(Change::Reservation, now);
}

const model::Pod* Scheduler::pending_pod(std::string_view uid) const {
    const auto found = attempts_.find(uid);
    return found == attempts_.end() ? nullptr : &found->second.pod;
}

// ---- decisions

std::vector<Plan> Scheduler::step(base::Instant now, base::Time wall, size_t most) {
    std::vector<Plan> plans;
    pass_time(now, wall);
    promise_again();
    judge_rooms(now, plans);
    resume_volumes(now, plans);
    resume_claiming(now, plans);
    activate_owners();
    follow_shares(wall);
    std::erase_if(reads_, [&](const auto& read) {
        if (read.first > now) return false;
        plans.emplace_back(read.second);
        return true;
    });
    const uint64_t begun = looks_;
    for (size_t i = 0; i < most && looks_ - begun < kMostLooks; ++i) {
        const auto key = queue_.pop(now);
        if (!key) break;
        const uint64_t before = looks_;
        decide_one(*key, now, wall, plans);
        if (options_.counts_costs) queue_.worked(*key, looks_ - before, now);
    }
    open_waiting(wall, plans);
    release_claims(wall, plans);  // last: whoever claimed before a crash may just have been given the same again
    return plans;
}

std::vector<Plan> Scheduler::step_for(const std::string& uid, base::Instant now, base::Time wall) {
    std::vector<Plan> plans = step(now, wall, 0);
    if (queue_.take(uid)) decide_one(uid, now, wall, plans);
    return plans;
}

std::optional<base::Instant> Scheduler::next_wake() const {
    std::optional<base::Instant> next = queue_.next_wake();
    const auto sooner = [&](const std::optional<base::Instant>& other) {
        if (other && (!next || *other < *next)) next = other;
    };
    sooner(preemption_holds_.next_wake());
    sooner(next_volume_wake());
    for (const auto& [at, read] : reads_) sooner(at);
    if (!sources_.claims.empty() || (resume_claiming_ && !claiming_.empty())) sooner(base::Instant{INT64_MIN});
    if (shares_ && shares_->anybody_waits() && shares_->behind(ledger_)) sooner(base::Instant{INT64_MIN});
    if (next) sooner(ledger_.next_end());  // who waits may wait for that
    return next;
}

void Scheduler::notify(Change change, base::Instant now) {
    if (change == Change{}) return;
    resume_volumes_ = resume_volumes_ || change == Change::Volume;
    queue_.notify(change, now);
}

}  // namespace berth::sched
