#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace berth::bench {

// Latencies of one kind of operation, gathered without order.
class Latencies {
public:
    void add(base::Duration each) { nanos_.push_back(each.count()); }
    void add(const Latencies& other) { nanos_.insert(nanos_.end(), other.nanos_.begin(), other.nanos_.end()); }
    size_t count() const { return nanos_.size(); }
    // In microseconds; `percent` of the operations took no longer. 0 when there is none.
    double percentile(double percent) const;

private:
    std::vector<int64_t> nanos_;
};

// Resident memory of this process, in MB of 10^6 bytes.
double resident_mb();

// Two decimals are enough for people and small enough for a table.
double rounded(double value);

// Wall and processor time since it was made.
class Stopwatch {
public:
    Stopwatch();
    base::Duration wall() const;
    base::Duration cpu() const;

private:
    base::Instant wall_;
    base::Duration cpu_;
};

// ops_per_s, p50_us, p99_us, cpu_us_per_op (of the whole process) and rss_mb, as every workload reports them.
JsonObject report(const Latencies&, size_t operations, const Stopwatch&);

}  // namespace berth::bench
