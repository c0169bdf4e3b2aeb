#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/random.h"
#include "share/problem.h"
#include "share/slow_tree.h"

// Rules 1 to 3 through random trees of areas against the slow solver. SEED=N repeats one, BERTH_TREES says how many.
namespace berth::share {
namespace {

using base::Random;

std::vector<ResourceId> some_resources() {
    return {model::kCpu, model::kMemory, *model::intern_resource("example.com/a")};
}

// `tight`: amounts so small that much happens at one moment, and guarantees may take everything.
struct Maker {
    Random& random;
    std::vector<ResourceId> resources = some_resources();
    bool tight = false;

    int64_t amount(int64_t most) { return tight ? random.between(0, 6) * 100 : random.between(1, most); }

    Leaf leaf() {
        Leaf out;
        for (const ResourceId id : resources) {
            if (random.chance(3, 5)) out.demand.set(id, std::max<int64_t>(1, amount(2500)));
        }
        if (out.demand.empty()) out.demand.set(resources.front(), std::max<int64_t>(1, amount(2500)));
        return out;
    }

    static bool same_set(const Leaf& a, const Leaf& b) {
        bool same = a.demand.size() == b.demand.size();
        a.demand.for_each([&](ResourceId id, int64_t) { same = same && b.demand.has(id); });
        return same;
    }

    void limit(Consumer& consumer) {
        for (const ResourceId id : resources) {
            if (random.chance(1, 6)) consumer.hard.set(id, consumer.reserved.get(id) + amount(1200));
            if (random.chance(1, 6)) consumer.borrowing_limit.set(id, amount(600));
            if (random.chance(1, 5)) consumer.lending_limit.set(id, amount(300));
        }
    }

    Problem problem() {
        Problem out;
        out.spread = random.chance(1, 2);
        tight = random.chance(1, 3);
        const bool limits = random.chance(1, 2);
        for (const ResourceId id : resources) out.capacity.set(id, tight ? amount(0) * 3 : random.between(500, 4000));
        if (random.chance(1, 8)) out.capacity.erase(resources.back());
        const int64_t areas = random.between(0, 4), tenants = random.between(1, 7);
        for (int64_t i = 0; i < areas + tenants; ++i) {
            Consumer& made = out.consumers.emplace_back();
            made.name = (i < areas ? "area-" : "tenant-") + std::to_string(i);
            made.weight = random.chance(1, 10) ? 0 : random.between(1, 4);
            const int64_t above = std::min(i, areas);
            if (above > 0 && random.chance(2, 3))
                made.parent = "area-" + std::to_string(random.below(static_cast<uint64_t>(above)));
            for (const ResourceId id : resources) {
                if (random.chance(1, 3)) made.reserved.set(id, amount(400));
            }
            if (limits) limit(made);
            if (i < areas) {
                // Rule 4 keeps to what an area allows of a resource without end; levels do so only beyond guarantees.
                if (!out.capacity.has(resources.back())) {
                    made.hard.erase(resources.back());
                    made.borrowing_limit.erase(resources.back());
                }
                continue;
            }
            made.infinite = limits && random.chance(1, 12);
            for (int64_t k = random.between(1, 3); k > 0; --k) {
                Leaf more = leaf();
                if (std::none_of(made.leaves.begin(), made.leaves.end(),
                                 [&](const Leaf& known) { return same_set(known, more); }))
                    made.leaves.push_back(std::move(more));
            }
        }
        return out;
    }
};

// For whoever looks why one fails.
std::string text_of(const Problem& problem) {
    std::string out = "capacity " + problem.capacity.text() + (problem.spread ? " spread\n" : "\n");
    for (const auto& consumer : problem.consumers) {
        out += consumer.name + " in " + consumer.parent + " weight " + std::to_string(consumer.weight) +
               (consumer.infinite ? " infinite" : "") + " reserved " + consumer.reserved.text() + " hard " +
               consumer.hard.text() + " borrowing " + consumer.borrowing_limit.text() + " lending " +
               consumer.lending_limit.text() + "\n";
        for (const auto& leaf : consumer.leaves) out += "  asks " + leaf.demand.text() + "\n";
    }
    return out;
}

TEST(ShareTree, TheSweepIsWhatTheDefinitionSays) {
    const char* given = std::getenv("SEED");
    const char* wanted = std::getenv("BERTH_TREES");
    const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
    const uint64_t count = given != nullptr ? 1 : wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 150;
    for (uint64_t seed = first; seed < first + count; ++seed) {
        SCOPED_TRACE(testing::Message() << "SEED=" << seed);
        Random random(seed);
        Maker maker{random};
        const Problem problem = maker.problem();
        SlowTree slow(problem);
        slow.run();
        const auto fast = solve(problem);
        for (size_t i = 0; i < fast.size(); ++i) {
            if (problem.consumers[i].infinite) continue;
            for (const auto& [id, amount] : fast[i].fair) {
                EXPECT_NEAR(amount, slow.share(i, id), 1e-6 * (1 + amount))
                    << problem.consumers[i].name << " " << model::resource_name(id);
            }
        }
        if (HasFailure()) GTEST_FAIL() << text_of(problem);
    }
}

}  // namespace
}  // namespace berth::share
