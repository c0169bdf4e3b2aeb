#pragma once

#include <absl/container/flat_hash_map.h>

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "ledger/ids.h"
#include "model/reservation.h"

namespace berth::ledger {

// How old a thing is when it is first seen. What is there at the first look is as old as the wall clock says; what
// appears later is no older than the time since the look before.
base::Duration age_when_seen(base::Time since, base::Time wall, std::optional<base::Duration> since_last_look);

// When reservations end, by a clock that cannot jump: from when one is first seen the monotonic clock counts, so a jump
// of the wall clock ends nothing. E.g. a look every second, the wall clock jumps by a day: a new object whose server's
// clock did not jump looks a day old, and is taken to be one second old.
class Ends {
public:
    // It is new, or changed: its end may have moved. Whether it has ended, as of the last look.
    bool put(ReservationIndex index, const model::Reservation& reservation);
    void remove(ReservationIndex index);
    // Looks at the clocks: those that have ended since, in the order of their ends.
    std::vector<ReservationIndex> look(base::Time wall, base::Instant now);
    std::optional<base::Instant> next() const;

private:
    struct Life {
        base::Time created;
        std::optional<base::Duration> lives;  // none: it never ends, or is final
        std::optional<base::Instant> born;    // none before the first look at it
    };
    static base::Instant end_of(const Life& life) { return *life.born + *life.lives; }
    void forget_end(ReservationIndex index, const Life& life);

    absl::flat_hash_map<ReservationIndex, Life> lives_;
    std::vector<ReservationIndex> unborn_;                      // not yet looked at; some may be gone
    std::set<std::pair<base::Instant, ReservationIndex>> due_;  // of those that have not ended
    std::optional<base::Instant> looked_;
};

}  // namespace berth::ledger
