#pragma once

#include <algorithm>

#include "base/clock.h"
#include "base/random.h"

namespace berth::link {

// How long to wait before the next try: anywhere between the first wait and three times the last one, so that many who
// failed at once do not come back at once.
class Backoff {
public:
    Backoff(base::Duration first, base::Duration longest, uint64_t seed)
        : first_(first), longest_(longest), last_(first), random_(seed) {}

    base::Duration next() {
        last_ = std::min(longest_, base::Duration(random_.between(first_.count(), 3 * last_.count())));
        return last_;
    }
    void reset() { last_ = first_; }

private:
    base::Duration first_, longest_, last_;
    base::Random random_;
};

}  // namespace berth::link
