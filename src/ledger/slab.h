#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"

namespace berth::ledger {

// Entries by index, in blocks that never move: growing copies nothing and wastes at most one block.
template <class T>
class Slab {
public:
    // Reads the entries of a slab, also after the slab itself was moved: what a hash set by index needs.
    class View {
    public:
        explicit View(const std::vector<std::unique_ptr<T[]>>& blocks) : blocks_(&blocks) {}
        const T& operator[](uint32_t index) const { return entry(*blocks_, index); }

    private:
        const std::vector<std::unique_ptr<T[]>>* blocks_;
    };

    T& operator[](uint32_t index) { return entry(*blocks_, index); }
    const T& operator[](uint32_t index) const { return entry(*blocks_, index); }
    uint32_t size() const { return size_; }
    View view() const { return View(*blocks_); }

    // The index of a new entry, in its initial state.
    uint32_t add() {
        CHECK(size_ < UINT32_MAX - 1);
        if ((size_ & kMask) == 0) blocks_->push_back(std::make_unique<T[]>(kMask + 1));
        return size_++;
    }

private:
    static constexpr uint32_t kShift = 8;
    static constexpr uint32_t kMask = (1u << kShift) - 1;
    // Every step of a decision reads entries, so this is three loads, without the library's own looks at each of them.
    static T& entry(const std::vector<std::unique_ptr<T[]>>& blocks, uint32_t index) {
        return blocks.data()[index >> kShift].get()[index & kMask];
    }
    std::unique_ptr<std::vector<std::unique_ptr<T[]>>> blocks_ = std::make_unique<std::vector<std::unique_ptr<T[]>>>();
    uint32_t size_ = 0;
};

}  // namespace berth::ledger
