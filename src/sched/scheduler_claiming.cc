// The half of the scheduler that claims what a pod uses up before it binds the pod (see claiming.h).
#include "sched/claiming.h"
#include "sched/scheduler.h"

namespace berth::sched {

// The pod is assumed.
void Scheduler::bind_or_claim(BindPod bind, std::vector<Plan>& plans) {
    std::vector<ClaimReservation> claims;
    if (options_.claims_first) {
        claims =
            claims_for(pods_.find(bind.uid)->second.pod, ledger_.pod(ledger_.find_pod(bind.uid)).charges(), ledger_);
    }
    if (claims.empty()) {
        plans.emplace_back(std::move(bind));
        return;
    }
    const uint64_t serial = ++claim_tries_;
    claiming_.insert_or_assign(bind.uid, Claiming{bind, claims.size(), serial});
    for (auto& claim : claims) {
        claim.serial = serial;
        plans.emplace_back(std::move(claim));
    }
}

// Answers of an earlier try may come late; what it claimed is released when the feed tells of it.
std::vector<Plan> Scheduler::claimed(const ClaimReservation& claim, Outcome outcome, base::Instant now) {
    const auto found = claiming_.find(claim.pod);
    const bool awaited = found != claiming_.end() && found->second.serial == claim.serial;
    std::vector<Plan> plans;
    const bool over = awaited && draws_from_ended(claim.pod);
    if (awaited && !over && outcome == Outcome::Done && --found->second.unanswered == 0) {
        plans.emplace_back(std::move(found->second.bind));
        claiming_.erase(found);
    }
    if (awaited && (over || outcome != Outcome::Done)) forget(claim.pod, now);
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
