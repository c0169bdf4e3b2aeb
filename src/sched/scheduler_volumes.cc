// The half of the scheduler that waits for volumes: a pod whose claims are unbound is bound to its node only when they
// are.
#include <algorithm>

#include "sched/scheduler.h"
#include "sched/volume_plan.h"

namespace berth::sched {

// True when the bind has to wait; what must be written first is planned then.
bool Scheduler::bind_volumes_first(const Ask& ask, Row row, const BindPod& bind, base::Instant now,
                                   std::vector<Plan>& plans) {
    ledger::VolumeSteps steps = volume_steps(ask, ledger_, row);
    if (steps.empty()) return false;
    auto writes = volume_binds_.begin(bind, steps, ledger_.volumes(),
                                      now + profiles_.find(ask.spec->scheduler_name)->second.bind_timeout);
    ledger_.volumes().assume(steps);
    std::move(writes.begin(), writes.end(), std::back_inserter(plans));
    return true;
}

void Scheduler::settle_volumes(base::Instant now, std::vector<Plan>& plans) {
    for (const auto& [pod, state] : volume_binds_.settled(ledger_.volumes(), now)) {
        if (state == VolumeBinds::State::Failed) {
            forget(pod, now);
        } else {
            go_on(volume_binds_.take(pod)->bind, now, plans);
        }
    }
}

// What of the steps took effect shows in the feed, and serves the next try.
void Scheduler::give_back_volumes(std::string_view pod) {
    if (const auto waiting = volume_binds_.take(pod)) ledger_.volumes().give_back(waiting->steps);
}

// Whether a refused write took effect does not matter: the pod is decided anew from what is stored. Answers of an
// earlier try may come late.
void Scheduler::volume_written(std::string_view pod, uint64_t serial, Outcome outcome, base::Instant now) {
    if (!volume_binds_.awaits(pod, serial)) return;
    if (outcome == Outcome::Done) return volume_binds_.answered(pod);
    forget(pod, now);
}

}  // namespace berth::sched
