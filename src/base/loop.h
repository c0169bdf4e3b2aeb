#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/random.h"

namespace berth::base {

struct TimerId {
    uint64_t value = 0;  // 0: no timer
    bool operator==(const TimerId&) const = default;
};

// The door to "later": outer rooms hand in what shall run, and one thread runs it, one task at a time. The real loop
// waits on sockets and timers; VirtualLoop is the simulation's.
class Loop {
public:
    using Task = std::function<void()>;

    virtual ~Loop() = default;
    // Soon, never inside this call. Any thread.
    virtual void post(Task task) = 0;
    // Not before that instant. Owner thread, as everything below.
    virtual TimerId run_at(Instant at, Task task) = 0;
    // False when the task has already run or was cancelled; after true it will not run.
    virtual bool cancel(TimerId timer) = 0;
    virtual const Clock& clock() const = 0;

    TimerId run_after(Duration delay, Task task) { return run_at(clock().now() + delay, std::move(task)); }
};

// One thread, virtual time: time stands still while a task is ready and jumps to the next timer when none is. With a
// seed it picks any of the ready tasks, so that seeds explore orders; without one they run in the order they became
// ready.
class VirtualLoop : public Loop {
public:
    explicit VirtualLoop(ManualClock& clock, std::optional<uint64_t> seed = std::nullopt);

    void post(Task task) override;
    TimerId run_at(Instant at, Task task) override;
    bool cancel(TimerId timer) override;
    const Clock& clock() const override { return clock_; }

    // Runs one task, moving time to the next timer when it must. False when there is nothing left to run.
    bool step();
    // Runs until nothing is left, or until that many tasks have run: then false, since they may go on for ever.
    bool run_until_idle(size_t most = 1'000'000);
    // Runs all that is due until then, and leaves the clock there.
    void run_until(Instant end);
    void run_for(Duration span) { run_until(clock_.now() + span); }

    size_t pending() const { return ready_.size() + timers_.size(); }

private:
    struct Ready {
        uint64_t id;
        Task task;
    };
    void collect_due();
    void run_one_ready();

    ManualClock& clock_;
    std::optional<Random> random_;
    uint64_t last_id_ = 0;
    std::deque<Ready> ready_;
    std::map<std::pair<Instant, uint64_t>, Task> timers_;
    std::map<uint64_t, Instant> timer_times_;
};

}  // namespace berth::base
