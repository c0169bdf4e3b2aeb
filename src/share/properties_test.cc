#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/random.h"
#include "share/problem.h"

// Random problems against what must hold always, and against a slow solver that only knows the definition.
namespace berth::share {
namespace {

using base::Random;

std::vector<ResourceId> some_resources() {
    std::vector<ResourceId> out = {model::kCpu, model::kMemory};
    for (const auto* name : {"example.com/a", "example.com/b", "example.com/c"})
        out.push_back(*model::intern_resource(name));
    return out;
}

Leaf random_leaf(Random& random, const std::vector<ResourceId>& resources) {
    Leaf leaf;
    Resources size;
    for (const ResourceId id : resources) {
        if (random.chance(1, 2)) size.set(id, random.between(1, 40));
    }
    if (size.empty()) size.set(resources.front(), random.between(1, 40));
    for (const bool present : {true, false}) {
        const int64_t count = random.between(0, 30);
        if (count == 0) continue;
        leaf.pods.push_back({size, count, present});
        size.for_each([&](ResourceId id, int64_t amount) { leaf.demand.add(id, amount * count); });
    }
    return leaf;
}

struct Wishes {
    bool flat = false;    // no areas, one leaf each, no limits
    bool limits = false;  // hard, lending and borrowing limits
};

Problem random_problem(Random& random, Wishes wishes) {
    const auto resources = some_resources();
    Problem problem;
    problem.spread = random.chance(1, 2);
    for (const ResourceId id : resources) problem.capacity.set(id, random.between(0, 2000));
    if (random.chance(1, 4)) problem.capacity.erase(resources.back());
    const int64_t count = random.between(1, 9);
    for (int64_t i = 0; i < count; ++i) {
        Consumer consumer;
        consumer.name = std::string(1, static_cast<char>('a' + i));
        consumer.weight = random.chance(1, 8) ? 0 : random.between(1, 5);
        const int64_t leaves = wishes.flat ? 1 : random.between(0, 3);
        for (int64_t k = 0; k < leaves; ++k) {
            Leaf leaf = random_leaf(random, resources);
            const auto same_set = [&](const Leaf& other) {
                if (other.demand.size() != leaf.demand.size()) return false;
                bool same = true;
                other.demand.for_each([&](ResourceId id, int64_t) { same = same && leaf.demand.has(id); });
                return same;
            };
            if (std::none_of(consumer.leaves.begin(), consumer.leaves.end(), same_set))
                consumer.leaves.push_back(std::move(leaf));
        }
        if (random.chance(1, 2)) {
            for (const ResourceId id : resources) {
                if (random.chance(1, 2)) consumer.reserved.set(id, random.between(0, 300));
            }
        }
        if (wishes.limits) {
            for (const ResourceId id : resources) {
                if (random.chance(1, 5)) consumer.hard.set(id, consumer.reserved.get(id) + random.between(0, 300));
                if (random.chance(1, 5)) consumer.borrowing_limit.set(id, random.between(0, 200));
                if (random.chance(1, 5)) consumer.lending_limit.set(id, random.between(0, 100));
            }
            consumer.infinite = random.chance(1, 12);
        }
        if (!wishes.flat && i > 0 && random.chance(1, 3)) {
            Consumer& parent = problem.consumers[random.below(static_cast<uint64_t>(i))];
            if (!parent.infinite) {
                parent.leaves.clear();
                consumer.parent = parent.name;
            }
        }
        problem.consumers.push_back(std::move(consumer));
    }
    // A parent's guarantee covers its children's. Children stand behind their parents.
    for (size_t i = problem.consumers.size(); i-- > 0;) {
        Consumer& parent = problem.consumers[i];
        Resources below;
        for (const auto& child : problem.consumers) {
            if (child.parent == parent.name && !child.infinite) below.add(child.reserved);
        }
        parent.reserved.max(below);
        parent.hard.for_each([&](ResourceId id, int64_t amount) {
            if (amount < parent.reserved.get(id)) parent.reserved.set(id, std::min(parent.reserved.get(id), amount));
        });
        if (!below.empty()) parent.hard.clear();
    }
    return problem;
}

Resources demand_of(const Consumer& consumer) {
    Resources out;
    for (const auto& leaf : consumer.leaves) out.add(leaf.demand);
    return out;
}

// Rule 2 by its definition, for consumers of one leaf each: the level at which a resource is full is found by halving,
// and everything is computed anew at every try.
class Slow {
public:
    explicit Slow(const Problem& problem) : problem_(problem) {
        problem.capacity.for_each([&](ResourceId id, int64_t capacity) {
            double reserved = 0;
            for (const auto& consumer : problem.consumers) reserved += static_cast<double>(consumer.reserved.get(id));
            resources_.push_back(
                {id, static_cast<double>(capacity),
                 std::max(static_cast<double>(capacity) - reserved, 1e-9 * static_cast<double>(capacity)),
                 lambda(id, static_cast<double>(capacity)), -1});
        });
    }

