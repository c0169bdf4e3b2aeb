#pragma once

#include <algorithm>
#include <iterator>

#include "model/cpu_list.h"

// CPU ids as sets.
namespace berth::model {

inline CpuIds cpus_without(const CpuIds& from, const CpuIds& what) {
    CpuIds out;
    std::set_difference(from.begin(), from.end(), what.begin(), what.end(), std::back_inserter(out));
    return out;
}
inline CpuIds cpus_with(const CpuIds& a, const CpuIds& b) {
    CpuIds out;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
    return out;
}
inline CpuIds cpus_in_both(const CpuIds& a, const CpuIds& b) {
    CpuIds out;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
    return out;
}
inline bool has_cpus(const CpuIds& all, const CpuIds& some) {
    return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

}  // namespace berth::model
