#include "sched/plugins/near_loops.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace berth::sched::plugins {
namespace {

using base::Random;
using ledger::kNoDomain;

constexpr size_t kRows = 203;  // no whole number of vectors
constexpr uint32_t kDomains = 17;

struct Arrays {
    std::vector<Domain> domains = std::vector<Domain>(kRows);
    std::vector<uint8_t> marks = std::vector<uint8_t>(kRows);
    std::vector<uint32_t> counts = std::vector<uint32_t>(kRows);
    std::vector<int64_t> sums = std::vector<int64_t>(kRows);
    std::vector<double> costs = std::vector<double>(kRows);
};
Arrays random_arrays(Random& random) {
    Arrays out;
    for (size_t i = 0; i < kRows; ++i) {
        out.domains[i] = random.below(9) == 0 ? kNoDomain : static_cast<Domain>(random.below(kDomains));
        out.marks[i] = random.below(3) != 0;
        out.counts[i] = static_cast<uint32_t>(random.below(4) == 0 ? random.below(UINT32_MAX) : random.below(3));
        out.sums[i] = random.between(-300, 300);
        out.costs[i] = static_cast<double>(random.below(2000)) / 8;
    }
    return out;
}

TEST(NearLoops, VectorsAndScalarsAgree) {
    const uint64_t seed = base::seed_from_system();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    for (int round = 0; round < 200; ++round) {
        const auto [domains, marks, counts, sums, costs] = random_arrays(random);
        auto added = sums;
        add_counts(counts.data(), -7, kRows, added.data());
        std::vector<double> weighed(kRows);
        weigh_counts(counts.data(), 1.6094379124341003, 4, kRows, weighed.data());
        auto counted = marks;
        mark_counted(counts.data(), 0, kRows, counted.data());
        std::vector<uint8_t> above(kRows), positive(kRows);
        mark_above(counts.data(), 1, kRows, above.data());
        mark_positive(sums.data(), kRows, positive.data());
        auto either = marks;
        mark_also(positive.data(), kRows, either.data());
        auto by_domain = sums;
        add_by_domain(domains.data(), added.data(), kDomains, kRows, by_domain.data());
        auto cost_by_domain = costs;
        add_by_domain(domains.data(), weighed.data(), kDomains, kRows, cost_by_domain.data());
        auto labelled = marks;
        clear_without_domain(domains.data(), kRows, labelled.data());
        auto forgiven = costs;
        clear_without_domain(domains.data(), kRows, forgiven.data());
        std::vector<int64_t> rounded(kRows);
        round_costs(costs.data(), kRows, rounded.data());
        std::vector<int64_t> table(601);
        for (auto& entry : table) entry = random.between(0, 100);
        auto found = sums;
        look_up(table.data(), -300, marks.data(), kRows, found.data());

        Range range;
        size_t marked = 0;
        bool lacking = false;
        for (size_t i = 0; i < kRows; ++i) {
            const uint32_t at = std::min(domains[i], kDomains);
            ASSERT_EQ(added[i], sums[i] - int64_t{7} * counts[i]);
            ASSERT_EQ(weighed[i], counts[i] * 1.6094379124341003 + 4);
            ASSERT_EQ(counted[i], counts[i] != 0 ? 0 : marks[i]);
            ASSERT_EQ(above[i], counts[i] > 1);
            ASSERT_EQ(positive[i], sums[i] > 0);
            ASSERT_EQ(either[i], marks[i] != 0 || sums[i] > 0);
            ASSERT_EQ(by_domain[i], sums[i] + added[at]);
            ASSERT_EQ(cost_by_domain[i], costs[i] + weighed[at]);
            ASSERT_EQ(labelled[i], domains[i] == kNoDomain ? 0 : marks[i]);
            ASSERT_EQ(forgiven[i], domains[i] == kNoDomain ? 0 : costs[i]);
            ASSERT_EQ(rounded[i], std::llround(costs[i]));
            ASSERT_EQ(found[i], marks[i] != 0 ? table[static_cast<size_t>(sums[i] + 300)] : 0);
            if (marks[i] == 0) continue;
            range = {std::min(range.low, sums[i]), std::max(range.high, sums[i])};
            ++marked;
            lacking = lacking || domains[i] == kNoDomain;
        }
        const Range whole = range_of(sums.data(), marks.data(), kRows);
        ASSERT_EQ(whole.low, range.low);
        ASSERT_EQ(whole.high, range.high);
        ASSERT_EQ(count_marked(marks.data(), kRows), marked);
        ASSERT_EQ(any_without_domain(domains.data(), marks.data(), kRows), lacking);
    }
}

TEST(NearLoops, NothingMarkedHasNoRange) {
    const std::vector<int64_t> values{1, 2, 3};
    const std::vector<uint8_t> marks(3);
    EXPECT_TRUE(range_of(values.data(), marks.data(), 3).empty());
}

}  // namespace
}  // namespace berth::sched::plugins
