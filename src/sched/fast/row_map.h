#pragma once

#include <array>
#include <memory>
#include <vector>

#include "ledger/ids.h"

namespace berth::sched::fast {

// A value for some of the rows, found without hashing: rows lie in blocks, and a block is made when one of its rows
// gets a value. Neighbours in the table are neighbours here.
template <class T>
class RowMap {
public:
    // nullptr: nothing near the row was ever set.
    T* find(ledger::Row row) const {
        const size_t block = row / kBlockRows;
        return block < blocks_.size() && blocks_[block] ? &(*blocks_[block])[row % kBlockRows] : nullptr;
    }
    T& operator[](ledger::Row row) {
        const size_t block = row / kBlockRows;
        if (block >= blocks_.size()) blocks_.resize(block + 1);
        if (!blocks_[block]) blocks_[block] = std::make_unique<Block>();
        return (*blocks_[block])[row % kBlockRows];
    }
    void clear() { blocks_.clear(); }

private:
    static constexpr size_t kBlockRows = 16;
    using Block = std::array<T, kBlockRows>;
    std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace berth::sched::fast
