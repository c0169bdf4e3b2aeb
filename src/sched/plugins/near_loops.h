#pragma once

#include <cstddef>
#include <cstdint>

#include "ledger/topology.h"

// What spread and pod affinity do for each row or domain, as plain loops over arrays.
namespace berth::sched::plugins {

using ledger::Domain;

// ---- by domain

// sums[i] += each x counts[i].
void add_counts(const uint32_t* counts, int64_t each, size_t domains, int64_t* sums);
// costs[i] = counts[i] x weight + more.
void weigh_counts(const uint32_t* counts, double weight, double more, size_t domains, double* costs);
// marks[i] = mark where counts[i] is not 0.
void mark_counted(const uint32_t* counts, uint8_t mark, size_t domains, uint8_t* marks);
// marks[i] = whether counts[i] > most.
void mark_above(const uint32_t* counts, uint32_t most, size_t domains, uint8_t* marks);
// marks[i] = whether sums[i] > 0.
void mark_positive(const int64_t* sums, size_t domains, uint8_t* marks);
// marks[i] or more[i].
void mark_also(const uint8_t* more, size_t domains, uint8_t* marks);

// ---- by row. What a domain has lies at its id; what a row without one has, at `none`, beyond the last id.

// sums[i] += what the row's domain has.
void add_by_domain(const Domain* domains, const double* has, uint32_t none, size_t rows, double* sums);
void add_by_domain(const Domain* domains, const int64_t* has, uint32_t none, size_t rows, int64_t* sums);
// 0 where the row has no domain.
void clear_without_domain(const Domain* domains, size_t rows, uint8_t* marks);
void clear_without_domain(const Domain* domains, size_t rows, double* costs);
size_t count_marked(const uint8_t* marks, size_t rows);
bool any_without_domain(const Domain* domains, const uint8_t* marks, size_t rows);
// To the nearest, halves up, of what is not negative and below 2^51.
void round_costs(const double* costs, size_t rows, int64_t* rounded);

struct Range {
    int64_t low = INT64_MAX;
    int64_t high = INT64_MIN;
    bool empty() const { return low > high; }
};
// Of the rows that are marked.
Range range_of(const int64_t* values, const uint8_t* marks, size_t rows);
// values[i] = table[values[i] - low] where the row is marked, else 0.
void look_up(const int64_t* table, int64_t low, const uint8_t* marks, size_t rows, int64_t* values);

}  // namespace berth::sched::plugins
