#pragma once

#include <atomic>

#include "base/clock.h"

namespace berth::link {

// Until when this process may write. A leader moves it on with every renewal of its lease; once it is passed, requests
// that are still queued are not sent any more. Any thread.
class Fence {
public:
    void move(base::Instant until) { until_ = until.nanos; }
    bool open(base::Instant now) const { return now.nanos < until_; }

private:
    std::atomic<int64_t> until_ = 0;
};

}  // namespace berth::link