    std::vector<Resources> run_in_thousandths() {
        double level = 0;
        while (true) {
            double low = level, high = 1e12;
            if (fits(high)) {
                level = high;
                break;
            }
            for (int i = 0; i < 400; ++i) (fits((low + high) / 2) ? low : high) = (low + high) / 2;
            level = low;
            for (auto& resource : resources_) {
                if (resource.full_at < 0 && total(resource.id, high) > resource.capacity * (1 + 1e-12))
                    resource.full_at = level;
            }
        }
        std::vector<Resources> out;
        for (const auto& consumer : problem_.consumers) {
            Resources shares;
            consumer.leaves.front().demand.for_each(
                [&](ResourceId id, int64_t) { shares.set(id, std::llround(1000 * share(consumer, id, level))); });
            out.push_back(shares);
        }
        return out;
    }

private:
    struct Resource {
        ResourceId id;
        double capacity, pool, lambda;
        double full_at;  // a level; below 0: not full
    };

    double lambda(ResourceId id, double capacity) const {
        const auto sum = [&](double part) {
            double total = 0;
            for (const auto& consumer : problem_.consumers)
                total += std::min(static_cast<double>(demand_of(consumer).get(id)),
                                  part * static_cast<double>(consumer.reserved.get(id)));
            return total;
        };
        if (sum(1) <= capacity) return 1;
        double low = 0, high = 1;
        for (int i = 0; i < 200; ++i) (sum((low + high) / 2) <= capacity ? low : high) = (low + high) / 2;
        return low;
    }

    double guaranteed(const Consumer& consumer, ResourceId id) const {
        double part = 1;
        for (const auto& resource : resources_) {
            if (resource.id == id) part = resource.lambda;
        }
        return std::min(static_cast<double>(consumer.leaves.front().demand.get(id)),
                        part * static_cast<double>(consumer.reserved.get(id)));
    }

    double unstopped(const Consumer& consumer, double level) const {
        double tau = 1;
        for (const auto& resource : resources_) {
            const auto u = static_cast<double>(consumer.leaves.front().demand.get(resource.id));
            if (u <= 0) continue;
            tau = std::min(
                tau,
                (guaranteed(consumer, resource.id) + static_cast<double>(consumer.weight) * level * resource.pool) / u);
        }
        return tau;
    }

