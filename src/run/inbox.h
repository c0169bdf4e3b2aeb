#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "link/session.h"

namespace berth::run {

// Work that other threads leave for the one that turns a driver: what a call asks for, what an answer brings. Shared
// with those who may still have something to leave when the driver is gone (ADR 25). run() is the driver's, push()
// anybody's.
class Inbox {
public:
    using Work = std::function<void()>;
    explicit Inbox(link::Wake wake) : wake_(std::move(wake)) {}

    void push(Work work) {
        const std::lock_guard lock(mutex_);
        if (closed_) return;
        work_.push_back(std::move(work));
        wake_();
    }
    // False: nothing came.
    bool run() {
        std::vector<Work> came;
        {
            const std::lock_guard lock(mutex_);
            came.swap(work_);
        }
        for (const auto& work : came) work();
        return !came.empty();
    }
    // Nobody runs any more.
    void close() {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        work_.clear();
    }

private:
    link::Wake wake_;
    std::mutex mutex_;
    std::vector<Work> work_;
    bool closed_ = false;
};

}  // namespace berth::run
