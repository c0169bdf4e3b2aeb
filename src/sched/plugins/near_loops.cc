#include "sched/plugins/near_loops.h"

#include "sched/vector.h"

namespace berth::sched::plugins {

BERTH_VECTOR
void add_counts(const uint32_t* __restrict counts, int64_t each, size_t domains, int64_t* __restrict sums) {
    const auto factor = static_cast<int32_t>(each);
    for (size_t i = 0; i < domains; ++i) sums[i] += int64_t{factor} * counts[i];
}

BERTH_VECTOR
void weigh_counts(const uint32_t* __restrict counts, double weight, double more, size_t domains,
                  double* __restrict costs) {
    for (size_t i = 0; i < domains; ++i) costs[i] = counts[i] * weight + more;
}

BERTH_VECTOR
void mark_counted(const uint32_t* __restrict counts, uint8_t mark, size_t domains, uint8_t* __restrict marks) {
    for (size_t i = 0; i < domains; ++i) marks[i] = counts[i] != 0 ? mark : marks[i];
}

BERTH_VECTOR
void mark_above(const uint32_t* __restrict counts, uint32_t most, size_t domains, uint8_t* __restrict marks) {
    for (size_t i = 0; i < domains; ++i) marks[i] = counts[i] > most;
}

BERTH_VECTOR
void mark_positive(const int64_t* __restrict sums, size_t domains, uint8_t* __restrict marks) {
    for (size_t i = 0; i < domains; ++i) marks[i] = sums[i] > 0;
}

BERTH_VECTOR
void mark_also(const uint8_t* __restrict more, size_t domains, uint8_t* __restrict marks) {
    for (size_t i = 0; i < domains; ++i) marks[i] = marks[i] | more[i];
}

BERTH_VECTOR
void add_by_domain(const Domain* __restrict domains, const double* __restrict has, uint32_t none, size_t rows,
                   double* __restrict sums) {
    for (size_t i = 0; i < rows; ++i) sums[i] += has[domains[i] < none ? domains[i] : none];
}

BERTH_VECTOR
void add_by_domain(const Domain* __restrict domains, const int64_t* __restrict has, uint32_t none, size_t rows,
                   int64_t* __restrict sums) {
    for (size_t i = 0; i < rows; ++i) sums[i] += has[domains[i] < none ? domains[i] : none];
}

BERTH_VECTOR
void clear_without_domain(const Domain* __restrict domains, size_t rows, uint8_t* __restrict marks) {
    for (size_t i = 0; i < rows; ++i) marks[i] = domains[i] == ledger::kNoDomain ? 0 : marks[i];
}

BERTH_VECTOR
void clear_without_domain(const Domain* __restrict domains, size_t rows, double* __restrict costs) {
    for (size_t i = 0; i < rows; ++i) costs[i] = domains[i] == ledger::kNoDomain ? 0.0 : costs[i];
}

BERTH_VECTOR
size_t count_marked(const uint8_t* __restrict marks, size_t rows) {
    uint32_t count = 0;
    for (size_t i = 0; i < rows; ++i) count += marks[i] != 0;
    return count;
}

BERTH_VECTOR
bool any_without_domain(const Domain* __restrict domains, const uint8_t* __restrict marks, size_t rows) {
    uint32_t any = 0;
    for (size_t i = 0; i < rows; ++i)
        any |= static_cast<uint32_t>(marks[i]) & (domains[i] == ledger::kNoDomain ? 1 : 0);
    return any != 0;
}

// Builtins, because a function would not be inlined into the copies of the loop.
// A whole number below 2^52 is the low bits of itself + 2^52: an integer without a conversion, which AVX2 lacks.
BERTH_VECTOR
void round_costs(const double* __restrict costs, size_t rows, int64_t* __restrict rounded) {
    constexpr double kShift = 4503599627370496.0;
    for (size_t i = 0; i < rows; ++i) {
        const double whole = __builtin_trunc(costs[i]);
        const double nearest = whole + (costs[i] - whole >= 0.5 ? 1.0 : 0.0);
        rounded[i] = __builtin_bit_cast(int64_t, nearest + kShift) & ((int64_t{1} << 52) - 1);
    }
}

BERTH_VECTOR
Range range_of(const int64_t* __restrict values, const uint8_t* __restrict marks, size_t rows) {
    int64_t low = INT64_MAX;
    int64_t high = INT64_MIN;
    for (size_t i = 0; i < rows; ++i) {
        const int64_t kept = marks[i] != 0 ? ~int64_t{0} : 0;
        const int64_t lower = (values[i] & kept) | (INT64_MAX & ~kept);
        const int64_t higher = (values[i] & kept) | (INT64_MIN & ~kept);
        low = lower < low ? lower : low;
        high = higher > high ? higher : high;
    }
    return {low, high};
}

BERTH_VECTOR
void look_up(const int64_t* __restrict table, int64_t low, const uint8_t* __restrict marks, size_t rows,
             int64_t* __restrict values) {
    for (size_t i = 0; i < rows; ++i) {
        const int64_t kept = marks[i] != 0 ? ~int64_t{0} : 0;
        values[i] = table[(values[i] - low) & kept] & kept;
    }
}

}  // namespace berth::sched::plugins