    double tau(const Consumer& consumer, double level) const {
        double out = unstopped(consumer, level);
        for (const auto& resource : resources_) {
            const auto u = static_cast<double>(consumer.leaves.front().demand.get(resource.id));
            if (u <= 0 || resource.full_at < 0) continue;
            out = std::min(out, std::max(tau_before(consumer, resource), guaranteed(consumer, resource.id) / u));
        }
        return out;
    }
    // Where it stood when the resource was full: those that were full before had stopped it by then.
    double tau_before(const Consumer& consumer, const Resource& full) const {
        double out = unstopped(consumer, full.full_at);
        for (const auto& other : resources_) {
            const auto u = static_cast<double>(consumer.leaves.front().demand.get(other.id));
            if (u <= 0 || other.full_at < 0 || other.full_at >= full.full_at) continue;
            out = std::min(out, std::max(tau_before(consumer, other), guaranteed(consumer, other.id) / u));
        }
        return out;
    }

    double share(const Consumer& consumer, ResourceId id, double level) const {
        return std::max(guaranteed(consumer, id),
                        tau(consumer, level) * static_cast<double>(consumer.leaves.front().demand.get(id)));
    }
    double total(ResourceId id, double level) const {
        double sum = 0;
        for (const auto& consumer : problem_.consumers) sum += share(consumer, id, level);
        return sum;
    }
    bool fits(double level) const {
        return std::all_of(resources_.begin(), resources_.end(), [&](const Resource& resource) {
            return resource.full_at >= 0 || total(resource.id, level) <= resource.capacity * (1 + 1e-12);
        });
    }

