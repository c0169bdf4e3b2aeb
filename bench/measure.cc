#include "bench/measure.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>

namespace berth::bench {

double Latencies::percentile(double percent) const {
    if (nanos_.empty()) return 0;
    std::vector<int64_t> sorted = nanos_;
    const auto rank = static_cast<size_t>(percent / 100 * static_cast<double>(sorted.size() - 1));
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(rank), sorted.end());
    return static_cast<double>(sorted[rank]) / 1000;
}

double resident_mb() {
    std::ifstream statm("/proc/self/statm");
    int64_t total = 0;
    int64_t resident = 0;
    statm >> total >> resident;
    return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / 1e6;
}

double rounded(double value) {
    return std::round(value * 100) / 100;
}

namespace {

base::Duration processor_time() {
    timespec spent = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

}  // namespace

Stopwatch::Stopwatch() : wall_(base::system_clock().now()), cpu_(processor_time()) {}

base::Duration Stopwatch::wall() const {
    return base::system_clock().now() - wall_;
}

base::Duration Stopwatch::cpu() const {
    return processor_time() - cpu_;
}

JsonObject report(const Latencies& latencies, size_t operations, const Stopwatch& watch) {
    const double seconds = std::chrono::duration<double>(watch.wall()).count();
    const double cpu_us = std::chrono::duration<double, std::micro>(watch.cpu()).count();
    const auto count = static_cast<double>(operations);
    return {{"ops_per_s", rounded(count / seconds)},
            {"p50_us", rounded(latencies.percentile(50))},
            {"p99_us", rounded(latencies.percentile(99))},
            {"cpu_us_per_op", rounded(cpu_us / count)},
            {"rss_mb", rounded(resident_mb())}};
}

}  // namespace berth::bench
