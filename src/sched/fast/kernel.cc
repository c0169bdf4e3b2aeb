#include "sched/fast/kernel.h"

#include <algorithm>

#include "sched/vector.h"

namespace berth::sched::fast {
namespace {

// One row; written once, used by the vector loop and its scalar twin. A macro because a function would not be inlined
// into the copies of the loop.
#define BERTH_UPPER_KEY(i)                                                                    \
    const float p1 = (cpu_used[i] + n.cpu) * cpu_per[i];                                      \
    const float p2 = (memory_used[i] + n.memory) * memory_per[i];                             \
    const float free1 = 100.0f - (cpu_scored[i] + n.cpu_scored) * cpu_per[i];                 \
    const float free2 = 100.0f - (memory_scored[i] + n.memory_scored) * memory_per[i];        \
    const int32_t least = (static_cast<int32_t>((free1 > 0.0f ? free1 : 0.0f) + kSlack) +     \
                           static_cast<int32_t>((free2 > 0.0f ? free2 : 0.0f) + kSlack)) >>   \
                          1;                                                                  \
    const float gap = (p1 < 100.0f ? p1 : 100.0f) - (p2 < 100.0f ? p2 : 100.0f);              \
    const int32_t even = static_cast<int32_t>(100.0f - __builtin_fabsf(gap) * 0.5f + kSlack); \
    const int32_t score = base[i] + least * n.least_weight + even * n.balanced_weight;        \
    const uint32_t key = (static_cast<uint32_t>(score) << kRankBits | reversed_rank[i]) &     \
                         (p1 <= n.cpu_limit ? ~0u : 0u) & (p2 <= n.memory_limit ? ~0u : 0u) & \
                         (n.pods <= free_pods[i] ? ~0u : 0u) & (base[i] != 0 ? ~0u : 0u)

}  // namespace

BERTH_VECTOR
void upper_keys(const RowColumns& rows, const ClassNumbers& numbers, const uint16_t* all_base, size_t blocks,
                Key* all_keys, Key* block_tops) {
    const ClassNumbers n = numbers;
    for (size_t block = 0; block < blocks; ++block) {
        const size_t first = block * kBlock;
        const float* __restrict cpu_used = rows.cpu_used + first;
        const float* __restrict memory_used = rows.memory_used + first;
        const float* __restrict cpu_scored = rows.cpu_scored + first;
        const float* __restrict memory_scored = rows.memory_scored + first;
        const float* __restrict cpu_per = rows.cpu_per + first;
        const float* __restrict memory_per = rows.memory_per + first;
        const float* __restrict free_pods = rows.free_pods + first;
        const uint32_t* __restrict reversed_rank = rows.reversed_rank + first;
        const uint16_t* __restrict base = all_base + first;
        Key* __restrict keys = all_keys + first;
        uint32_t top = 0;
        for (size_t i = 0; i < kBlock; ++i) {
            BERTH_UPPER_KEY(i);
            keys[i] = key;
            top = top > key ? top : key;
        }
        block_tops[block] = top;
    }
}

void upper_keys_scalar(const RowColumns& rows, const ClassNumbers& n, const uint16_t* base, size_t blocks, Key* keys,
                       Key* block_tops) {
    const auto [cpu_used, memory_used, cpu_scored, memory_scored, cpu_per, memory_per, free_pods, reversed_rank] = rows;
    std::fill(block_tops, block_tops + blocks, 0u);
    for (size_t i = 0; i < blocks * kBlock; ++i) {
        BERTH_UPPER_KEY(i);
        keys[i] = key;
        block_tops[i / kBlock] = std::max(block_tops[i / kBlock], keys[i]);
    }
}

BERTH_VECTOR
void strike_short(const float* __restrict free, float asked, size_t blocks, uint16_t* __restrict base) {
    for (size_t block = 0; block < blocks; ++block) {
        for (size_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
            const uint16_t kept = asked <= free[i] ? 0xffff : 0;
            base[i] = base[i] & kept;
        }
    }
}

BERTH_VECTOR
void open_where(const Key* __restrict keys, size_t rows, uint8_t* __restrict open) {
    for (size_t i = 0; i < rows; ++i) open[i] = keys[i] != 0;
}

void close_domains(const uint32_t* __restrict domains, const uint8_t* __restrict closed, uint32_t domain_count,
                   size_t rows, uint8_t* __restrict open) {
    for (size_t i = 0; i < rows; ++i) {
        const uint32_t at = domains[i] < domain_count ? domains[i] : domain_count;
        open[i] = open[i] & (closed[at] ^ 1);
    }
}

BERTH_VECTOR
void add_weighted(const int64_t* __restrict points, int64_t weight, size_t rows, int64_t* __restrict totals) {
    const auto factor = static_cast<int32_t>(weight);
    for (size_t i = 0; i < rows; ++i) totals[i] += int64_t{static_cast<int32_t>(points[i])} * factor;
}

BERTH_VECTOR
uint64_t best_total(const Key* __restrict keys, const int64_t* __restrict totals, const uint8_t* __restrict open,
                    size_t rows) {
    int64_t best = 0;
    for (size_t i = 0; i < rows; ++i) {
        const int64_t total = (totals[i] << kRankBits) + keys[i];
        const int64_t here = open[i] != 0 ? total : 0;
        best = here > best ? here : best;
    }
    return static_cast<uint64_t>(best);
}

BERTH_VECTOR
Key top_of_block(const Key* __restrict keys) {
    Key top = 0;
    for (size_t i = 0; i < kBlock; ++i) top = top > keys[i] ? top : keys[i];
    return top;
}

}  // namespace berth::sched::fast
