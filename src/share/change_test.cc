#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/random.h"
#include "share/problem.h"

// Histories of single changes: after every one of them everybody deserves what a solver says that knows nothing of
// before, to the last pod and unit. SEED=N repeats one, BERTH_HISTORIES says how many.
namespace berth::share {
namespace {

using base::Random;

const std::vector<ResourceId>& resources() {
    static const std::vector<ResourceId> all = {model::kCpu, model::kMemory, *model::intern_resource("example.com/a"),
                                                *model::intern_resource("example.com/b")};
    return all;
}

Resources some_size(Random& random) {
    Resources size;
    for (const ResourceId id : resources()) {
        if (random.chance(1, 2)) size.set(id, random.between(1, 9));
    }
    if (size.empty()) size.set(resources()[random.below(resources().size())], random.between(1, 9));
    return size;
}

// What the pods ask for, and `beyond` of it.
Leaf leaf_of(std::vector<PodRun> pods, int64_t beyond = 0) {
    Leaf leaf;
    std::erase_if(pods, [](const PodRun& run) { return run.count == 0; });
    for (const PodRun& run : pods)
        run.size.for_each([&](ResourceId id, int64_t amount) { leaf.demand.add(id, amount * run.count + beyond); });
    leaf.pods = std::move(pods);
    return leaf;
}

struct Kinds {
    bool areas = false;
    bool limits = false;
    bool crowds = false;  // many with the same wish: remainders and ties
};

Problem some_problem(Random& random, Kinds kinds) {
    Problem problem;
    problem.spread = random.chance(1, 2);
    problem.policy = random.chance(1, 5) ? Policy::Floor : Policy::Surplus;
    const int64_t count = random.between(2, kinds.crowds ? 60 : 12);
    Resources asked;
    Resources size = some_size(random);
    for (int64_t i = 0; i < count; ++i) {
        Consumer& made = problem.consumers.emplace_back();
        made.name = "tenant-" + std::to_string(100 + i);
        made.weight = random.chance(1, 12) ? 0 : random.between(1, 3);
        if (!kinds.crowds || random.chance(1, 6)) size = some_size(random);
        std::vector<PodRun> pods = {{size, random.between(0, 9), true}, {size, random.between(1, 9), false}};
        if (random.chance(1, 6)) {
            Resources other;
            size.for_each([&](ResourceId id, int64_t) { other.set(id, random.between(1, 9)); });
            pods.push_back({other, random.between(1, 5), false});
        }
        made.leaves = {leaf_of(pods, random.chance(1, 10) ? random.between(0, 9) : 0)};
        asked.add(made.leaves.front().demand);
        if (random.chance(1, 2)) {
            size.for_each([&](ResourceId id, int64_t amount) { made.reserved.set(id, amount * random.between(0, 6)); });
        }
        if (kinds.limits && random.chance(1, 3)) made.hard.set(resources()[0], random.between(0, 60));
        if (kinds.limits && random.chance(1, 5)) made.borrowing_limit.set(resources()[1], random.between(0, 30));
        if (kinds.limits && random.chance(1, 8)) made.lending_limit.set(resources()[0], random.between(0, 9));
        if (kinds.areas && random.chance(1, 5)) made.leaves.push_back(leaf_of({{{{resources()[2], 3}}, 4, false}}));
        if (kinds.areas && i > 0 && random.chance(1, 5)) made.parent = "area";
    }
    if (kinds.areas) problem.consumers.emplace_back().name = "area";
    if (kinds.limits && random.chance(1, 4)) problem.consumers.front().infinite = true;
    for (auto& consumer : problem.consumers) {  // each set of resources once
        if (consumer.leaves.size() > 1 && consumer.leaves[0].demand.size() == 1 &&
            consumer.leaves[0].demand.has(resources()[2]))
            consumer.leaves.pop_back();
    }
    for (const ResourceId id : resources())
        if (random.chance(9, 10)) problem.capacity.set(id, asked.get(id) * random.between(1, 6) / 5);
    return problem;
}

// A pod comes, goes, starts or ends; or all is another.
Leaf another_wish(const Leaf& leaf, Random& random) {
    std::vector<PodRun> pods = leaf.pods;
    Resources beyond = leaf.demand;
    for (const PodRun& run : pods)
        run.size.for_each([&](ResourceId id, int64_t amount) { beyond.add(id, -amount * run.count); });
    PodRun& any = pods[random.below(pods.size())];
    switch (random.below(6)) {
        case 0:
            any.count += random.between(1, 3);
            break;
        case 1:
            any.count = std::max<int64_t>(pods.size() > 1 ? 0 : 1, any.count - 1);
            break;
        case 2:  // one that waits starts
            if (pods.size() > 1 && !pods.back().present && pods.front().size == pods.back().size &&
                pods.back().count > 1) {
                ++pods.front().count;
                --pods.back().count;
            }
            break;
        case 3: {
            PodRun more{pods.front().size, random.between(1, 20), false};
            if (!pods.back().present && pods.back().size == more.size) pods.pop_back();
            pods.push_back(more);
            break;
        }
        case 4: {
            PodRun more{{}, random.between(1, 4), false};
            pods.front().size.for_each([&](ResourceId id, int64_t) { more.size.set(id, random.between(1, 9)); });
            pods.push_back(more);
            break;
        }
        default:
            pods.resize(1);
            pods.front().count = random.between(1, 12);
    }
    Leaf out = leaf_of(pods);
    out.demand.add(beyond);
    return out;
}

void expect_the_same(Solver& solver, bool fair_too) {
    const auto anew = solve(solver.problem());
    for (size_t i = 0; i < anew.size(); ++i) {
        const std::string& name = solver.problem().consumers[i].name;
        EXPECT_EQ(solver.deserved(i), anew[i].deserved) << name;
        if (!fair_too) continue;
        const Share share = solver.share(i);
        EXPECT_EQ(share.pods, anew[i].pods) << name;
        EXPECT_EQ(share.bound_by, anew[i].bound_by) << name;
        for (const auto& [id, amount] : anew[i].fair)
            EXPECT_NEAR(share.fair_of(id), amount, 1e-6 * (1 + amount)) << name;
    }
}

// Returns how many changes moved nobody's level.
int history(Random& random, Kinds kinds) {
    Solver solver(some_problem(random, kinds));
    solver.solve();
    int alone = 0;
    for (int step = 0; step < 30; ++step) {
        const size_t who = random.below(solver.problem().consumers.size());
        const auto& leaves = solver.problem().consumers[who].leaves;
        if (leaves.empty()) continue;
        const size_t which = random.below(leaves.size());
        const uint64_t before = solver.times();
        solver.change(who, which, another_wish(leaves[which], random));
        solver.solve();
        alone += solver.times() == before ? 1 : 0;
        expect_the_same(solver, random.chance(1, 4));
        if (testing::Test::HasFailure()) {
            ADD_FAILURE() << "step " << step << ", " << solver.problem().consumers[who].name;
            break;
        }
    }
    return alone;
}

uint64_t number_of(const char* variable, uint64_t otherwise) {
    const char* given = std::getenv(variable);
    return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

void histories(Kinds kinds) {
    const uint64_t first = number_of("SEED", 1);
    const uint64_t count = std::getenv("SEED") != nullptr ? 1 : number_of("BERTH_HISTORIES", 300);
    int alone = 0;
    for (uint64_t seed = first; seed < first + count; ++seed) {
        SCOPED_TRACE(testing::Message() << "SEED=" << seed);
        Random random(seed);
        alone += history(random, kinds);
        if (testing::Test::HasFailure()) return;
    }
    if (count > 10) {
        EXPECT_GT(alone, static_cast<int>(count)) << "too few changes were settled alone";
    }
}

TEST(ShareChange, EverybodyDeservesWhatItWouldAnew) {
    histories({});
}
TEST(ShareChange, AmongManyWhoWantTheSame) {
    histories({.crowds = true});
}
TEST(ShareChange, BesideAreasAndManySets) {
    histories({.areas = true});
}
TEST(ShareChange, WithinLimits) {
    histories({.areas = true, .limits = true, .crowds = true});
}

}  // namespace
}  // namespace berth::share
