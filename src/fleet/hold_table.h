#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/hold.h"

namespace berth::fleet {

using base::Duration;
using base::Instant;
using model::Amounts;
using model::HoldAnswer;
using model::HoldAsk;
using model::HoldReason;
using model::HoldState;

struct HoldTimes {
    Duration hold = std::chrono::seconds(30);        // of a hold that nobody renews
    Duration committed = std::chrono::seconds(120);  // of one whose machine is on its way
    Duration tombstone = std::chrono::seconds(240);  // how long a refused, ended or deleted lineage is remembered
};

// Who has what of a provider's hardware. Always, for every resource:
//   machines + live holds <= capacity
// unless somebody took hardware away below its machines; then nothing more is given until it holds again. A lineage has
// one hold or one machine, never both: a machine takes the place of its hold in one step, also where nothing else is
// free. E.g. capacity 2, a hold of 2 for m: used 2; the machine m comes: used 2. The clock is the monotonic one: a hold
// ends by itself when its lease has passed, whatever else happens. One thread at a time.
class HoldTable {
public:
    struct Hold {
        HoldAsk ask;
        HoldState state = HoldState::Pending;
        HoldReason reason = HoldReason::None;
        int32_t score = 0;
        bool committed = false;
        std::optional<Instant> until = {};  // live: of its lease; else: of the memory of it. Absent: no end
        uint64_t order = 0;                 // the newest has the largest
        uint64_t sequence = 0;              // of its last change

        bool live() const { return state == HoldState::Accepted; }
    };
    struct Machine {
        std::string lineage;
        uint64_t attempt = 1;
        Amounts amounts;
    };
    // What was deleted: older attempts, and late copies of the same one, come to nothing.
    struct Fence {
        uint64_t attempt = 0;
        Instant until = {};
    };
    // Rows that changed since they were last taken, by lineage; absent now: gone. For a journal and for watchers.
    using Changes = std::set<std::string>;

    HoldTable(Amounts capacity, HoldTimes times) : capacity_(std::move(capacity)), times_(times) {}

    // The same answer for the same lineage and attempt, however often it is asked.
    HoldAnswer reserve(const HoldAsk& ask, Instant now);
    // Its lease begins anew. NotFound: nothing is held (any more).
    Result<HoldAnswer> renew(const std::string& lineage, Instant now);
    // The long lease, for a machine that is on its way. Conflict: another attempt holds it.
    Result<HoldAnswer> confirm(const std::string& lineage, uint64_t attempt, Instant now);
    // False: there was none. What was bound stays a machine.
    bool release(const std::string& lineage, Instant now);

    // In place of its hold, or into free room. NotFound, Conflict (a later attempt, or deleted) or TooManyRequests (no
    // room) say why not.
    Status place(const Machine& machine, Instant now);
    // A machine becomes larger or smaller: NotFound, or TooManyRequests when there is no room for more.
    Status change(const std::string& lineage, const Amounts& amounts, Instant now);
    // False: there was none; a copy of the request to place it that comes later is refused all the same.
    bool remove(const std::string& lineage, Instant now, uint64_t attempt = 1);

    // Ends leases and forgets what is old.
    void pass_time(Instant now);
    // When pass_time() has something to do.
    std::optional<Instant> next() const;
    // What is lost: the newest holds, as many as no longer fit. Machines stay.
    std::vector<std::string> resize(Amounts capacity, Instant now);

    std::optional<HoldAnswer> answer(const std::string& lineage, Instant now) const;
    const std::map<std::string, Hold>& holds() const { return holds_; }
    const std::map<std::string, Machine>& machines() const { return machines_; }
    const std::map<std::string, Fence>& fences() const { return fences_; }
    const Amounts& capacity() const { return capacity_; }
    const Amounts& held() const { return held_; }
    const Amounts& used() const { return used_; }  // by machines
    uint64_t sequence() const { return sequence_; }
    Changes take_changes() { return std::exchange(changes_, {}); }

    // Of a journal, before anything else.
    void restore(Hold hold);
    void restore(Machine machine);
    void restore(const std::string& lineage, Fence fence);

private:
    using Holds = std::map<std::string, Hold>;

    HoldReason refusal(const Amounts& asked, const Amounts* instead_of) const;
    int32_t score(const Amounts& asked) const;
    bool fenced(const std::string& lineage, uint64_t attempt) const;
    void set_state(Hold& hold, HoldState state, HoldReason reason, Instant now);
    void set_until(Hold& hold, std::optional<Instant> until);
    void forget(Holds::iterator hold);
    void raise_fence(const std::string& lineage, uint64_t attempt, Instant now);
    void wake_refused(Instant now);
    void forget_fences(Instant now);
    void touch(Hold& hold);
    std::optional<Instant> lease_end(const Hold& hold, Instant now) const;

    Amounts capacity_;
    HoldTimes times_;
    Holds holds_;                              // by lineage; live, and remembered
    std::map<std::string, Machine> machines_;  // by lineage
    std::map<std::string, Fence> fences_;
    std::set<std::pair<Instant, std::string>> ends_;  // of holds, by time
    Instant sweep_ = {};                              // when fences are looked at again
    Amounts held_;
    Amounts used_;
    Changes changes_;
    uint64_t orders_ = 0;
    uint64_t sequence_ = 0;
};

}  // namespace berth::fleet
