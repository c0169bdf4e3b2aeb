#pragma once

#include <vector>

#include "store/store.h"

namespace berth::store {

// A transaction that is accepted and not yet durable, and everybody who waits for it: its author, and authors of writes
// that changed nothing but rest on it.
struct Store::Pending {
    struct Waiter {
        Commit commit;
        Done done;
    };
    EntryPtr entry;
    size_t bytes = 0;
    std::vector<Waiter> waiters;
};

// What a transaction would do, worked out against the pending head.
struct Store::Staged {
    Commit commit;
    std::vector<EventPtr> events;
    size_t bytes = 0;
};

// The event of a change found in the log; null when there is nothing to tell (a deletion of what is not there).
EventPtr event_of(Log::Change, RecordPtr previous);

// The record of a Deleted event.
RecordPtr deleted(const Record& last, Revision revision, uint16_t part);

}  // namespace berth::store
