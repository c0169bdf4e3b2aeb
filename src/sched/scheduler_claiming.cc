// The half of the scheduler that claims what a pod uses up before it binds the pod (see claiming.h).
#include <algorithm>

#include "sched/claiming.h"
#include "sched/draw.h"
#include "sched/scheduler.h"

namespace berth::sched {

// The pod is assumed. What is only assumed itself cannot be claimed or drawn from: its placement may yet be refused.
void Scheduler::bind_or_claim(BindPod bind, std::vector<Plan>& plans) {
    if (!options_.claims_first) {
        plans.emplace_back(std::move(bind));
        return;
    }
    claiming_.erase(bind.uid);
    const auto charges = ledger_.pod(ledger_.find_pod(bind.uid)).charges();
    const bool early = std::any_of(charges.begin(), charges.end(), [&](const ledger::Charge& charge) {
        return ledger_.reservation(charge.reservation).assumed;
    });
    if (early) {
        claiming_.emplace(bind.uid, Claiming{bind});
        return;
    }
    auto claims = claims_for(pods_.find(bind.uid)->second.pod, charges, ledger_);
    if (claims.empty()) {
        plans.emplace_back(std::move(bind));
        return;
    }
    const uint64_t serial = ++claim_tries_;
    claiming_.emplace(bind.uid, Claiming{bind, claims.size(), serial});
    for (auto& claim : claims) {
        claim.serial = serial;
        plans.emplace_back(std::move(claim));
    }
}

// Whether the pod is still charged what the bind says, and what it draws from has not ended.
bool Scheduler::still_holds(const BindPod& bind) const {
    const auto index = ledger_.find_pod(bind.uid);
    const model::Pod* pod = pending_pod(bind.uid);
    if (index == ledger::kNone || pod == nullptr || draws_from_ended(bind.uid)) return false;
    return annotations_for(ledger_.pod(index).charges(), *pod, ledger_) == model::Labels(bind.annotations);
}

// A bind that had to wait: meanwhile the pod may have lost what it was to draw from.
void Scheduler::go_on(BindPod bind, base::Instant now, std::vector<Plan>& plans) {
    if (!still_holds(bind)) return forget(bind.uid, now);
    bind_or_claim(std::move(bind), plans);
}

void Scheduler::settle_claims(base::Instant now, std::vector<Plan>& plans) {
    if (!std::exchange(settle_claims_, false)) return;
    std::vector<BindPod> waiting;
    for (const auto& [pod, claiming] : claiming_) {
        if (claiming.serial == 0) waiting.push_back(claiming.bind);
    }
    for (auto& bind : waiting) go_on(std::move(bind), now, plans);
}

// Answers of an earlier try may come late; what it claimed is released when the feed tells of it.
std::vector<Plan> Scheduler::claimed(const ClaimReservation& claim, Outcome outcome, base::Instant now) {
    const auto found = claiming_.find(claim.pod);
    const bool awaited = found != claiming_.end() && found->second.serial == claim.serial;
    std::vector<Plan> plans;
    if (awaited && outcome == Outcome::Done && --found->second.unanswered == 0) {
        BindPod bind = std::move(found->second.bind);
        claiming_.erase(found);
        if (still_holds(bind)) {
            plans.emplace_back(std::move(bind));
        } else {
            forget(bind.uid, now);
        }
    }
    if (awaited && outcome != Outcome::Done) forget(claim.pod, now);
    if (outcome == Outcome::Unknown) {
        plans.emplace_back(ReadBack{ReadBack::What::Reservation, claim.uid, "", claim.name});
    }
    return plans;
}

// What the pod was charged to is free again, unless it had been bound.
void Scheduler::give_back_claims(std::string_view pod) {
    claiming_.erase(std::string(pod));
    const auto index = ledger_.find_pod(pod);
    if (index == ledger::kNone) return;
    for (const auto& charge : ledger_.pod(index).charges()) {
        claims_.insert(ledger_.reservation(charge.reservation).object->meta.uid);
    }
}

void Scheduler::release_claims(std::vector<Plan>& plans) {
    for (const auto& uid : std::exchange(claims_, {})) {
        const auto index = ledger_.find_reservation(uid);
        if (index == ledger::kNone) continue;
        if (auto release = release_of(index, ledger_)) plans.emplace_back(std::move(*release));
    }
}

}  // namespace berth::sched
