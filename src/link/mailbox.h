#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "link/api_client.h"

namespace berth::link {

// Between the I/O thread that fills a feed and the thread that polls it. Bounded by back pressure: who fills it looks
// at full() and stops reading; `drained` is called when there is room again.
class Mailbox {
public:
    Mailbox(std::function<void()> notify, std::function<void()> drained)
        : notify_(std::move(notify)), drained_(std::move(drained)) {}

    void push(FeedEvent event) {
        const std::lock_guard lock(mutex_);
        if (closed_) return;
        bytes_ += size_of(event);
        events_.push_back(std::move(event));
        if (std::exchange(notified_, true)) return;
        notify_();
    }

    // True: say no more until `drained`.
    bool full() {
        const std::lock_guard lock(mutex_);
        waits_ = bytes_ > kMostBytes || events_.size() > kMostEvents;
        return waits_;
    }

    std::vector<FeedEvent> poll(size_t most) {
        const std::lock_guard lock(mutex_);
        std::vector<FeedEvent> out;
        if (events_.empty()) notified_ = false;
        while (!events_.empty() && out.size() < most) {
            bytes_ -= size_of(events_.front());
            out.push_back(std::move(events_.front()));
            events_.pop_front();
        }
        if (waits_ && bytes_ < kMostBytes / 2 && events_.size() < kMostEvents / 2) {
            waits_ = false;
            drained_();
        }
        return out;
    }

    // Nobody polls any more, and nobody is notified after this.
    void close() {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        events_.clear();
    }

private:
    static constexpr size_t kMostBytes = size_t{64} << 20;
    static constexpr size_t kMostEvents = 50'000;
    static size_t size_of(const FeedEvent& event) { return event.text ? event.text->size() : 0; }

    std::function<void()> notify_;
    std::function<void()> drained_;
    std::mutex mutex_;
    std::deque<FeedEvent> events_;
    size_t bytes_ = 0;
    bool notified_ = false;
    bool waits_ = false;
    bool closed_ = false;
};

}  // namespace berth::link
