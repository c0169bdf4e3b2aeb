#include "sched/volume_binds.h"

#include <algorithm>

namespace berth::sched {
namespace {

std::string full_name(const model::ClaimRef& claim) {
    return claim.ns + "/" + claim.name;
}

}  // namespace

std::vector<Plan> VolumeBinds::begin(BindPod bind, ledger::VolumeSteps steps, const ledger::Volumes& volumes,
                                     base::Instant deadline) {
    std::vector<Plan> plans;
    Waiting waiting{std::move(bind), std::move(steps), {}, 0, deadline, ++tries_};
    for (const auto& step : waiting.steps.prebindings) {
        const auto volume = volumes.volumes().seen(step.volume);
        if (!volume || (volume->claim && volume->claim->uid == step.claim.uid)) continue;
        plans.emplace_back(KeepVolume{waiting.bind.uid, step.volume, volume->meta.uid, volume->meta.revision,
                                      step.claim, !volume->claim, waiting.serial});
    }
    for (const auto& ref : waiting.steps.provisionings) {
        const auto claim = volumes.claims().seen(full_name(ref));
        if (!claim) continue;
        waiting.revisions[full_name(ref)] = claim->meta.revision;
        if (claim->selected_node == waiting.steps.node) continue;
        plans.emplace_back(SelectNode{waiting.bind.uid, ref, claim->meta.revision, waiting.steps.node, waiting.serial});
    }
    waiting.unanswered = plans.size();
    const std::string uid = waiting.bind.uid;
    waiting_.insert_or_assign(uid, std::move(waiting));
    look_ = true;
    return plans;
}

void VolumeBinds::answered(std::string_view pod) {
    const auto found = waiting_.find(std::string(pod));
    if (found == waiting_.end()) return;
    --found->second.unanswered;
    look_ = true;
}

bool VolumeBinds::awaits(std::string_view pod, uint64_t serial) const {
    const auto found = waiting_.find(std::string(pod));
    return found != waiting_.end() && found->second.serial == serial;
}

std::optional<VolumeBinds::Waiting> VolumeBinds::take(std::string_view pod) {
    auto node = waiting_.extract(std::string(pod));
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
}

// A claim that is gone, that took another volume, or whose node was taken back by the provisioner, will not be bound
// as it was decided.
VolumeBinds::State VolumeBinds::state_of(const Waiting& waiting, const ledger::Volumes& volumes) {
    bool bound = true;
    for (const auto& step : waiting.steps.prebindings) {
        const auto claim = volumes.claims().seen(full_name(step.claim));
        const auto volume = volumes.volumes().seen(step.volume);
        if (!claim || claim->meta.uid != step.claim.uid || !volume) return State::Failed;
        if (!claim->volume.empty() && claim->volume != step.volume) return State::Failed;
        if (volume->claim && volume->claim->uid != step.claim.uid && !volume->claim->uid.empty()) return State::Failed;
        bound = bound && claim->fully_bound();
    }
    for (const auto& ref : waiting.steps.provisionings) {
        const auto claim = volumes.claims().seen(full_name(ref));
        if (!claim || claim->meta.uid != ref.uid) return State::Failed;
        if (claim->fully_bound()) continue;
        bound = false;
        const bool moved_on = claim->meta.revision > waiting.revisions.at(full_name(ref));
        if (moved_on && claim->selected_node != waiting.steps.node) return State::Failed;
    }
    return bound ? State::Bound : State::Waits;
}

std::vector<std::pair<std::string, VolumeBinds::State>> VolumeBinds::settled(const ledger::Volumes& volumes,
                                                                             base::Instant now) {
    std::vector<std::pair<std::string, State>> out;
    for (const auto& [pod, waiting] : waiting_) {
        if (waiting.unanswered > 0 || (!look_ && now < waiting.deadline)) continue;
        State state = state_of(waiting, volumes);
        if (state == State::Waits && now >= waiting.deadline) state = State::Failed;
        if (state != State::Waits) out.emplace_back(pod, state);
    }
    look_ = false;
    return out;
}

std::optional<base::Instant> VolumeBinds::next_wake() const {
    if (waiting_.empty()) return std::nullopt;
    if (look_) return base::Instant{INT64_MIN};
    base::Instant next = waiting_.begin()->second.deadline;
    for (const auto& [pod, waiting] : waiting_) next = std::min(next, waiting.deadline);
    return next;
}

}  // namespace berth::sched
