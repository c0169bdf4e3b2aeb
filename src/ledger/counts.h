#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <vector>

namespace berth::ledger {

// A count per id: a hash map while few ids have one, a vector once many have. So a term that ten pods match costs ten
// entries, and one that every node's pods match is a plain array.
class Counts {
public:
    // `ids`: every id in use lies below it.
    void add(uint32_t id, int64_t delta, size_t ids);
    int64_t at(uint32_t id) const;
    size_t nonzero() const { return nonzero_; }
    // The least of those that are not zero; 0 when all are.
    int64_t least() const;

    // All of them as a vector by id, zeros too, once there are many; empty before. Ids beyond its end have none.
    std::span<const uint32_t> many() const { return many_; }

    // Calls f(id, count) for each count that is not zero, in no order.
    template <class F>
    void each(F f) const {
        for (const auto& [id, count] : few_) f(id, count);
        if (nonzero_ == 0) return;
        for (uint32_t id = 0; id < many_.size(); ++id) {
            if (many_[id] != 0) f(id, many_[id]);
        }
    }

private:
    uint32_t& slot(uint32_t id, size_t ids);

    absl::flat_hash_map<uint32_t, uint32_t> few_;
    std::vector<uint32_t> many_;  // not empty: the counts are here
    size_t nonzero_ = 0;
};

}  // namespace berth::ledger
