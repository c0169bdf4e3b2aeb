#pragma once

#include <algorithm>
#include <ctime>
#include <limits>

namespace berth::base {

// The least CPU time of this thread in three runs, for comparing with another within the same test: how a cost grows.
template <class Work>
double least_cost(Work work) {
    const auto now = [] {
        timespec at{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
        return static_cast<double>(at.tv_sec) * 1e9 + static_cast<double>(at.tv_nsec);
    };
    double least = std::numeric_limits<double>::max();
    for (int i = 0; i < 3; ++i) {
        const double begin = now();
        work();
        least = std::min(least, now() - begin);
    }
    return least;
}

}  // namespace berth::base
