// The half of the scheduler that hears what came of its plans.
#include <fmt/format.h>

#include <utility>

#include "sched/scheduler.h"

namespace berth::sched {

// Gives back what was assumed, and tries again after backoff.
void Scheduler::forget(Attempt& attempt, base::Instant now) {
    attempt.give_back();
    tell_freed(now);
    follow_nomination(attempt, "", now);
    queue_.failed(attempt.pod.meta.uid, now);
}

void Scheduler::forget_reservation(std::string_view uid, base::Instant now) {
    const auto reservation = ledger_.find_reservation(uid);
    if (reservation != ledger::kNone && ledger_.reservation(reservation).assumed) {
        ledger_.unassume_reservation(reservation);
        resume_claiming_ = true;
        queue_.notify(Change::Reservation, now);
    }
    queue_.failed(uid, now);
}

// Soon again, unless it is being bound.
void Scheduler::retry(const Attempt& attempt, base::Instant now) {
    if (!attempt.placed()) queue_.failed(attempt.pod.meta.uid, now);
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
    if (const Attempt* attempt = find(evict.by)) retry(*attempt, now);
    return {};
}

// Done: put() or a removal has brought what is stored. Still pending there: the write did not happen, and why is said.
std::vector<Plan> Scheduler::read_back(const ReadBack& read, Outcome outcome, base::Instant now) {
    if (outcome != Outcome::Done) {
        reads_.emplace_back(now + kReadAgain, read);
        return {};
    }
    if (read.what == ReadBack::What::Reservation) sources_.claims.insert(read.uid);  // a release may not have happened
    std::vector<Plan> plans;
    if (Attempt* attempt = find(read.uid)) {
        forget(*attempt, now);
        if (!read.why.empty()) tell(*attempt, read.why, "SchedulerError", {}, plans);
        return plans;
    }
    if (reservations_.contains(read.uid)) {
        forget_reservation(read.uid, now);
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
        pending->second.refusal.clear();
    const auto index = ledger_.find_reservation(write.uid);
    if (write.placed) {
        forget_reservation(write.uid, now);
    } else if (index != ledger::kNone && !ledger_.reservation(index).holds_room()) {  // else it has been placed since
        queue_.failed(write.uid, now);
    }
    return {};
}

// It may be refused because of something newer, which the feed tells; or it is as it was, and is tried again.
std::vector<Plan> Scheduler::opened(const OpenReservation& open, Outcome outcome, base::Instant now) {
    const ReadBack read{ReadBack::What::Reservation, open.uid, "", open.name};
    if (outcome == Outcome::Unknown) return {read};
    if (outcome == Outcome::Done) return {};
    reads_.emplace_back(now + kReadAgain, read);
    if (const auto waiting = waiting_.find(open.uid); waiting != waiting_.end()) waiting->second.under_way = false;
    looked_at_ = 0;
    return {};
}

// A write to the pod's status was answered.
void Scheduler::was_told(std::string_view uid, bool done, base::Instant now) {
    Attempt* attempt = find(uid);
    if (!attempt) return;
    if (!done) attempt->refusal.clear();
    if (attempt->telling > 0) --attempt->telling;
    if (attempt->telling == 0 && std::exchange(attempt->turned, false)) queue_again(attempt->pod, now);
}

// It is stored for whom others go, so they may. If nobody knows, the pod looks again.
std::vector<Plan> Scheduler::nominated(const RefusePod& refuse, Outcome outcome, base::Instant now) {
    Attempt* attempt = find(refuse.uid);
    if (!attempt || !refuse.nominated || !attempt->demands<NominationAsked>()) return {};
    auto evictions = attempt->take_evictions();
    if (outcome == Outcome::Done) return evict(*attempt, std::move(evictions));
    retry(*attempt, now);
    return {};
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
    if (const auto* drop = std::get_if<DropRoom>(&plan); drop && outcome != Outcome::Done) {
        preemption_holds_.look_again(drop->uid, now + kReadAgain);
    }
    if (const auto* refuse = std::get_if<RefusePod>(&plan)) {
        was_told(refuse->uid, outcome == Outcome::Done, now);
        return nominated(*refuse, outcome, now);
    }
    if (const auto* clear = std::get_if<ClearNomination>(&plan)) was_told(clear->uid, true, now);
    if (const auto* open = std::get_if<OpenReservation>(&plan)) return opened(*open, outcome, now);
    if (const auto* claim = std::get_if<ClaimReservation>(&plan)) return claimed(*claim, outcome, now);
    if (const auto* write = std::get_if<WriteReservation>(&plan)) return on_written(*write, outcome, now);
    return {};
}

}  // namespace berth::sched
