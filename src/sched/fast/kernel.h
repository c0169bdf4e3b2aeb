#pragma once

#include <cstddef>
#include <cstdint>

namespace berth::sched::fast {

// Rows are worked on in blocks of this many; every column is padded to whole blocks.
inline constexpr size_t kBlock = 64;

// A row's place in the order of preference: (score + 1) above, then the reversed rank of its node's name, so that the
// larger key wins. 0: the row is not feasible.
using Key = uint32_t;
inline constexpr uint32_t kRankBits = 20;
inline constexpr uint32_t kMaxRank = (1u << kRankBits) - 1;
inline constexpr int64_t kMaxKeyScore = (int64_t{1} << (32 - kRankBits)) - 2;

// What the kernel reads of the rows, all in float: percent x = (used + asked) x per, with per = 100 / allocatable.
struct RowColumns {
    const float* cpu_used;
    const float* memory_used;
    const float* cpu_scored;  // the sums that LeastAllocated reads
    const float* memory_scored;
    const float* cpu_per;
    const float* memory_per;
    const float* free_pods;
    const uint32_t* reversed_rank;
};

struct ClassNumbers {
    float cpu = 0;
    float memory = 0;
    float cpu_scored = 0;
    float memory_scored = 0;
    float pods = 0;
    float cpu_limit = 0;  // the percentage above which the pod does not fit; the largest float when it asks for none
    float memory_limit = 0;
    int32_t least_weight = 0;
    int32_t balanced_weight = 0;
};

// How far floats may be off, in points: each percentage is within 5e-5 of the exact one, so with this added its floor
// is never too low.
inline constexpr float kSlack = 1e-4f;

// keys[i] for all rows: never below the exact key, and equal to it unless a percentage lies within kSlack under a whole
// number or a pod misses fitting by less than that. base: 0 for a row that is struck, else 1 + its own points.
void upper_keys(const RowColumns& rows, const ClassNumbers& numbers, const uint16_t* base, size_t blocks, Key* keys,
                Key* block_tops);
// The same without vector instructions, for the test.
void upper_keys_scalar(const RowColumns& rows, const ClassNumbers& numbers, const uint16_t* base, size_t blocks,
                       Key* keys, Key* block_tops);

// base[i] = 0 where free[i] < asked.
void strike_short(const float* free, float asked, size_t blocks, uint16_t* base);

// open[i] = keys[i] != 0.
void open_where(const Key* keys, size_t rows, uint8_t* open);
// open[i] = 0 where closed[min(domains[i], domain_count)] is not 0.
void close_domains(const uint32_t* domains, const uint8_t* closed, uint32_t domain_count, size_t rows, uint8_t* open);
// totals[i] += weight x points[i].
void add_weighted(const int64_t* points, int64_t weight, size_t rows, int64_t* totals);
// The largest (totals[i] + score of keys[i]) << kRankBits | rank of keys[i] among the open rows; 0: none is open.
uint64_t best_total(const Key* keys, const int64_t* totals, const uint8_t* open, size_t rows);

// The largest of one block.
Key top_of_block(const Key* keys);

}  // namespace berth::sched::fast
