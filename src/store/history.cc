#include "store/history.h"

#include <algorithm>

namespace berth::store {
namespace {

// Of so many events what they say stays decoded; who follows is seldom further behind.
constexpr size_t kRemembered = 4096;

// An event keeps alive the record that it replaced; what it wrote is alive anyway, or is the next event's to pay for.
// The constant stands for the event, its place here, and a Record with its strings.
size_t cost(const Event& event) {
    return 320 + (event.previous ? event.previous->bytes->size() : 0);
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
    if (items_.size() > kRemembered) items_[items_.size() - 1 - kRemembered].event->memo.close();
}

void History::drop_oldest() {
    const Event& oldest = *items_.front().event;
    bytes_ -= cost(oldest);
    floor_ = oldest.record->revision;
    items_.pop_front();
}

void History::trim(const HistoryLimits& limits, base::Instant now) {
    while (items_.size() > limits.keep_events && now - items_.front().at > limits.keep_age) drop_oldest();
}

}  // namespace berth::store
