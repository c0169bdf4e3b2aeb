#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sched/victims.h"

namespace berth::sched {

// What evicting a row's victims costs. Smaller is better; equal costs go by the node's name.
struct Cost {
    int64_t violations = 0;
    int32_t highest = 0;
    int64_t sum = 0;  // of priorities, each raised by 2^31 so that a pod more never costs less
    int64_t count = 0;
    int64_t minus_start = 0;  // of the one that runs longest among those of the highest priority
    auto operator<=>(const Cost&) const = default;
};
Cost cost_of(const Victims& victims, const View& ledger);

// The costs of all rows for asks with one spec, by sums, kept from ask to ask: only rows that changed since are
// computed anew. A few specs are remembered, the least recently used goes first.
class CostMemory {
public:
    // Costs for the ask's spec, current as of now; valid until the next call. nullopt: nobody's going would help.
    class Rows {
    public:
        std::optional<Cost> cost(Row row, const VictimsBySums& sums, const View& ledger);

    private:
        friend class CostMemory;
        enum class State : uint8_t { Unknown, Helpless, Known };
        struct Entry {
            State state = State::Unknown;
            Cost cost;
        };
        void follow(const Ask& ask, const View& ledger);
        std::shared_ptr<const model::PodSpec> spec_;
        uint64_t seen_ = 0;
        uint64_t budgets_ = 0;
        uint64_t shares_ = 0;
        std::vector<Entry> entries_;
    };
    Rows& rows_for(const Ask& ask, Ledger& ledger);

private:
    static constexpr size_t kKept = 16;
    std::vector<std::unique_ptr<Rows>> used_;  // most recently used first
};

}  // namespace berth::sched
