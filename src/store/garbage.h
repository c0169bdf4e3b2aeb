#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "store/log.h"

namespace berth::store {

// How many superseded rows stay in the file, so that watches can resume after a restart.
struct KeepLimits {
    size_t rows = 10'000;
    size_t bytes = 64 << 20;
};

// The rows of a log that are superseded, in the order in which they became so. A row goes only after all that became
// garbage before it, so a deletion never goes before what it deleted.
class Garbage {
public:
    explicit Garbage(KeepLimits keep) : keep_(keep) {}

    // `by` replaced `previous` (null: nothing). A deletion is garbage itself: without older rows it says nothing.
    void add(const Record& by, bool deleted, const Record* previous);

    // A tenth above the limits, so that rows go in chunks and not one by one.
    bool too_much() const { return over(1.1) || (taking_ && over(1.0)); }
    // So much that it should not wait for a quiet moment.
    bool far_too_much() const { return over(2.0); }

    struct Chunk {
        std::vector<int64_t> ids;
        Revision floor = 0;  // the history begins here when they are gone
    };
    // The oldest, at most `max`, and no more than the limits ask for.
    Chunk take(size_t max);

private:
    struct Row {
        int64_t id;
        Revision by;
        size_t bytes;
    };
    void add(Row);
    bool over(double times) const;

    KeepLimits keep_;
    std::deque<Row> rows_;
    size_t bytes_ = 0;
    bool taking_ = false;  // not yet down to the limits
};

}  // namespace berth::store
