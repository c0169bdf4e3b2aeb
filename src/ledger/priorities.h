#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace berth::ledger {

// How many placed pods have which priority. Clusters know a handful of priorities, so a short list serves.
class Priorities {
public:
    void add(int32_t priority) {
        for (auto& [known, count] : counts_) {
            if (known == priority) return static_cast<void>(++count);
        }
        counts_.emplace_back(priority, 1);
    }
    void remove(int32_t priority) {
        for (size_t i = 0; i < counts_.size(); ++i) {
            if (counts_[i].first != priority) continue;
            if (--counts_[i].second == 0) counts_.erase(counts_.begin() + static_cast<int64_t>(i));
            return;
        }
    }
    bool any_below(int32_t priority) const {
        for (const auto& [known, count] : counts_) {
            if (known < priority) return true;
        }
        return false;
    }

private:
    std::vector<std::pair<int32_t, uint32_t>> counts_;
};

}  // namespace berth::ledger
