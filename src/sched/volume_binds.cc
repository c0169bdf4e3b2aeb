#include "sched/volume_binds.h"

namespace berth::sched {
namespace {

std::string full_name(const model::ClaimRef& claim) {
    return claim.ns + "/" + claim.name;
}

// A claim that is gone, that took another volume, or whose node was taken back by the provisioner, will not be bound
// as it was decided.
VolumesFirst::State state_of(const VolumesFirst& first, const ledger::Volumes& volumes) {
    using State = VolumesFirst::State;
    bool bound = true;
    for (const auto& step : first.steps.prebindings) {
        const auto claim = volumes.claims().seen(full_name(step.claim));
        const auto volume = volumes.volumes().seen(step.volume);
        if (!claim || claim->meta.uid != step.claim.uid || !volume) return State::Failed;
        if (!claim->volume.empty() && claim->volume != step.volume) return State::Failed;
        if (volume->claim && volume->claim->uid != step.claim.uid && !volume->claim->uid.empty()) return State::Failed;
        bound = bound && claim->fully_bound();
    }
    for (const auto& ref : first.steps.provisionings) {
        const auto claim = volumes.claims().seen(full_name(ref));
        if (!claim || claim->meta.uid != ref.uid) return State::Failed;
        if (claim->fully_bound()) continue;
        bound = false;
        const bool moved_on = claim->meta.revision > first.revisions.at(full_name(ref));
        if (moved_on && claim->selected_node != first.steps.node) return State::Failed;
    }
    return bound ? State::Bound : State::Waits;
}

}  // namespace

std::vector<Plan> begin_volumes(VolumesFirst& first, const ledger::Volumes& volumes) {
    std::vector<Plan> plans;
    const std::string& pod = first.bind.uid;
    for (const auto& step : first.steps.prebindings) {
        const auto volume = volumes.volumes().seen(step.volume);
        if (!volume || (volume->claim && volume->claim->uid == step.claim.uid)) continue;
        plans.emplace_back(KeepVolume{pod, step.volume, volume->meta.uid, volume->meta.revision, step.claim,
                                      !volume->claim, first.serial});
    }
    for (const auto& ref : first.steps.provisionings) {
        const auto claim = volumes.claims().seen(full_name(ref));
        if (!claim) continue;
        first.revisions[full_name(ref)] = claim->meta.revision;
        if (claim->selected_node == first.steps.node) continue;
        plans.emplace_back(SelectNode{pod, ref, claim->meta.revision, first.steps.node, first.serial});
    }
    first.unanswered = plans.size();
    return plans;
}

VolumesFirst::State VolumesFirst::state(const ledger::Volumes& volumes, base::Instant now) const {
    if (unanswered > 0) return State::Waits;
    const State found = state_of(*this, volumes);
    return found == State::Waits && now >= deadline ? State::Failed : found;
}

}  // namespace berth::sched
