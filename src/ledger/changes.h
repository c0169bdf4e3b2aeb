#pragma once

#include <array>
#include <cstdint>
#include <memory>

namespace berth::ledger {

// Which rows changed, for caches that follow the ledger: a cache remembers the sequence it has seen and replays what
// came after. Old changes are forgotten; a cache that is too far behind starts over.
class Changes {
public:
    // The number of changes so far.
    uint64_t sequence() const { return sequence_; }
    // Grows when a node came, went or changed in what is not a sum: labels, taints, images, unschedulable.
    uint64_t static_epoch() const { return static_epoch_; }
    // Grows when a node came or went.
    uint64_t member_epoch() const { return member_epoch_; }

    void touch(uint32_t row) { (*ring_)[sequence_++ % kKept] = row; }
    void touch_static(uint32_t row) {
        touch(row);
        ++static_epoch_;
    }
    void touch_member(uint32_t row) {
        touch_static(row);
        ++member_epoch_;
    }

    bool remembers(uint64_t since) const { return sequence_ - since <= kKept; }
    // Calls f(row) for the changes after `since`, oldest first; changes of one row that follow each other come as one.
    // Only when remembers(since).
    template <class F>
    void replay(uint64_t since, F f) const {
        for (uint64_t i = since; i < sequence_; ++i) {
            const uint32_t row = (*ring_)[i % kKept];
            if (i + 1 == sequence_ || (*ring_)[(i + 1) % kKept] != row) f(row);
        }
    }

private:
    static constexpr uint64_t kKept = 16384;
    uint64_t sequence_ = 0;
    uint64_t static_epoch_ = 0;
    uint64_t member_epoch_ = 0;
    std::unique_ptr<std::array<uint32_t, kKept>> ring_ = std::make_unique<std::array<uint32_t, kKept>>();
};

}  // namespace berth::ledger
