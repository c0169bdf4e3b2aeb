#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/string_map.h"
#include "ledger/change.h"

namespace berth::sched {

using ledger::Change;
using ledger::ChangeSet;

// Who waits for a decision, and when. Highest priority first, then the oldest, then the first that came: whoever lists
// after a restart hears of all at once, by name.
//   active:        ready now
//   backoff:       tried and failed; ready after 1 s, doubled for each further failure up to 10 s (by default)
//   unschedulable: nothing that happened since could cure its refusal; sleeps until a change that could, or 5 minutes
// Time is an argument everywhere; keys are uids.
//
// What an attempt costs is counted (Ledger::looks, about 10 ns each). Those whose last one failed and was dear, and new
// ones that may be, keep their rank as long as they take less than an eighth of the time; beyond that, whoever is not
// dear goes first. If they are long (5 ms) the next one waits for 199 times as long as the last took, so that others
// seldom come upon one. Those that failed also sit out their backoff when they change. E.g. 100 pods of 20 ms: one
// attempt in 4 s, whatever happens to them.
class Queue {
public:
    static constexpr uint64_t kLong = 500'000;  // looks of one attempt

    struct Entry {
        std::string key;
        int32_t priority = 0;
        base::Time created;
        uint64_t expected = 0;  // looks of its first attempt, if nothing is remembered from others like it
    };
    struct Backoff {
        base::Duration first = std::chrono::seconds(1);
        base::Duration longest = std::chrono::seconds(10);
    };
    Queue() = default;
    explicit Queue(Backoff backoff) : backoff_times_(backoff) {}
    struct Sizes {
        size_t active = 0, backoff = 0, unschedulable = 0, gated = 0;
    };

    // New, or changed in a way that deserves another try at once. Gated ones wait outside until they are added ungated.
    void add(const Entry& entry, bool gated, base::Instant now);
    void remove(std::string_view key);
    bool contains(std::string_view key) const { return items_.find(key) != items_.end(); }

    // The next to decide, now in flight: it is in no list until failed(), unschedulable(), add() or remove().
    std::optional<std::string> pop(base::Instant now);
    // The same for this one, whoever waits before it; false: it is gated, in flight, or not here.
    bool take(std::string_view key);
    // What the decision about the one that was popped last cost.
    void worked(std::string_view key, uint64_t looks, base::Instant now);
    // How often it was popped.
    int attempts(std::string_view key) const;
    // When it first could be decided: it came, or its last gate went. None while it is gated, or unknown.
    std::optional<base::Instant> ready_since(std::string_view key) const;

    // Something broke that has nothing to do with the cluster's state (a conflict, the network): try again after
    // backoff.
    void failed(std::string_view key, base::Instant now);
    // No node fits until one of these happens; what happened while it was in flight counts too.
    void unschedulable(std::string_view key, ChangeSet cured_by, base::Instant now);
    void notify(Change change, base::Instant now);
    // What they waited for is there: those that are told need not sit out their backoff.
    void activate(const std::function<bool(std::string_view key)>& told);
    void activate_one(std::string_view key);

    // When pop() will have something that it does not have now.
    std::optional<base::Instant> next_wake() const;
    Sizes sizes() const;

private:
    // By the cost of the last attempt that failed, or what the first is expected to cost.
    enum class Lane : uint8_t { Plain, Dear, Long };
    static constexpr size_t kLanes = 3;
    static Lane lane_of(uint64_t looks);
    enum class Where : uint8_t { Active, Backoff, Unschedulable, Gated, InFlight };
    struct Item {
        Entry entry;
        uint64_t arrival = 0;
        int attempts = 0;
        std::optional<base::Instant> ready_since;
        Where where = Where::Active;
        Lane lane = Lane::Plain;
        ChangeSet cured_by = 0;
        base::Instant backoff_until;
        base::Instant parked_at;
        uint64_t popped_at_change = 0;
    };
    struct Rank {
        int64_t minus_priority;
        base::Time created;
        uint64_t arrival;
        std::string key;
        auto operator<=>(const Rank&) const = default;
    };
    using Timed = std::pair<base::Instant, std::string>;

    void leave(Item& item);
    void take(Item& item);
    void activate(Item& item);
    void back_off(Item& item, base::Instant now);
    void wake(Item& item, base::Instant now);
    void flush(base::Instant now);

    base::Duration backoff_after(int attempts) const;
    static Rank rank_of(const Item& item);
    std::set<Rank>& active(Lane lane) { return active_[static_cast<size_t>(lane)]; }
    const std::set<Rank>& active(Lane lane) const { return active_[static_cast<size_t>(lane)]; }
    // Whose turn it is; null: nobody's now.
    const Rank* next(base::Instant now) const;

    Backoff backoff_times_;
    base::StringMap<Item> items_;
    std::array<std::set<Rank>, kLanes> active_;
    int64_t credit_ = 0;  // of the dear ones, in looks
    base::Instant credited_at_;
    base::Instant long_until_;  // no long attempt before
    std::set<Timed> backoff_;
    std::set<Timed> parked_;  // by the time they went to sleep
    size_t gated_ = 0;
    uint64_t arrivals_ = 0;
    uint64_t changes_ = 0;
    std::array<uint64_t, 32> last_{};  // by the bit of a Change: the number of the last one
};

}  // namespace berth::sched
