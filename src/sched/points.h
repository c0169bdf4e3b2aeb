#pragma once

#include <cmath>
#include <cstdint>

#include "base/int128.h"

// The formulas of the scores that depend on one row's sums; the plugins and the fast way share them.
namespace berth::sched {

// floor((allocatable - used - asked) x 100 / allocatable), 0 above capacity. Only for allocatable > 0.
inline int64_t unused_percent(int64_t allocatable, int64_t used, int64_t asked) {
    constexpr int64_t kSmall = int64_t{1} << 55;  // below it nothing here leaves 64 bits
    if (allocatable < kSmall && used < kSmall && used >= 0 && asked < kSmall && asked >= 0) {
        const int64_t free = allocatable - used - asked;
        return free > 0 ? free * 100 / allocatable : 0;
    }
    const auto free = static_cast<int128>(allocatable) - used - asked;
    return free > 0 ? static_cast<int64_t>(free * 100 / allocatable) : 0;
}

// Floor of the mean over cpu and memory of the above; a resource with allocatable 0 is left out.
// E.g. 4 cpu / 32Gi empty, pod 1 cpu / 8Gi: (75 + 75) / 2 = 75.
struct RowUse {
    int64_t cpu_allocatable, cpu_used, memory_allocatable, memory_used;
};
inline int64_t least_allocated_points(const RowUse& row, int64_t cpu, int64_t memory) {
    int64_t sum = 0;
    int64_t resources = 0;
    if (row.cpu_allocatable != 0) {
        sum += unused_percent(row.cpu_allocatable, row.cpu_used, cpu);
        ++resources;
    }
    if (row.memory_allocatable != 0) {
        sum += unused_percent(row.memory_allocatable, row.memory_used, memory);
        ++resources;
    }
    return resources == 0 ? 0 : sum / resources;
}

// trunc((1 - |f1 - f2| / 2) x 100), f = min(1, requested / allocatable) of cpu and of memory, real requests; a node
// that has only one of the two gets 100.
inline int64_t balanced_points(const RowUse& row, int64_t cpu, int64_t memory) {
    const auto fraction = [](int64_t allocatable, int64_t used, int64_t asked) {
        const double all = static_cast<double>(used) + static_cast<double>(asked);
        const double part = all / static_cast<double>(allocatable);
        return part < 1.0 ? part : 1.0;
    };
    if (row.cpu_allocatable == 0 || row.memory_allocatable == 0) return 100;
    const double deviation = std::fabs(
        (fraction(row.cpu_allocatable, row.cpu_used, cpu) - fraction(row.memory_allocatable, row.memory_used, memory)) /
        2);
    return static_cast<int64_t>((1 - deviation) * 100.0);
}

}  // namespace berth::sched
