#pragma once

#include <condition_variable>
#include <mutex>

#include "base/clock.h"

namespace berth::link {

// Wakes the one thread that waits for feeds and replies. Ringing is remembered until the next wait.
class WakeEvent {
public:
    void notify() {
        // Under the lock: whoever it wakes may destroy the wake.
        const std::lock_guard lock(mutex_);
        rung_ = true;
        waiting_.notify_one();
    }
    // Until it rings, or for at most that long.
    void wait(base::Duration most) {
        std::unique_lock lock(mutex_);
        waiting_.wait_for(lock, most, [&] { return rung_; });
        rung_ = false;
    }

private:
    std::mutex mutex_;
    std::condition_variable waiting_;
    bool rung_ = false;
};

}  // namespace berth::link
