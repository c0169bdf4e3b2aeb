#include "ledger/ends.h"

#include <algorithm>

#include "model/reservation_rules.h"

namespace berth::ledger {

base::Duration age_when_seen(base::Time since, base::Time wall, std::optional<base::Duration> since_last_look) {
    base::Duration age = wall - since;
    if (since_last_look) age = std::min(age, *since_last_look);
    return std::max(base::Duration::zero(), age);
}

bool Ends::put(ReservationIndex index, const model::Reservation& reservation) {
    const auto [found, fresh] = lives_.try_emplace(index);
    Life& life = found->second;
    if (fresh) unborn_.push_back(index);
    forget_end(index, life);
    life.created = reservation.meta.created;
    const auto end = model::end_of(reservation);
    life.lives = end ? std::optional(*end - life.created) : std::nullopt;
    if (!life.lives) return false;
    if (*life.lives <= base::Duration::zero()) return true;
    if (!life.born) return false;
    if (end_of(life) <= *looked_) return true;
    due_.insert({end_of(life), index});
    return false;
}

void Ends::forget_end(ReservationIndex index, const Life& life) {
    if (life.born && life.lives) due_.erase({end_of(life), index});
}

void Ends::remove(ReservationIndex index) {
    const auto found = lives_.find(index);
    if (found == lives_.end()) return;
    forget_end(index, found->second);
    lives_.erase(found);
}

std::vector<ReservationIndex> Ends::look(base::Time wall, base::Instant now) {
    const auto since_last_look = looked_ ? std::optional(now - *looked_) : std::nullopt;
    for (const ReservationIndex index : std::exchange(unborn_, {})) {
        const auto found = lives_.find(index);
        if (found == lives_.end() || found->second.born) continue;
        Life& life = found->second;
        const bool known = life.created != base::Time{};
        life.born = known ? now + -age_when_seen(life.created, wall, since_last_look) : now;
        if (life.lives) due_.insert({end_of(life), index});
    }
    looked_ = now;
    std::vector<ReservationIndex> ended;
    while (!due_.empty() && due_.begin()->first <= now) {
        ended.push_back(due_.begin()->second);
        due_.erase(due_.begin());
    }
    return ended;
}

std::optional<base::Instant> Ends::next() const {
    if (due_.empty()) return std::nullopt;
    return due_.begin()->first;
}

}  // namespace berth::ledger
