#include "store/history.h"

#include <algorithm>

namespace berth::store {
namespace {

// Of so many events, and for so long, what they say stays decoded: who follows is seldom further behind.
constexpr size_t kMostRemembered = 16'384;
constexpr base::Duration kRemembered = std::chrono::seconds(3);

// An event keeps alive the record that it replaced; what it wrote is alive anyway, or is the next event's to pay for.
// The constant stands for what the allocator gives for the event (160 bytes), its place here (24), a Record (192), its
// strings (48 for the uid, as much for the name) and what holds the bytes (48).
size_t cost(const Event& event) {
    return 520 + (event.previous ? event.previous->bytes->size() : 0);
}

}  // namespace

size_t History::first_after(Revision revision) const {
    const auto at = std::partition_point(items_.begin(), items_.end(),
                                         [&](const Item& item) { return item.event->record->revision <= revision; });
    return static_cast<size_t>(at - items_.begin());
}

void History::push(EventPtr event, base::Instant now) {
    bytes_ += cost(*event);
    items_.push_back({std::move(event), now});
    ++remembered_;
}

void History::drop_oldest() {
    const Event& oldest = *items_.front().event;
    bytes_ -= cost(oldest);
    floor_ = oldest.record->revision;
    items_.pop_front();
    remembered_ = std::min(remembered_, items_.size());
}

void History::trim(const HistoryLimits& limits, base::Instant now) {
    for (; remembered_ > 0; --remembered_) {
        const Item& oldest = items_[items_.size() - remembered_];
        if (remembered_ <= kMostRemembered && now - oldest.at <= kRemembered) break;
        oldest.event->memo.close();
    }
    while (items_.size() > limits.keep_events && now - items_.front().at > limits.keep_age) drop_oldest();
}

}  // namespace berth::store
