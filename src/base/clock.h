#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

#include "base/saturating.h"

namespace berth::base {

using Duration = std::chrono::nanoseconds;

// A point on the monotonic clock: only differences mean anything. Never stored, never sent.
struct Instant {
    int64_t nanos = 0;
    auto operator<=>(const Instant&) const = default;
    friend Duration operator-(Instant a, Instant b) { return Duration(saturating_subtract(a.nanos, b.nanos)); }
    friend Instant operator+(Instant a, Duration d) { return {saturating_add(a.nanos, d.count())}; }
};

// A point in calendar time, nanoseconds since 1970 UTC: what objects carry.
struct Time {
    int64_t nanos = 0;
    auto operator<=>(const Time&) const = default;
    friend Duration operator-(Time a, Time b) { return Duration(saturating_subtract(a.nanos, b.nanos)); }
    friend Time operator+(Time a, Duration d) { return {saturating_add(a.nanos, d.count())}; }
};

// The door to time. Decision rooms take Instant and Time as arguments; only the outer rooms hold a Clock.
class Clock {
public:
    virtual ~Clock() = default;
    virtual Instant now() const = 0;
    virtual Time wall() const = 0;
};

// The machine's own clock.
const Clock& system_clock();

// A clock that stands still until it is moved, for tests and simulation.
class ManualClock : public Clock {
public:
    explicit ManualClock(Time wall = {}) : wall_(wall) {}
    Instant now() const override { return now_; }
    Time wall() const override { return wall_; }
    void advance(Duration by) {
        now_ = now_ + by;
        wall_ = wall_ + by;
    }
    // The wall clock alone, as an operator or NTP would set it.
    void jump_wall(Duration by) { wall_ = wall_ + by; }

private:
    Instant now_;
    Time wall_;
};

}  // namespace berth::base
