// The half of the scheduler that claims what a pod uses up before it binds the pod (see claiming.h).
#include <algorithm>

#include "sched/claiming.h"
#include "sched/draw.h"
#include "sched/scheduler.h"
#include "sched/second_look.h"

namespace berth::sched {

// The pod is placed. What is only assumed itself cannot be claimed or drawn from: its placement may yet be refused.
void Scheduler::bind_or_claim(Attempt& attempt, BindPod bind, std::vector<Plan>& plans) {
    if (!options_.claims_first) {
        plans.emplace_back(std::move(bind));
        return;
    }
    const auto charges = ledger_.pod(ledger_.find_pod(bind.uid)).charges();
    const bool early = std::any_of(charges.begin(), charges.end(), [&](const ledger::Charge& charge) {
        return ledger_.reservation(charge.reservation).assumed;
    });
    auto claims = early ? std::vector<ClaimReservation>() : claims_for(attempt.pod, charges, ledger_);
    if (!early && claims.empty()) {
        plans.emplace_back(std::move(bind));
        return;
    }
    claiming_.insert(bind.uid);
    const uint64_t serial = early ? 0 : ++serials_;
    attempt.enter(Claiming{std::move(bind), claims.size(), serial});
    for (auto& claim : claims) {
        claim.serial = serial;
        plans.emplace_back(std::move(claim));
    }
}

// Whether the pod is still charged what the bind says, and what it draws from has not ended.
bool Scheduler::still_holds(const Attempt& attempt, const BindPod& bind) const {
    if (!attempt.placed() || draws_from_ended(bind.uid)) return false;
    const auto& held = ledger_.pod(ledger_.find_pod(bind.uid));
    return annotations_for(held.charges(), held.which, attempt.pod, ledger_) == model::Labels(bind.annotations);
}

// A bind that had to wait: meanwhile the pod may have lost what it was to draw from, or what it was given of its node.
void Scheduler::go_on(Attempt& attempt, BindPod bind, base::Instant now, std::vector<Plan>& plans) {
    const Profile& profile = profiles_.find(attempt.pod.spec->scheduler_name)->second;
    if (!still_holds(attempt, bind) || !still_has(attempt.pod, ledger_, profile)) return forget(attempt, now);
    bind_or_claim(attempt, std::move(bind), plans);
}

void Scheduler::resume_claiming(base::Instant now, std::vector<Plan>& plans) {
    if (!std::exchange(resume_claiming_, false)) return;
    for (const auto& uid : std::exchange(claiming_, {})) {
        Attempt* attempt = find(uid);
        const Claiming* claiming = attempt ? attempt->at<Claiming>() : nullptr;
        if (!claiming) continue;
        claiming_.insert(uid);
        if (claiming->serial == 0) go_on(*attempt, attempt->leave<Claiming>().bind, now, plans);
    }
}

// Answers of an earlier try may come late; what it claimed is released when the feed tells of it.
std::vector<Plan> Scheduler::claimed(const ClaimReservation& claim, Outcome outcome, base::Instant now) {
    std::vector<Plan> plans;
    Attempt* attempt = find(claim.pod);
    Claiming* claiming = attempt ? attempt->at<Claiming>() : nullptr;
    if (claiming && claiming->serial == claim.serial) {
        if (outcome != Outcome::Done) {
            forget(*attempt, now);
        } else if (--claiming->unanswered == 0) {
            BindPod bind = attempt->leave<Claiming>().bind;
            const Profile& profile = profiles_.find(attempt->pod.spec->scheduler_name)->second;
            if (still_holds(*attempt, bind) && still_has(attempt->pod, ledger_, profile)) {
                plans.emplace_back(std::move(bind));
            } else {
                forget(*attempt, now);
            }
        }
    }
    const ReadBack read{ReadBack::What::Reservation, claim.uid, "", claim.name};
    if (outcome == Outcome::Unknown) plans.emplace_back(read);
    // Nobody else releases it: should it be as it was, it is tried again.
    if (outcome == Outcome::Refused && claim.pod.empty()) reads_.emplace_back(now + kReadAgain, read);
    return plans;
}

void Scheduler::release_claims(base::Time wall, std::vector<Plan>& plans) {
    for (const auto& uid : std::exchange(sources_.claims, {})) {
        const auto index = ledger_.find_reservation(uid);
        if (index == ledger::kNone) continue;
        if (auto release = release_of(index, ledger_, wall)) plans.emplace_back(std::move(*release));
    }
}

}  // namespace berth::sched
