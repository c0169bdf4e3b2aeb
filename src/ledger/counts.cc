#include "ledger/counts.h"

#include <algorithm>

#include "base/check.h"

namespace berth::ledger {
namespace {

// A hash entry takes about the room of this many slots of the vector.
constexpr size_t kSlotsPerEntry = 16;

}  // namespace

uint32_t& Counts::slot(uint32_t id, size_t ids) {
    if (many_.empty() && (few_.size() + 1) * kSlotsPerEntry > ids) {
        many_.resize(ids);
        for (const auto& [known, count] : few_) many_[known] = count;
        few_ = {};
    }
    if (many_.empty()) return few_[id];
    if (id >= many_.size()) many_.resize(std::max<size_t>(ids, id + 1));
    return many_[id];
}

void Counts::add(uint32_t id, int64_t delta, size_t ids) {
    if (delta == 0) return;
    uint32_t& count = slot(id, ids);
    const bool was_zero = count == 0;
    const int64_t sum = count + delta;
    CHECK(sum >= 0 && sum <= UINT32_MAX);
    count = static_cast<uint32_t>(sum);
    if (was_zero) ++nonzero_;
    if (count != 0) return;
    --nonzero_;
    if (many_.empty()) few_.erase(id);
    if (nonzero_ == 0) many_ = {};
}

int64_t Counts::at(uint32_t id) const {
    if (!many_.empty()) return id < many_.size() ? many_[id] : 0;
    const auto found = few_.find(id);
    return found == few_.end() ? 0 : found->second;
}

int64_t Counts::least() const {
    if (nonzero_ == 0) return 0;
    uint32_t least = UINT32_MAX;  // less one, so that a zero is the largest of all and needs no branch
    for (const auto& [id, count] : few_) least = std::min(least, count - 1);
    for (const uint32_t count : many_) least = std::min(least, count - 1);
    return static_cast<int64_t>(least) + 1;
}

}  // namespace berth::ledger
