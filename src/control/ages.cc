#include "control/ages.h"

#include <utility>

#include "ledger/ends.h"

namespace berth::control {

void Ages::put(std::string_view thing, base::Time since) {
    if (lives_.contains(thing)) return;
    lives_.emplace(std::string(thing), Life{since, std::nullopt});
    fresh_.emplace_back(thing);
}

void Ages::forget(std::string_view thing) {
    if (const auto found = lives_.find(thing); found != lives_.end()) lives_.erase(found);
}

void Ages::look(base::Time wall, base::Instant now) {
    const auto since_last_look = looked_ ? std::optional(now - *looked_) : std::nullopt;
    for (const auto& thing : std::exchange(fresh_, {})) {
        const auto found = lives_.find(thing);
        if (found == lives_.end() || found->second.begin) continue;
        found->second.begin = now + -ledger::age_when_seen(found->second.since, wall, since_last_look);
    }
    looked_ = now;
}

std::optional<base::Duration> Ages::of(std::string_view thing) const {
    const auto found = lives_.find(thing);
    if (found == lives_.end() || !found->second.begin) return std::nullopt;
    return *looked_ - *found->second.begin;
}

}  // namespace berth::control
