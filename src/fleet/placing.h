#pragma once

#include <optional>
#include <string>

#include "fleet/objects.h"
#include "fleet/round.h"

namespace berth::fleet {

// The next step of a Machine in its layer; each is one write, and the next one is decided when that was seen.
struct Step {
    enum class Do : uint8_t {
        Nothing,
        Reserve,      // make its Reservation
        Release,      // delete it
        Commit,       // say on it that the Machine goes to `pool`
        SetPool,      // Machine.spec.machinePoolRef = pool
        NextAttempt,  // the Machine's attempt grows; the Reservation of the old one goes
        ClearPool,    // the same, and machinePoolRef is taken back: what was promised is lost
        TellLost,     // the same, where the layer above decides: it is told on the Reservation
        LetGo,        // its pool is gone for good: nobody else takes the poollet's finalizer off
    };
    Do what = Do::Nothing;
    std::string pool = {};
    std::string why = {};                    // for people
    std::optional<base::Instant> next = {};  // look again then
};

// What is not written down about a Machine.
struct PlacingMemory {
    uint64_t failures = 0;
    std::optional<base::Instant> retry_at = {};
    std::optional<base::Instant> lost_at = {};
    std::optional<base::Instant> committed_at = {};  // when its hold was first seen to wait for it
    std::optional<base::Instant> pool_gone_at = {};  // since when its pool does not exist
    bool pool_silent = false;                        // its pool exists, and nobody is heard there
};

inline constexpr base::Duration kHopMargin = std::chrono::seconds(2);
// The longest lease of a hold whose machine is on its way. After it, and the margin, nothing can arrive any more.
inline constexpr base::Duration kCommittedLease = std::chrono::seconds(120);

// machinePoolRef is written only after the hold of its pool has said that it waits for the Machine, with lease left.
Step next_step(const Machine& machine, const Reservation* reservation, const Round& round, PlacingMemory& memory,
               base::Instant now);

}  // namespace berth::fleet
