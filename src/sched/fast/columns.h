#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <vector>

#include "ledger/ledger.h"
#include "sched/fast/kernel.h"

namespace berth::sched::fast {

using ledger::Row;
using ledger::View;

// The ledger's sums as the kernel reads them, and the order of the nodes' names. Follows the ledger by its change log.
class Columns {
public:
    // Catches up with the ledger as far as the order of names and beyond() are concerned, which every decision needs.
    void follow(const View& ledger);
    // And in what the kernel reads.
    void bring_up(const View& ledger);

    size_t blocks() const { return cpu_used_.size() / kBlock; }
    RowColumns rows() const;
    // What is free of a resource other than cpu, memory and pods, rounded up; made at the first call.
    const std::vector<float>& free_of(model::ResourceId id, const View& ledger);

    Row row_of(Key key) const { return row_at_rank_[kMaxRank - (key & kMaxRank)]; }
    uint32_t reversed_rank(Row row) const { return reversed_rank_[row]; }

    // Rows that the float formulas do not cover (no cpu or no memory at all): infeasible to the kernel.
    const absl::flat_hash_set<Row>& anomalous() const { return anomalous_; }
    // Whether an amount is negative, or too many rows: then only the plain evaluation is right.
    bool beyond() const { return beyond_; }

private:
    void resize(size_t rows);
    void rank_names(const View& ledger);
    void refresh_all(const View& ledger);
    void refresh(const View& ledger, Row row);
    void look_at(const View& ledger, Row row);

    uint64_t sequence_ = 0;  // of the ledger, that the floats stand for
    uint64_t looked_ = 0;    // that beyond() stands for
    uint64_t member_epoch_ = UINT64_MAX;
    std::vector<float> cpu_used_, memory_used_, cpu_scored_, memory_scored_, cpu_per_, memory_per_, free_pods_;
    std::vector<uint32_t> reversed_rank_;
    std::vector<Row> row_at_rank_;
    absl::flat_hash_set<Row> anomalous_;
    absl::flat_hash_map<uint16_t, std::vector<float>> others_;
    bool beyond_ = false;
};

}  // namespace berth::sched::fast
