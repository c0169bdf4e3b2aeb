#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "link/api_client.h"

namespace berth::link {

// A Lease of coordination.k8s.io/v1, as kube's own components keep theirs.
struct LeaseRecord {
    std::string holder;  // empty: nobody's
    base::Duration duration{};
    std::string acquired, renewed;  // as they were written: never compared with a clock of ours
    int64_t transitions = 0;
    std::string object = {};  // the whole object it came from; empty before it exists
    bool operator==(const LeaseRecord&) const = default;
};
Result<LeaseRecord> read_lease(std::string_view object);
// The object with this record as its spec.
std::string lease_text(const std::string& ns, const std::string& name, const LeaseRecord& record);

struct ElectionTimes {
    base::Duration lease = std::chrono::seconds(15);     // others wait so long after they saw the last renewal
    base::Duration deadline = std::chrono::seconds(10);  // a leader that could not renew for so long stops
    base::Duration retry = std::chrono::seconds(2);
    // The deadline must lie before the end of the lease, with room for several tries.
    Status check() const;
};

// Who leads, as a state machine: one move at a time goes to the server, and its outcome comes back. Whether somebody
// else's lease has ended is judged by when we last saw it change, never by the times it carries, so that clocks that
// disagree do no harm.
class Election {
public:
    Election(std::string identity, ElectionTimes times, uint64_t seed)
        : identity_(std::move(identity)), times_(times), random_(seed) {}

    struct Move {
        enum class Kind : uint8_t { Read, Create, Replace };
        Kind kind = Kind::Read;
        LeaseRecord record = {};
    };
    // What to ask the server now. Nothing while a move is open, or before next_wake().
    std::optional<Move> move(base::Instant now, base::Time wall);
    base::Instant next_wake() const { return wake_; }

    // What came of the open move.
    void found(std::optional<LeaseRecord> record, base::Instant now);
    void written(LeaseRecord record);
    void failed(base::Instant now);  // somebody was faster, it is not allowed, or nobody knows

    // We may act until then. It was counted from before the renewal was sent, so it lies before anyone else's turn.
    base::Instant fence() const { return leads_ ? renewed_at_ + times_.deadline : base::Instant{}; }
    bool leads(base::Instant now) const { return leads_ && now < fence(); }
    // We led, and may no longer.
    bool lost(base::Instant now) const { return taken_ || (leads_ && now >= fence()); }

    // The record that gives the lease back, when it is ours.
    std::optional<LeaseRecord> resignation(base::Time wall) const;

private:
    base::Instant free_at() const;
    LeaseRecord mine(base::Time wall) const;
    void close(base::Instant wake);

    const std::string identity_;
    const ElectionTimes times_;
    base::Random random_;
    std::optional<LeaseRecord> known_;  // as last read or written
    bool absent_ = false;               // it was read, and there was none
    bool stale_ = true;                 // read before the next write
    base::Instant changed_at_;          // when known_ was first seen as it is
    bool open_ = false;
    base::Instant sent_at_;
    base::Instant wake_;
    bool leads_ = false;
    bool taken_ = false;
    base::Instant renewed_at_;
};

}  // namespace berth::link
