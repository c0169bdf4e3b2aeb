#include "sched/preemption_holds.h"

#include <algorithm>

namespace berth::sched {

void PreemptionHolds::see(const std::string& pod, const std::string& reservation) {
    by_pod_[pod] = reservation;
    pod_of_[reservation] = pod;
    due_[reservation] = base::Instant{INT64_MIN};
}

std::string PreemptionHolds::gone(std::string_view reservation) {
    std::string held_for;
    const auto found = pod_of_.find(reservation);
    if (found == pod_of_.end()) return held_for;
    if (const auto pod = by_pod_.find(found->second); pod != by_pod_.end() && pod->second == reservation) {
        held_for = pod->first;
        by_pod_.erase(pod);
    }
    pod_of_.erase(found);
    if (const auto due = due_.find(reservation); due != due_.end()) due_.erase(due);
    return held_for;
}

const std::string* PreemptionHolds::of(std::string_view pod) const {
    const auto found = by_pod_.find(pod);
    return found == by_pod_.end() ? nullptr : &found->second;
}

void PreemptionHolds::pod_moved(std::string_view pod) {
    if (const auto* reservation = of(pod)) due_[*reservation] = base::Instant{INT64_MIN};
}

std::vector<std::string> PreemptionHolds::take_due(base::Instant now) {
    std::vector<std::string> out;
    for (const auto& [reservation, at] : due_) {
        if (at <= now) out.push_back(reservation);
    }
    for (const auto& reservation : out) due_.erase(reservation);
    return out;
}

std::optional<base::Instant> PreemptionHolds::next_wake() const {
    if (due_.empty()) return std::nullopt;
    return std::min_element(due_.begin(), due_.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
        ->second;
}

}  // namespace berth::sched
