// The half of the scheduler that waits for volumes: a pod whose claims are unbound is bound to its node only when they
// are.
#include <algorithm>

#include "sched/scheduler.h"
#include "sched/volume_plan.h"

namespace berth::sched {

// True when the bind has to wait; what must be written first is planned then.
bool Scheduler::bind_volumes_first(Attempt& attempt, const Ask& ask, Row row, const BindPod& bind, base::Instant now,
                                   std::vector<Plan>& plans) {
    ledger::VolumeSteps steps = volume_steps(ask, ledger_, row);
    if (steps.empty()) return false;
    const base::Instant deadline = now + profiles_.find(ask.spec->scheduler_name)->second.bind_timeout;
    VolumesFirst& first = attempt.enter(VolumesFirst{bind, std::move(steps), {}, 0, deadline, ++serials_});
    auto writes = begin_volumes(first, ledger_.volumes());
    ledger_.volumes().assume(first.steps);
    std::move(writes.begin(), writes.end(), std::back_inserter(plans));
    volumes_first_.insert(bind.uid);
    resume_volumes_ = true;
    return true;
}

// Those whose time is up are looked at in any case.
void Scheduler::resume_volumes(base::Instant now, std::vector<Plan>& plans) {
    const bool changed = std::exchange(resume_volumes_, false);
    for (const auto& uid : std::exchange(volumes_first_, {})) {
        Attempt* attempt = find(uid);
        const VolumesFirst* first = attempt ? attempt->at<VolumesFirst>() : nullptr;
        if (!first) continue;
        const auto state =
            changed || now >= first->deadline ? first->state(ledger_.volumes(), now) : VolumesFirst::State::Waits;
        if (state == VolumesFirst::State::Waits) {
            volumes_first_.insert(uid);
        } else if (state == VolumesFirst::State::Failed) {
            forget(*attempt, now);
        } else {
            go_on(*attempt, attempt->leave<VolumesFirst>().bind, now, plans);
        }
    }
}

std::optional<base::Instant> Scheduler::next_volume_wake() const {
    std::optional<base::Instant> next;
    for (const auto& uid : volumes_first_) {
        const auto found = attempts_.find(uid);
        const VolumesFirst* first = found == attempts_.end() ? nullptr : found->second.at<VolumesFirst>();
        if (!first) continue;
        if (resume_volumes_) return base::Instant{INT64_MIN};
        next = next ? std::min(*next, first->deadline) : first->deadline;
    }
    return next;
}

// Whether a refused write took effect does not matter: the pod is decided anew from what is stored. Answers of an
// earlier try may come late.
void Scheduler::volume_written(std::string_view pod, uint64_t serial, Outcome outcome, base::Instant now) {
    Attempt* attempt = find(pod);
    VolumesFirst* first = attempt ? attempt->at<VolumesFirst>() : nullptr;
    if (!first || first->serial != serial) return;
    if (outcome != Outcome::Done) return forget(*attempt, now);
    --first->unanswered;
    resume_volumes_ = true;
}

}  // namespace berth::sched
