#pragma once

#include <cstddef>
#include <deque>

#include "base/clock.h"
#include "store/record.h"
#include "store/store.h"

namespace berth::store {

// The recent events of one kind, oldest first.
//
// Invariants: 1. revisions never fall from front to back. 2. Every event of the kind after floor() is here (events at
// floor() may be, when a transaction was dropped in part: nobody asks for them).
class History {
public:
    explicit History(Revision floor) : floor_(floor) {}

    // The newest revision of which an event was dropped: a cursor before it has lost something.
    Revision floor() const { return floor_; }
    size_t size() const { return items_.size(); }
    // When the oldest came; only while there is one.
    base::Instant oldest() const { return items_.front().at; }
    // What is held in memory only because of this history.
    size_t bytes() const { return bytes_; }
    const EventPtr& operator[](size_t index) const { return items_[index].event; }
    // The index of the first event after `revision`; size() when there is none.
    size_t first_after(Revision revision) const;

    void push(EventPtr, base::Instant now);
    void drop_oldest();
    // Drops what both keep_events and keep_age allow to drop, and forgets what older events were decoded into.
    void trim(const HistoryLimits&, base::Instant now);

private:
    struct Item {
        EventPtr event;
        base::Instant at;
    };
    std::deque<Item> items_;
    size_t remembered_ = 0;  // so many of the newest may still be decoded
    Revision floor_;
    size_t bytes_ = 0;
};

}  // namespace berth::store
