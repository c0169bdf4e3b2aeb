#include "sched/queue.h"

#include <algorithm>

#include "base/check.h"

namespace berth::sched {
namespace {

constexpr base::Duration kLongestSleep = std::chrono::minutes(5);

constexpr int64_t kNanosPerLook = 10;
constexpr uint64_t kDear = 50'000;             // looks of one attempt
constexpr int64_t kDearShare = 8;              // one part of so many
constexpr int64_t kMostCredit = 100'000;       // looks
constexpr int64_t kPause = 199;                // times what a long attempt took
constexpr uint64_t kMostCounted = 1ull << 40;  // looks; three hours

}  // namespace

base::Duration Queue::backoff_after(int attempts) const {
    base::Duration wait = backoff_times_.first;
    for (int i = 1; i < attempts && wait < backoff_times_.longest; ++i) wait *= 2;
    return std::min(wait, backoff_times_.longest);
}

Queue::Lane Queue::lane_of(uint64_t looks) {
    return looks > kLong ? Lane::Long : looks > kDear ? Lane::Dear : Lane::Plain;
}

Queue::Rank Queue::rank_of(const Item& item) {
    return {-static_cast<int64_t>(item.entry.priority), item.entry.created, item.arrival, item.entry.key};
}

void Queue::leave(Item& item) {
    switch (item.where) {
        case Where::Active:
            active(item.lane).erase(rank_of(item));
            break;
        case Where::Backoff:
            backoff_.erase({item.backoff_until, item.entry.key});
            break;
        case Where::Unschedulable:
            parked_.erase({item.parked_at, item.entry.key});
            break;
        case Where::Gated:
            --gated_;
            break;
        case Where::InFlight:
            break;
    }
}

void Queue::activate(Item& item) {
    item.where = Where::Active;
    active(item.lane).insert(rank_of(item));
}

void Queue::back_off(Item& item, base::Instant now) {
    const base::Instant until = std::max(item.backoff_until, now);
    if (until <= now) return activate(item);
    item.where = Where::Backoff;
    backoff_.insert({item.backoff_until, item.entry.key});
}

void Queue::wake(Item& item, base::Instant now) {
    leave(item);
    back_off(item, now);
}

void Queue::add(const Entry& entry, bool gated, base::Instant now) {
    const auto [found, fresh] = items_.try_emplace(entry.key);
    Item& item = found->second;
    if (!fresh) leave(item);
    if (fresh) item.arrival = arrivals_++;
    if (fresh) item.lane = lane_of(entry.expected);
    item.entry = entry;
    if (gated) {
        item.where = Where::Gated;
        ++gated_;
        return;
    }
    if (!item.ready_since) item.ready_since = now;
    if (item.lane == Lane::Plain) return activate(item);
    back_off(item, now);
}

void Queue::remove(std::string_view key) {
    const auto found = items_.find(key);
    if (found == items_.end()) return;
    leave(found->second);
    items_.erase(found);
}

void Queue::flush(base::Instant now) {
    while (!backoff_.empty() && backoff_.begin()->first <= now) {
        Item& item = items_.find(backoff_.begin()->second)->second;
        leave(item);
        activate(item);
    }
    while (!parked_.empty() && parked_.begin()->first + kLongestSleep <= now) {
        wake(items_.find(parked_.begin()->second)->second, now);
    }
}

std::optional<std::string> Queue::pop(base::Instant now) {
    flush(now);
    const int64_t earned = std::max<int64_t>(0, (now - credited_at_).count()) / (kNanosPerLook * kDearShare);
    credit_ = std::min(kMostCredit, credit_ + earned);
    credited_at_ = now;
    const Rank* first = next(now);
    if (first == nullptr) return std::nullopt;
    Item& item = items_.find(first->key)->second;
    take(item);
    return item.entry.key;
}

bool Queue::take(std::string_view key) {
    const auto found = items_.find(key);
    if (found == items_.end()) return false;
    Item& item = found->second;
    if (item.where == Where::Gated || item.where == Where::InFlight) return false;
    take(item);
    return true;
}

void Queue::take(Item& item) {
    leave(item);
    item.where = Where::InFlight;
    ++item.attempts;
    item.popped_at_change = changes_;
}

const Queue::Rank* Queue::next(base::Instant now) const {
    const auto first_of = [&](Lane lane) { return active(lane).empty() ? nullptr : &*active(lane).begin(); };
    const Rank* plain = first_of(Lane::Plain);
    if (plain != nullptr && credit_ <= 0) return plain;
    const Rank* best = plain;
    for (const Rank* other : {first_of(Lane::Dear), now < long_until_ ? nullptr : first_of(Lane::Long)}) {
        if (other != nullptr && (best == nullptr || *other < *best)) best = other;
    }
    return best;
}

void Queue::worked(std::string_view key, uint64_t looks, base::Instant now) {
    looks = std::min(looks, kMostCounted);
    const auto cost = static_cast<int64_t>(looks);
    if (looks > kDear) credit_ -= cost;
    if (looks > kLong) long_until_ = now + base::Duration(kPause * kNanosPerLook * cost);
    const auto found = items_.find(key);
    if (found == items_.end() || found->second.where == Where::InFlight) return;
    Item& item = found->second;
    const bool ready = item.where == Where::Active;
    if (ready) leave(item);
    item.lane = lane_of(looks);
    if (ready) activate(item);
}

int Queue::attempts(std::string_view key) const {
    const auto found = items_.find(key);
    return found == items_.end() ? 0 : found->second.attempts;
}

std::optional<base::Instant> Queue::ready_since(std::string_view key) const {
    const auto found = items_.find(key);
    return found == items_.end() ? std::nullopt : found->second.ready_since;
}

void Queue::failed(std::string_view key, base::Instant now) {
    const auto found = items_.find(key);
    if (found == items_.end()) return;
    Item& item = found->second;
    leave(item);
    item.backoff_until = now + backoff_after(item.attempts);
    back_off(item, now);
}

void Queue::unschedulable(std::string_view key, ChangeSet cured_by, base::Instant now) {
    const auto found = items_.find(key);
    if (found == items_.end()) return;
    Item& item = found->second;
    item.cured_by = cured_by;
    bool already = false;
    for (size_t bit = 0; bit < last_.size() && item.where == Where::InFlight; ++bit) {
        already = already || ((item.cured_by >> bit & 1) != 0 && last_[bit] > item.popped_at_change);
    }
    leave(item);
    item.backoff_until = now + backoff_after(item.attempts);
    if (already) return back_off(item, now);
    item.where = Where::Unschedulable;
    item.parked_at = now;
    parked_.insert({now, item.entry.key});
}

void Queue::notify(Change change, base::Instant now) {
    const auto bit = static_cast<ChangeSet>(change);
    ++changes_;
    for (size_t i = 0; i < last_.size(); ++i) {
        if (bit >> i & 1) last_[i] = changes_;
    }
    std::vector<std::string> woken;
    for (const auto& [parked_at, key] : parked_) {
        if (items_.find(key)->second.cured_by & bit) woken.push_back(key);
    }
    for (const auto& key : woken) wake(items_.find(key)->second, now);
}

void Queue::activate(const std::function<bool(std::string_view key)>& told) {
    std::vector<std::string> hurrying;
    for (const auto& [until, key] : backoff_) {
        if (told(key)) hurrying.push_back(key);
    }
    for (const auto& key : hurrying) {
        Item& item = items_.find(key)->second;
        leave(item);
        activate(item);
    }
}

void Queue::activate_one(std::string_view key) {
    const auto found = items_.find(key);
    if (found == items_.end()) return;
    Item& item = found->second;
    if (item.where != Where::Backoff && item.where != Where::Unschedulable) return;
    leave(item);
    activate(item);
}

std::optional<base::Instant> Queue::next_wake() const {
    if (!active(Lane::Plain).empty() || !active(Lane::Dear).empty()) return base::Instant{INT64_MIN};
    std::optional<base::Instant> next;
    if (!active(Lane::Long).empty()) next = long_until_;
    if (!backoff_.empty()) next = next ? std::min(*next, backoff_.begin()->first) : backoff_.begin()->first;
    if (!parked_.empty()) {
        const base::Instant awake = parked_.begin()->first + kLongestSleep;
        next = next ? std::min(*next, awake) : awake;
    }
    return next;
}

Queue::Sizes Queue::sizes() const {
    size_t ready = 0;
    for (const auto& lane : active_) ready += lane.size();
    return {ready, backoff_.size(), parked_.size(), gated_};
}

}  // namespace berth::sched
