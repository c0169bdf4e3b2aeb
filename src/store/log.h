#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/record.h"

namespace berth::store {

// One transaction on its way to the disk. Every event has the same revision.
struct LogEntry {
    Revision revision = 0;
    std::vector<EventPtr> events;
};
using EntryPtr = std::shared_ptr<const LogEntry>;

// The door to what survives. A log keeps entries in the order given and says when they are safe; it may lose the newest
// ones in a crash, each whole, until it has said so.
class Log {
public:
    // Told in the order of revisions, never while the store's lock is held by append().
    class Sink {
    public:
        virtual ~Sink() = default;
        // Every entry up to and including this revision is safe.
        virtual void durable(Revision up_to) = 0;
        // Nothing after the last durable() will ever be acknowledged. Called at most once.
        virtual void failed(Error) = 0;
    };

    // What a log remembers. Changes come in the order of revisions; those at or before `floor` are objects as they
    // stand there (superseded ones left out), those after it are all the changes there were.
    struct Change {
        RecordPtr record;  // of a deletion only key, revision and part are meant
        bool deleted = false;
    };
    struct Extent {
        Revision floor = 0;
        Revision last = 0;  // the newest revision ever acknowledged
    };

    virtual ~Log() = default;

    virtual Extent extent() const = 0;
    // Called once, before start(). The visitor answers which record the change replaced, if any.
    using Replay = std::function<RecordPtr(Change)>;
    virtual Status replay(const Replay&) = 0;
    virtual void start(Sink&) = 0;
    // Called under the store's lock, in the order of revisions. Must not call the sink.
    virtual void append(EntryPtr) = 0;
    // Called after append() without the lock. A log without a thread of its own may call the sink from here.
    virtual void kick() = 0;
    // Everything appended is made safe or failed, the sink is told, and is not called again.
    virtual void close() = 0;
};

// Safe at once, and gone with the process: acknowledges inside kick(), so that a write is done when submit() returns.
std::unique_ptr<Log> memory_log();

}  // namespace berth::store
