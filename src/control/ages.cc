#include "control/ages.h"

#include <optional>

#include "ledger/ends.h"

namespace berth::control {

void Ages::begin(base::Time wall, base::Instant now) {
    wall_ = wall;
    now_ = now;
}

base::Duration Ages::of(std::string_view thing, base::Time since) {
    auto found = seen_.find(thing);
    if (found == seen_.end()) {
        const auto since_last = first_ ? std::nullopt : std::optional(now_ - before_);
        const base::Duration age = ledger::age_when_seen(since, wall_, since_last);
        found = seen_.emplace(std::string(thing), Seen{now_, age, false}).first;
    }
    found->second.asked = true;
    return base::Duration(base::saturating_add(found->second.age.count(), (now_ - found->second.at).count()));
}

void Ages::end() {
    absl::erase_if(seen_, [](const auto& entry) { return !entry.second.asked; });
    for (auto& [thing, seen] : seen_) seen.asked = false;
    before_ = now_;
    first_ = false;
}

}  // namespace berth::control
