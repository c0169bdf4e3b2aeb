// What the cluster in memory says came of each object: first refusals, places, and who went for whom.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "run/cluster.h"

namespace berth::run {

std::vector<Cluster::Turn> Cluster::turns() const {
    std::vector<Turn> out;
    const auto add = [&](const model::Meta& meta, int32_t priority, uint64_t arrival, bool is_reservation) {
        out.push_back({-static_cast<int64_t>(priority), meta.created, arrival, is_reservation,
                       is_reservation ? meta.name : meta.full_name(), meta.uid});
    };
    for (const auto& [key, stored] : pods_) {
        if (is_pending(stored.pod)) add(stored.pod.meta, stored.pod.spec->priority, stored.arrival, false);
    }
    for (const auto& [name, stored] : reservations_) {
        const auto& object = *stored.object;
        if (object.phase != model::ReservationPhase::Pending || object.meta.deleted) continue;
        add(object.meta, object.spec->priority, stored.arrival, true);
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.rank() < b.rank(); });
    return out;
}

std::vector<Placement> Cluster::answers_for(const std::vector<Turn>& order) {
    std::vector<std::tuple<uint64_t, size_t, Placement>> answers;
    uint64_t before = 0;  // those that cannot be decided stand where the queue would have had them
    for (const auto& turn : order) {
        if (Said* found = said(turn.uid)) {
            Placement& answer = found->answer;
            if (answer.node.empty() && answer.message.empty() && answer.error.empty())
                answer.message = refusals_[turn.uid];
            if (!found->late) before = found->decision;
            answers.emplace_back(found->decision, answers.size(), std::move(answer));
        } else if (auto untried = answer_for(turn)) {
            answers.emplace_back(before, answers.size(), std::move(*untried));
        }
    }
    std::sort(answers.begin(), answers.end(), [](const auto& a, const auto& b) {
        return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    });
    std::vector<Placement> out;
    out.reserve(answers.size());
    for (auto& entry : answers) out.push_back(std::move(std::get<2>(entry)));
    return out;
}

Cluster::Said* Cluster::said(const std::string& uid) {
    const auto found = said_.find(uid);
    return found == said_.end() ? nullptr : &found->second;
}

// What was said first stands, and what was said before others went for it; a place that comes later is news, and so is
// that others go for it.
void Cluster::see(const sched::Ask& ask, const sched::Strikes* refused) {
    const model::Meta& meta = ask.pod ? ask.pod->meta : ask.reservation->meta;
    const auto [found, fresh] = said_.try_emplace(meta.uid);
    Said& said = found->second;
    if (!fresh && refused) again_.emplace(meta.uid, *refused);
    if (!fresh && (refused || !said.answer.victims.empty())) return;
    Placement answer;
    answer.is_reservation = ask.reservation != nullptr;
    answer.ns = answer.is_reservation ? "" : meta.ns;
    answer.name = meta.name;
    answer.error = ask.fault;
    if (ask.fault.empty()) {
        if (refused) {
            tell(answer, *refused, ledger(), rows_by_name_);
        } else {
            tell(answer, (ask.pod ? decide(*ask.pod) : decide(*ask.reservation)).verdict, ledger(), rows_by_name_);
        }
    }
    if (!fresh && !answer.error.empty()) return;
    answer.turn = steps_;
    said = {std::move(answer), ++decisions_, !fresh};
}

// One that was refused before, and now has others go for it: that is what stands.
void Cluster::tell_again(const std::string& uid) {
    Said* before = said(uid);
    if (before == nullptr || !again_ || again_->first != uid) return;
    Placement answer;
    answer.ns = before->answer.ns;
    answer.name = before->answer.name;
    answer.victims = before->answer.victims;
    answer.turn = steps_;
    tell(answer, again_->second, ledger(), rows_by_name_);
    *before = {std::move(answer), ++decisions_, true};
}

// Of one that was not decided about.
std::optional<Placement> Cluster::answer_for(const Turn& turn) {
    Placement answer;
    answer.is_reservation = turn.is_reservation;
    if (turn.is_reservation) {
        const auto found = reservations_.find(turn.key);
        if (found == reservations_.end()) return std::nullopt;  // a preemption hold that is of no use any more
        const auto& [object, arrival, unclassed] = found->second;
        answer.name = turn.key;
        answer.node = object->node;
        if (unclassed) answer.error = fmt::format("no PriorityClass with name {} was found", object->priority_class);
        return unclassed || !object->node.empty() ? std::optional(answer) : std::nullopt;
    }
    const auto& stored = pods_.find(turn.key)->second;
    answer.ns = stored.pod.meta.ns;
    answer.name = stored.pod.meta.name;
    if (stored.unclassed) {
        answer.error = fmt::format("no PriorityClass with name {} was found", stored.pod.priority_class);
    } else if (!stored.pod.gates.empty()) {
        answer.error = "Scheduling is blocked due to non-empty scheduling gates";
        answer.gated = true;
    } else {
        return std::nullopt;
    }
    return answer;
}

}  // namespace berth::run