    const Problem& problem_;
    std::vector<Resource> resources_;
};

uint64_t first_seed() {
    const char* given = std::getenv("SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
}
int rounds() {
    return std::getenv("SEED") != nullptr ? 1 : 2000;
}

TEST(ShareProperties, TheSweepIsTheDefinition) {
    for (uint64_t seed = first_seed(); seed < first_seed() + static_cast<uint64_t>(rounds()) / 4 + 1; ++seed) {
        SCOPED_TRACE(testing::Message() << "SEED=" << seed);
        Random random(seed);
        Problem problem = random_problem(random, {.flat = true});
        problem.spread = false;
        std::erase_if(problem.consumers, [](const auto& consumer) { return demand_of(consumer).empty(); });
        const auto slow = Slow(problem).run_in_thousandths();
        const auto fast = solve(problem);
        for (size_t i = 0; i < fast.size(); ++i) {
            slow[i].for_each([&](ResourceId id, int64_t amount) {
                EXPECT_NEAR(fast[i].fair_of(id), static_cast<double>(amount) / 1000,
                            0.002 + 1e-6 * static_cast<double>(amount))
                    << problem.consumers[i].name << " " << model::resource_name(id);
            });
        }
        if (HasFailure()) return;
    }
}

void expect_sums(const Problem& problem, const std::vector<Share>& shares) {
    Resources total;
    for (size_t i = 0; i < shares.size(); ++i) {
        const bool top = problem.consumers[i].parent.empty() || problem.consumers[i].infinite;
        if (top) total.add(shares[i].deserved);
    }
    problem.capacity.for_each(
        [&](ResourceId id, int64_t capacity) { EXPECT_LE(total.get(id), capacity) << model::resource_name(id); });
    for (size_t i = 0; i < shares.size(); ++i) {
        Resources below;
        bool area = false;
        for (size_t k = 0; k < shares.size(); ++k) {
            if (problem.consumers[k].parent != problem.consumers[i].name || problem.consumers[k].infinite) continue;
            below.add(shares[k].deserved);
            area = true;
        }
        if (!area) continue;
        below.for_each([&](ResourceId id, int64_t amount) { EXPECT_LE(amount, shares[i].deserved.get(id)); });
    }
}

void expect_limits(const Problem& problem, const std::vector<Share>& shares) {
    for (size_t i = 0; i < shares.size(); ++i) {
        const Consumer& consumer = problem.consumers[i];
        if (consumer.infinite) continue;
        consumer.hard.for_each([&](ResourceId id, int64_t hard) {
            EXPECT_LE(shares[i].deserved.get(id), std::max(hard, consumer.reserved.get(id))) << consumer.name;
        });
        if (consumer.leaves.empty()) continue;
        const Resources demand = demand_of(consumer);
        shares[i].deserved.for_each(
            [&](ResourceId id, int64_t amount) { EXPECT_LE(amount, demand.get(id)) << consumer.name; });
    }
}

void expect_guarantees(const Problem& problem, const std::vector<Share>& shares) {
    for (size_t i = 0; i < shares.size(); ++i) {
        const Consumer& consumer = problem.consumers[i];
        if (consumer.leaves.empty() || shares[i].scaled) continue;
        const Resources demand = demand_of(consumer);
        consumer.reserved.for_each([&](ResourceId id, int64_t reserved) {
            EXPECT_GE(shares[i].deserved.get(id), std::min(reserved, demand.get(id)))
                << consumer.name << " " << model::resource_name(id);
        });
    }
}

TEST(ShareProperties, WhatIsPublishedAddsUp) {
    for (uint64_t seed = first_seed(); seed < first_seed() + static_cast<uint64_t>(rounds()); ++seed) {
        SCOPED_TRACE(testing::Message() << "SEED=" << seed);
        Random random(seed);
        const bool limits = random.chance(1, 2);
        Problem problem = random_problem(random, {.limits = limits});
        problem.policy = random.chance(1, 4) ? Policy::Floor : Policy::Surplus;
        const auto shares = solve(problem);
        expect_sums(problem, shares);
        expect_limits(problem, shares);
        if (!limits) expect_guarantees(problem, shares);
        // The order of input never matters.
        Problem turned = problem;
        std::reverse(turned.consumers.begin(), turned.consumers.end());
        for (auto& consumer : turned.consumers) std::reverse(consumer.leaves.begin(), consumer.leaves.end());
        const auto again = solve(turned);
        for (size_t i = 0; i < shares.size(); ++i) {
            EXPECT_EQ(shares[i].deserved, again[shares.size() - 1 - i].deserved) << problem.consumers[i].name;
            EXPECT_EQ(shares[i].fair, again[shares.size() - 1 - i].fair) << problem.consumers[i].name;
        }
        if (HasFailure()) return;
    }
}

// Amounts up to the ends of int64, weights up to the largest that is allowed, guarantees far above what there is, and
// parents that are missing, infinite, or their own grandchildren.
Problem hostile_problem(Random& random) {
    const auto resources = some_resources();
    const auto amount = [&]() -> int64_t {
        switch (random.below(5)) {
            case 0:
                return 0;
            case 1:
                return INT64_MAX - random.between(0, 3);
            case 2:
                return int64_t{1} << random.between(0, 62);
            default:
                return random.between(0, 1000);
        }
    };
    const auto fill = [&](Resources& amounts) {
        for (const ResourceId id : resources)
            if (random.chance(1, 3)) amounts.set(id, amount());
    };
    Problem problem;
    problem.policy = random.chance(1, 3) ? Policy::Floor : Policy::Surplus;
    for (const ResourceId id : resources)
        if (random.chance(3, 4)) problem.capacity.set(id, amount());
    const auto count = static_cast<uint64_t>(random.between(1, 12));
    for (uint64_t i = 0; i < count; ++i) {
        Consumer& made = problem.consumers.emplace_back();
        made.name = std::string(1, static_cast<char>('a' + i));
        if (random.chance(1, 2)) made.parent = std::string(1, static_cast<char>('a' + random.below(count + 1)));
        made.weight = random.chance(1, 3) ? random.between(0, 1'000'000) : random.between(0, 4);
        made.infinite = random.chance(1, 10);
        for (auto* amounts : {&made.reserved, &made.hard, &made.lending_limit, &made.borrowing_limit})
            if (random.chance(1, 2)) fill(*amounts);
        Leaf leaf = random_leaf(random, resources);
        for (PodRun& run : leaf.pods) {
            if (random.chance(1, 3)) run.count = std::max<int64_t>(1, amount());
            run.size.for_each([&](ResourceId id, int64_t) {
                if (random.chance(1, 3)) run.size.set(id, std::max<int64_t>(1, amount()));
            });
        }
        leaf.demand.clear();
        for (const PodRun& run : leaf.pods) {
            run.size.for_each([&](ResourceId id, int64_t each) {
                int64_t all = 0;
                leaf.demand.add(id, __builtin_mul_overflow(each, run.count, &all) ? INT64_MAX : all);
            });
        }
        made.leaves.push_back(std::move(leaf));
    }
    return problem;
}

TEST(ShareProperties, HostileAmountsAndParentsGiveNobodyMoreThanThereIs) {
    for (uint64_t seed = first_seed(); seed < first_seed() + static_cast<uint64_t>(rounds()); ++seed) {
        SCOPED_TRACE(testing::Message() << "SEED=" << seed);
        Random random(seed);
        const Problem problem = hostile_problem(random);
        const auto shares = solve(problem);
        for (size_t i = 0; i < shares.size(); ++i) {
            shares[i].deserved.for_each([&](ResourceId id, int64_t amount) {
                EXPECT_GE(amount, 0) << problem.consumers[i].name;
                EXPECT_LE(amount, problem.capacity.get(id, INT64_MAX)) << problem.consumers[i].name;
            });
            for (const auto& [id, amount] : shares[i].fair) EXPECT_GE(amount, 0) << problem.consumers[i].name;
        }
        if (HasFailure()) return;
    }
}

// Ten thousand areas, each in the one before.
TEST(ShareProperties, AreasMayBeVeryDeep) {
    Problem problem;
    problem.capacity = {{model::kCpu, 10000}};
    for (int i = 0; i < 10000; ++i) {
        Consumer& made = problem.consumers.emplace_back();
        made.name = "area-" + std::to_string(i);
        if (i > 0) made.parent = "area-" + std::to_string(i - 1);
        made.reserved = {{model::kCpu, 1000}};
    }
    problem.consumers.back().leaves = {Leaf{{{model::kCpu, 20000}}, {{{{model::kCpu, 1000}}, 20, false}}}};
    Consumer& other = problem.consumers.emplace_back();
    other.name = "other";
    other.leaves = {Leaf{{{model::kCpu, 20000}}, {{{{model::kCpu, 1000}}, 20, false}}}};
    const auto shares = solve(problem);
    EXPECT_EQ(shares[0].deserved.get(model::kCpu) + shares.back().deserved.get(model::kCpu), 10000);
    EXPECT_EQ(shares[0].deserved, shares[9999].deserved);
}

// Of pods of this size, how many a share holds.
double pods_in(const Share& share, const Resources& size, int64_t wanted) {
    auto most = static_cast<double>(wanted);
    size.for_each(
        [&](ResourceId id, int64_t amount) { most = std::min(most, share.fair_of(id) / static_cast<double>(amount)); });
    return most;
}

Resources random_size(Random& random, const std::vector<ResourceId>& resources) {
    Resources size;
    for (const ResourceId id : resources) {
        if (random.chance(1, 2)) size.set(id, random.between(1, 40));
    }
    if (size.empty()) size.set(resources.front(), random.between(1, 40));
    return size;
}

Leaf wish_for(const Resources& size, int64_t count) {
    Leaf leaf;
    leaf.pods.push_back({size, count, false});
    size.for_each([&](ResourceId id, int64_t amount) { leaf.demand.set(id, amount * count); });
    return leaf;
}

// Who is guaranteed whole pods of what it needs gains none of these by asking for anything else.
TEST(ShareProperties, NobodyGainsByLying) {
    const auto resources = some_resources();
    for (uint64_t seed = first_seed(); seed < first_seed() + static_cast<uint64_t>(rounds()) / 4 + 1; ++seed) {
        SCOPED_TRACE(testing::Message() << "SEED=" << seed);
        Random random(seed);
        Problem truth;
        truth.spread = false;  // what is left over is given to whoever asks
        for (const ResourceId id : resources) truth.capacity.set(id, random.between(500, 2000));
        std::vector<std::pair<Resources, int64_t>> needs;
        for (int64_t i = random.between(2, 8); i > 0; --i) {
            Consumer& made = truth.consumers.emplace_back();
            made.name = std::string(1, static_cast<char>('a' + i));
            made.weight = random.between(1, 4);
            needs.emplace_back(random_size(random, resources), random.between(1, 60));
            const int64_t guaranteed = random.chance(1, 2) ? random.between(0, 5) : 0;
            needs.back().first.for_each([&](ResourceId id, int64_t amount) {
                if (guaranteed > 0) made.reserved.set(id, amount * guaranteed);
            });
            made.leaves = {wish_for(needs.back().first, needs.back().second)};
        }
        const auto honest = solve(truth);
        for (int tries = 0; tries < 6; ++tries) {
            const size_t liar = random.below(truth.consumers.size());
            const auto& [size, count] = needs[liar];
            Problem lie = truth;
            const Resources told = random.chance(1, 2) ? size : random_size(random, resources);
            lie.consumers[liar].leaves = {wish_for(told, random.between(1, 120))};
            const double gained = pods_in(solve(lie)[liar], size, count);
            EXPECT_LE(gained, pods_in(honest[liar], size, count) * (1 + 1e-9) + 1e-9) << truth.consumers[liar].name;
        }
        if (HasFailure()) return;
    }
}

// More or fewer pods of the last size, some of a new size, or the last run gone; the set of resources stays.
Leaf changed(Leaf leaf, Random& random) {
    const auto ask = [&](const Resources& size, int64_t count) {
        size.for_each([&](ResourceId id, int64_t amount) { leaf.demand.add(id, amount * count); });
    };
    PodRun& last = leaf.pods.back();
    if (leaf.pods.size() > 1 && random.chance(1, 4)) {
        ask(last.size, -last.count);
        leaf.pods.pop_back();
    } else if (random.chance(1, 3)) {
        PodRun more{{}, random.between(1, 9), false};
        last.size.for_each([&](ResourceId id, int64_t) { more.size.set(id, random.between(1, 40)); });
        ask(more.size, more.count);
        leaf.pods.push_back(more);
    } else {
        const int64_t count = random.between(1, 40);
        ask(last.size, count - last.count);
        last.count = count;
    }
    return leaf;
}

TEST(ShareProperties, AfterEveryChangeItIsAsIfSolvedAnew) {
    for (uint64_t seed = first_seed(); seed < first_seed() + static_cast<uint64_t>(rounds()) / 4 + 1; ++seed) {
        SCOPED_TRACE(testing::Message() << "SEED=" << seed);
        Random random(seed);
        Solver solver(random_problem(random, {.limits = random.chance(1, 2)}));
        solver.solve();
        for (int step = 0; step < 8; ++step) {
            const size_t who = random.below(solver.problem().consumers.size());
            const auto& leaves = solver.problem().consumers[who].leaves;
            if (leaves.empty()) continue;
            const size_t which = random.below(leaves.size());
            if (leaves[which].pods.empty()) continue;
            solver.change(who, which, changed(leaves[which], random));
            solver.solve();
            const auto anew = solve(solver.problem());
            for (size_t i = 0; i < anew.size(); ++i) {
                EXPECT_EQ(solver.share(i).deserved, anew[i].deserved) << solver.problem().consumers[i].name;
                for (const auto& [id, amount] : anew[i].fair)
                    EXPECT_NEAR(solver.share(i).fair_of(id), amount, 1e-9 * (1 + amount));
                EXPECT_EQ(solver.share(i).pods, anew[i].pods) << solver.problem().consumers[i].name;
            }
            if (HasFailure()) return;
        }
    }
}

}  // namespace
}  // namespace berth::share
