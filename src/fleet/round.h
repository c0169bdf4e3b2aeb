#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/hold.h"

namespace berth::fleet {

// A pool of a layer, as far as choosing goes.
struct Pool {
    std::string name;
    Labels labels;
    std::vector<Taint> taints;
    bool ready = true;
};

struct PoolEntry {
    std::string name;
    model::HoldAnswer answer;
    bool operator==(const PoolEntry&) const = default;
};

// A reservation as it stands in its layer.
struct Asked {
    std::string lineage;
    Labels selector;
    std::vector<Toleration> tolerations;
    std::vector<std::string> pinned;  // empty: any pool
    bool for_machine = true;          // else it is held wherever it can be
    bool origin = true;               // the layer where its Machine was made; else it answers to the layer above
    std::optional<base::Duration> within = {};  // what the layer above leaves us to decide; see time_below()
    std::vector<std::string> pools;             // who is asked now
    std::string commit;                         // where its machine goes
    std::vector<PoolEntry> entries;             // what they said
    model::HoldAnswer told;                     // what was said upward
};

struct RoundRules {
    size_t wave = 3;
    base::Duration deadline = std::chrono::seconds(2);
};

// How long pools take to answer: of the last replies, the time within which 95 of 100 came.
class ReplyTimes {
public:
    void add(base::Duration took);
    base::Duration p95() const;

private:
    static constexpr size_t kKept = 100;
    static constexpr base::Duration kUnknown = std::chrono::milliseconds(250);
    std::vector<base::Duration> last_;
    size_t at_ = 0;
};

// What of a round is not written down: from when on we wait. Lost with the process; then waiting begins anew.
struct RoundMemory {
    std::map<std::string, base::Instant> asked_at;
};

// What to do about a reservation now.
struct Round {
    std::optional<std::vector<std::string>> ask;  // its pools from now on
    bool decided = false;
    model::HoldAnswer answer;                // Pending as long as it is not decided
    std::string pool;                        // of Accepted and Bound
    std::optional<base::Instant> next = {};  // look again then, though nothing may have come
};

// The fold of a layer: Bound if any pool says so; else Accepted if any holds; else Pending until all have answered or
// their time has passed; else Rejected with the most hopeful reason. Pools are asked in waves; once one is chosen the
// others are left out of `ask`, so that they give back what they hold before anybody above hears of it.
Round next_round(const Asked& asked, RoundMemory& memory, std::span<const Pool> pools, const ReplyTimes& times,
                 const RoundRules& rules, base::Instant now);

// What a layer says upward: what its scheduler has said, or is about to say of the only pool that it still asks. A step
// on the way up less.
model::HoldAnswer upward(const Asked& asked);

// How long the layers below a pool have to decide, so that they say that somebody was silent before we stop waiting for
// them: our own time less a margin for the way. E.g. 6 s at the top: 4 s below, then 2 s, and never less than 500 ms.
base::Duration time_below(const Asked& asked, const RoundRules& rules);
base::Duration whole_time(const Asked& asked, const RoundRules& rules);

// Why a pool is not asked; "" when it may be.
std::string why_not(const Asked& asked, const Pool& pool);

// 1 s, doubled with each failure up to 60 s, of which a half is left to chance. E.g. the third: from 2 s to 4 s.
base::Duration backoff(uint64_t failures, std::string_view lineage);

}  // namespace berth::fleet
