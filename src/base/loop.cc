#include "base/loop.h"

#include <algorithm>
#include <utility>

namespace berth::base {

VirtualLoop::VirtualLoop(ManualClock& clock, std::optional<uint64_t> seed) : clock_(clock) {
    if (seed) random_.emplace(*seed);
}

void VirtualLoop::post(Task task) {
    ready_.push_back({++last_id_, std::move(task)});
}

TimerId VirtualLoop::run_at(Instant at, Task task) {
    const uint64_t id = ++last_id_;
    timers_.emplace(std::pair(at, id), std::move(task));
    timer_times_.emplace(id, at);
    return {id};
}

bool VirtualLoop::cancel(TimerId timer) {
    const auto due = std::find_if(ready_.begin(), ready_.end(), [&](const Ready& r) { return r.id == timer.value; });
    if (due != ready_.end()) {
        ready_.erase(due);
        return true;
    }
    const auto found = timer_times_.find(timer.value);
    if (found == timer_times_.end()) return false;
    timers_.erase({found->second, found->first});
    timer_times_.erase(found);
    return true;
}

void VirtualLoop::collect_due() {
    while (!timers_.empty() && timers_.begin()->first.first <= clock_.now()) {
        auto timer = timers_.extract(timers_.begin());
        timer_times_.erase(timer.key().second);
        ready_.push_back({timer.key().second, std::move(timer.mapped())});
    }
}

void VirtualLoop::run_one_ready() {
    const size_t pick = random_ ? random_->below(ready_.size()) : 0;
    const Task task = std::move(ready_[pick].task);
    ready_.erase(ready_.begin() + static_cast<ptrdiff_t>(pick));
    task();
}

bool VirtualLoop::step() {
    collect_due();
    if (ready_.empty()) {
        if (timers_.empty()) return false;
        clock_.advance(timers_.begin()->first.first - clock_.now());
        collect_due();
    }
    run_one_ready();
    return true;
}

bool VirtualLoop::run_until_idle(size_t most) {
    for (; most > 0; --most) {
        if (!step()) return true;
    }
    return pending() == 0;
}

void VirtualLoop::run_until(Instant end) {
    while (true) {
        collect_due();
        if (!ready_.empty()) {
            run_one_ready();
        } else if (!timers_.empty() && timers_.begin()->first.first <= end) {
            clock_.advance(timers_.begin()->first.first - clock_.now());
        } else {
            break;
        }
    }
    if (clock_.now() < end) clock_.advance(end - clock_.now());
}

}  // namespace berth::base
