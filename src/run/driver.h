#pragma once

#include "base/clock.h"

namespace berth::run {

// A point on both clocks: one for all that a turn does.
struct Moment {
    base::Instant now;
    base::Time wall;
};
inline Moment moment(const base::Clock& clock) {
    return {clock.now(), clock.wall()};
}

// Something that follows a server and acts on what it sees, without a thread, a clock or a wait of its own: whoever has
// these turns it. In the program that is a thread of app/, in tests and in the simulation a loop over virtual time.
class Driver {
public:
    virtual ~Driver() = default;
    // Takes what came, decides, and sends what was decided.
    virtual void turn(const Moment& now) = 0;
    // When there is more to do though nothing comes. Not after the last turn: at once.
    virtual base::Instant next() const = 0;
    // From now on turns begin nothing; they take the answers to what is under way.
    virtual void stop() = 0;
    // Nothing is under way.
    virtual bool idle() const = 0;
    // Any thread: it has seen everything that was there at its start.
    virtual bool synced() const = 0;
};

}  // namespace berth::run
