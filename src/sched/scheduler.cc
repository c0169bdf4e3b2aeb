#include "sched/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/node_reservation.h"
#include "sched/decide.h"
#include "sched/fast/decider.h"

namespace berth::sched {
namespace {

constexpr base::Duration kReadAgain = std::chrono::seconds(1);
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
    for (const auto& [name, profile] : profiles_) deciders_.emplace(name, std::make_unique<fast::Decider>(profile));
}

Scheduler::~Scheduler() = default;

// ---- events

void Scheduler::put(std::shared_ptr<const model::Node> node, base::Instant now) {
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

void Scheduler::put(model::Pod pod, base::Instant now) {
    const std::string uid = pod.meta.uid;
    if (pod.terminal()) {
        remove_pod(uid, now);
        return ledger_.put(pod);  // it may have used something up
    }
    if (!pod.node.empty()) return put_bound(std::move(pod), now);
    if (pod.meta.deleted) return remove_pod(uid, now);
    if (!profiles_.contains(pod.spec->scheduler_name)) return;
    const auto [found, fresh] = pods_.try_emplace(uid);
    PendingPod& pending = found->second;
    const bool changed = fresh || *pending.pod.spec != *pod.spec || pending.pod.gates != pod.gates ||
                         pending.pod.meta.annotations != pod.meta.annotations ||
                         pending.pod.meta.owners != pod.meta.owners;
    const std::string nominated_before = std::exchange(pending.pod, std::move(pod)).nominated_node;
    const bool assumed = ledger_.find_pod(uid) != ledger::kNone;
    if (!assumed) follow_nomination(pending, nominated_before, now);
    if (!changed || assumed) return;
    const model::PodSpec& spec = *pending.pod.spec;
    const uint64_t expected = options_.counts_costs ? looks_expected(spec, ledger_) : 0;
    queue_.add({uid, spec.priority, pending.pod.meta.created, expected}, !pending.pod.gates.empty(), now);
}

void Scheduler::put_bound(model::Pod pod, base::Instant now) {
    const std::string& uid = pod.meta.uid;
    queue_.remove(uid);
    pods_.erase(uid);
    give_back_volumes(uid);
    claiming_.erase(uid);
    stop_asking(uid);
    nominated_.remove(uid);
    evictions_.forget(uid);
    preemption_holds_.pod_moved(uid);
    if (pod.meta.deleted) evictions_.seen(uid);
    // It may leave another node, or room on its own, to others.
    const auto known = ledger_.find_pod(uid);
    bool changed = false;
    if (known != ledger::kNone) {
        const auto& spec = ledger_.pod(known).spec;
        if (*spec == *pod.spec) pod.spec = spec;  // compared once
        changed = ledger_.node_of(known) != pod.node || pod.spec != spec;
    }
    ledger_.put(pod);
    queue_.notify(Change::PodBound, now);
    if (!changed) return;
    queue_.notify(Change::PodRemoved, now);
    queue_.notify(Change::PodLabels, now);
}

// A nomination of ours stands until it is written; an object that says something new is believed.
void Scheduler::follow_nomination(const PendingPod& pending, const std::string& before, base::Instant now) {
    const model::Pod& pod = pending.pod;
    if (pod.nominated_node == before) return;
    if (pod.nominated_node.empty()) return end_nomination(pod.meta.uid, now);
    if (room_stands(pod.meta.uid)) return;
    nominated_.put(std::make_shared<const model::Pod>(pod), pod.nominated_node);
}

// Answers that still come are about nobody.
void Scheduler::stop_asking(std::string_view uid) {
    consultations_.erase(std::string(uid));
    victims_asked_.erase(std::string(uid));
}

// Others need not yield to it any longer.
void Scheduler::end_nomination(std::string_view uid, base::Instant now) {
    if (!nominated_.contains(uid)) return;
    nominated_.remove(uid);
    queue_.notify(Change::PodRemoved, now);
}

void Scheduler::remove_pod(std::string_view uid, base::Instant now) {
    queue_.remove(uid);
    end_nomination(uid, now);
    evictions_.forget(uid);
    evictions_.seen(uid);
    preemption_holds_.pod_moved(uid);
    give_back_volumes(uid);
    give_back_claims(uid);
    stop_asking(uid);
    const bool held = ledger_.find_pod(uid) != ledger::kNone;
    ledger_.remove_pod(uid);
    pods_.erase(uid);
    if (held) queue_.notify(Change::PodRemoved, now);
}

void Scheduler::put(std::shared_ptr<const model::Reservation> reservation, base::Instant now) {
    const std::string uid = reservation->meta.uid;
    const auto known = ledger_.find_reservation(uid);
    const auto before = known == ledger::kNone ? nullptr : ledger_.reservation(known).object;
    if (before && reservation->meta.revision < before->meta.revision) return;
    const bool held = before && ledger_.reservation(known).holds_room();
    const bool edited = before && !model::same_wish(*before, *reservation);
    const bool was_open = before && before->phase == model::ReservationPhase::Available;
    const bool opens = (!was_open || edited) && reservation->phase == model::ReservationPhase::Available;
    ledger_.put(reservation);
    settle_claims_ = true;
    if (model::is_claimed(*reservation)) claims_.insert(uid);
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
void Scheduler::hurry_owners() {
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
    settle_claims_ = true;
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
    settle_claims_ = true;
    waiting_.erase(std::string(uid));
    preemption_holds_.gone(uid);
    queue_.notify(Change::Reservation, now);
}

const model::Pod* Scheduler::pending_pod(std::string_view uid) const {
    const auto found = pods_.find(uid);
    return found == pods_.end() ? nullptr : &found->second.pod;
}

// ---- decisions

std::vector<Plan> Scheduler::step(base::Instant now, base::Time wall, size_t most) {
    std::vector<Plan> plans;
    pass_time(now, wall);
    judge_rooms(now, plans);
    settle_volumes(now, plans);
    settle_claims(now, plans);
    hurry_owners();
    std::erase_if(reads_, [&](const auto& read) {
        if (read.first > now) return false;
        plans.emplace_back(read.second);
        return true;
    });
    const uint64_t begun = ledger_.looks();
    for (size_t i = 0; i < most && ledger_.looks() - begun < kMostLooks; ++i) {
        const auto key = queue_.pop(now);
        if (!key) break;
        const uint64_t before = ledger_.looks();
        decide_one(*key, now, wall, plans);
        if (options_.counts_costs) queue_.worked(*key, ledger_.looks() - before, now);
    }
    open_waiting(wall, plans);
    release_claims(plans);  // last: whoever claimed before a crash may just have been given the same again
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
    sooner(volume_binds_.next_wake());
    for (const auto& [at, read] : reads_) sooner(at);
    if (!claims_.empty() || (settle_claims_ && !claiming_.empty())) sooner(base::Instant{INT64_MIN});
    if (next) sooner(ledger_.next_end());  // who waits may wait for that
    return next;
}

void Scheduler::notify(Change change, base::Instant now) {
    if (change == Change::Volume) volume_binds_.look();
    queue_.notify(change, now);
}

// Gives back what was assumed, and tries again after backoff.
void Scheduler::forget(std::string_view uid, base::Instant now) {
    give_back_volumes(uid);
    give_back_claims(uid);
    const auto index = ledger_.find_pod(uid);
    if (index != ledger::kNone && ledger_.pod(index).assumed) {
        ledger_.remove_pod(uid);
        queue_.notify(Change::PodRemoved, now);
    }
    const auto reservation = ledger_.find_reservation(uid);
    if (reservation != ledger::kNone && ledger_.reservation(reservation).assumed) {
        ledger_.unassume_reservation(reservation);
        settle_claims_ = true;
        queue_.notify(Change::Reservation, now);
    }
    const auto pending = pods_.find(uid);
    if (pending != pods_.end()) follow_nomination(pending->second, "", now);
    queue_.failed(uid, now);
}

// Soon again, unless it is being bound.
void Scheduler::retry(std::string_view uid, base::Instant now) {
    if (ledger_.find_pod(uid) == ledger::kNone) queue_.failed(uid, now);
}

// The feed tells when the victim is going. If it cannot be told to go, the pod it should have gone for looks again.
std::vector<Plan> Scheduler::on_evicted(const EvictPod& evict, Outcome outcome, base::Instant now) {
    if (evict.step == EvictPod::Step::Mark) {
        EvictPod next = evict;
        next.step = EvictPod::Step::Delete;
        return {std::move(next)};
    }
    if (outcome == Outcome::Done) return {};
    evictions_.seen(evict.uid);
    retry(evict.by, now);
    return {};
}

// Done: put() or a removal has brought what is stored. Still pending there: the write did not happen, and why is said.
std::vector<Plan> Scheduler::read_back(const ReadBack& read, Outcome outcome, base::Instant now) {
    if (outcome != Outcome::Done) {
        reads_.emplace_back(now + kReadAgain, read);
        return {};
    }
    std::vector<Plan> plans;
    if (const auto pod = pods_.find(read.uid); pod != pods_.end()) {
        forget(read.uid, now);
        if (!read.why.empty()) tell(pod->second, read.why, "SchedulerError", {}, plans);
        return plans;
    }
    if (reservations_.contains(read.uid)) {
        forget(read.uid, now);
        return plans;
    }
    if (const auto waiting = waiting_.find(read.uid); waiting != waiting_.end()) waiting->second = {};
    looked_at_ = 0;
    return read.what == ReadBack::What::Reservation ? placed_room(read.uid) : std::vector<Plan>();
}

std::vector<Plan> Scheduler::on_written(const WriteReservation& write, Outcome outcome, base::Instant now) {
    if (outcome == Outcome::Done) return write.placed ? placed_room(write.uid) : std::vector<Plan>();
    if (write.placed && outcome == Outcome::Unknown) {
        return {ReadBack{ReadBack::What::Reservation, write.uid, "", write.name}};
    }
    // Why it waits has not been told.
    if (const auto pending = reservations_.find(write.uid); pending != reservations_.end())
        pending->second.told.clear();
    const auto index = ledger_.find_reservation(write.uid);
    if (write.placed) {
        forget(write.uid, now);
    } else if (index != ledger::kNone && !ledger_.reservation(index).holds_room()) {  // else it has been placed since
        queue_.failed(write.uid, now);
    }
    return {};
}

// A refused one brought something newer, which the feed tells.
std::vector<Plan> Scheduler::opened(const OpenReservation& open, Outcome outcome) {
    if (outcome == Outcome::Unknown) return {ReadBack{ReadBack::What::Reservation, open.uid, "", open.name}};
    if (outcome == Outcome::Done) return {};
    if (const auto waiting = waiting_.find(open.uid); waiting != waiting_.end()) waiting->second.under_way = false;
    looked_at_ = 0;
    return {};
}

// A write to the pod's status was answered.
void Scheduler::was_told(std::string_view uid, bool done, base::Instant now) {
    const auto found = pods_.find(uid);
    if (found == pods_.end()) return;
    PendingPod& pending = found->second;
    if (!done) pending.told.clear();
    if (pending.telling > 0) --pending.telling;
    if (pending.telling > 0 || !std::exchange(pending.turned, false)) return;
    queue_.add({pending.pod.meta.uid, pending.pod.spec->priority, pending.pod.meta.created}, !pending.pod.gates.empty(),
               now);
}

// A refused bind, too, gives nothing back before the pod is read: it may be refused because the pod is bound.
std::vector<Plan> Scheduler::outcome(const Plan& plan, Outcome outcome, base::Instant now, std::string_view why) {
    if (const auto* bind = std::get_if<BindPod>(&plan); bind && outcome != Outcome::Done) {
        std::string message = why.empty() ? "" : fmt::format("binding to node {} failed: {}", bind->node, why);
        return {ReadBack{ReadBack::What::Pod, bind->uid, bind->ns, bind->name, std::move(message)}};
    }
    if (const auto* read = std::get_if<ReadBack>(&plan)) return read_back(*read, outcome, now);
    if (const auto* evict = std::get_if<EvictPod>(&plan)) return on_evicted(*evict, outcome, now);
    if (const auto* keep = std::get_if<KeepVolume>(&plan)) volume_written(keep->pod, keep->serial, outcome, now);
    if (const auto* select = std::get_if<SelectNode>(&plan)) volume_written(select->pod, select->serial, outcome, now);
    if (const auto* hold = std::get_if<HoldRoom>(&plan)) return asked(*hold, outcome, now);
    if (const auto* drop = std::get_if<DropRoom>(&plan); drop && outcome == Outcome::Unknown) {
        preemption_holds_.look_again(drop->uid, now + std::chrono::seconds(1));
    }
    if (const auto* refuse = std::get_if<RefusePod>(&plan)) was_told(refuse->uid, outcome == Outcome::Done, now);
    if (const auto* clear = std::get_if<ClearNomination>(&plan)) was_told(clear->uid, true, now);
    if (const auto* open = std::get_if<OpenReservation>(&plan)) return opened(*open, outcome);
    if (const auto* claim = std::get_if<ClaimReservation>(&plan)) return claimed(*claim, outcome, now);
    if (const auto* write = std::get_if<WriteReservation>(&plan)) return on_written(*write, outcome, now);
    return {};
}

}  // namespace berth::sched
