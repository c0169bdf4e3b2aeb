#include "sched/evictions.h"

namespace berth::sched {
namespace {

void drop(base::StringMap<std::set<std::string>>& map, std::string_view key, const std::string& value) {
    const auto found = map.find(key);
    found->second.erase(value);
    if (found->second.empty()) map.erase(found);
}

}  // namespace

void Evictions::begin(std::string_view preemptor, const std::string& victim) {
    victims_[std::string(preemptor)].insert(victim);
    preemptors_[victim].insert(std::string(preemptor));
}

void Evictions::seen(std::string_view victim) {
    const auto found = preemptors_.find(victim);
    if (found == preemptors_.end()) return;
    for (const auto& preemptor : found->second) drop(victims_, preemptor, std::string(victim));
    preemptors_.erase(found);
}

void Evictions::forget(std::string_view preemptor) {
    const auto found = victims_.find(preemptor);
    if (found == victims_.end()) return;
    for (const auto& victim : found->second) drop(preemptors_, victim, std::string(preemptor));
    victims_.erase(found);
}

}  // namespace berth::sched
