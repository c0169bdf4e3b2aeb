#pragma once

#include <span>

#include "base/result.h"
#include "store/record.h"

namespace berth::store {

// The pending head, as a guard sees it: every accepted transaction, durable or not.
class Head {
public:
    virtual ~Head() = default;
    // Null when the key is free.
    virtual RecordPtr find(const Key&) const = 0;

protected:
    Head() = default;
    Head(const Head&) = default;
    Head& operator=(const Head&) = default;
};

// A judge inside the commit order, e.g. a ledger that refuses a bind which would oversell a node. Called under the
// store's lock (but for prepare()), one transaction at a time, in the order of revisions; it must not call the store.
class Guard {
public:
    virtual ~Guard() = default;

    // Called before the lock is taken, for each write of a transaction, on any thread: for what takes long and needs no
    // order, such as decoding. What it gives is there as Event::prepared when admit() is called.
    virtual std::shared_ptr<void> prepare(const Write&) const { return nullptr; }

    // Called after all preconditions hold, with what the transaction would change (never empty). `head` does not have
    // these events yet. An Error refuses the transaction; success means that it counts from now on.
    virtual Status admit(std::span<const EventPtr> events, const Head& head) = 0;

    // The log failed: everything admitted after `durable` is undone, and nothing will be admitted any more.
    virtual void rolled_back(Revision durable) = 0;
};

}  // namespace berth::store
