#include <gtest/gtest.h>

#include "share/problem.h"

// The cases of the specification: C = (cpu, GiB), weight 1, nothing reserved, no hard limit, no spread unless a test
// says so.
namespace berth::share {
namespace {

constexpr int64_t kGi = 1LL << 30;
constexpr int64_t kMany = 1000;

Resources both(int64_t cpu, int64_t gi) {
    Resources out;
    if (cpu > 0) out.set(model::kCpu, cpu * 1000);
    if (gi > 0) out.set(model::kMemory, gi * kGi);
    return out;
}

Resources times(const Resources& size, int64_t count) {
    Resources out;
    size.for_each([&](ResourceId id, int64_t amount) { out.set(id, amount * count); });
    return out;
}

Leaf pods(const Resources& size, int64_t waiting, int64_t running = 0) {
    Leaf leaf{times(size, waiting + running), {}};
    if (running > 0) leaf.pods.push_back({size, running, true});
    if (waiting > 0) leaf.pods.push_back({size, waiting, false});
    return leaf;
}

Consumer consumer(std::string name, std::vector<Leaf> leaves) {
    Consumer out;
    out.name = std::move(name);
    out.leaves = std::move(leaves);
    return out;
}

Problem problem(const Resources& capacity, std::vector<Consumer> consumers) {
    Problem out{capacity, std::move(consumers)};
    out.spread = false;
    return out;
}

void expect_fair(const Share& share, double cpu, double gi) {
    EXPECT_NEAR(share.fair_of(model::kCpu) / 1000, cpu, 1e-9);
    EXPECT_NEAR(share.fair_of(model::kMemory) / static_cast<double>(kGi), gi, 1e-9);
}
void expect_deserved(const Share& share, int64_t cpu_milli, int64_t gi = 0) {
    EXPECT_EQ(share.deserved.get(model::kCpu), cpu_milli);
    EXPECT_EQ(share.deserved.get(model::kMemory), gi * kGi);
}
// Whole cpus of each, with these problems of one resource.
std::vector<int64_t> cpus(const std::vector<Share>& shares) {
    std::vector<int64_t> out;
    for (const auto& share : shares) {
        EXPECT_EQ(share.deserved.get(model::kCpu) % 1000, 0);
        out.push_back(share.deserved.get(model::kCpu) / 1000);
    }
    return out;
}
using Cpus = std::vector<int64_t>;

TEST(Solve, Case1DominantShares) {
    const auto shares =
        solve(problem(both(9, 18), {consumer("a", {pods(both(1, 4), 100)}), consumer("b", {pods(both(3, 1), 100)})}));
    expect_fair(shares[0], 3, 12);
    expect_fair(shares[1], 6, 2);
    expect_deserved(shares[0], 3000, 12);
    expect_deserved(shares[1], 6000, 2);
    EXPECT_EQ(shares[0].pods, Cpus{3});
    EXPECT_EQ(shares[0].bound_by, "memory");
    EXPECT_EQ(shares[1].bound_by, "cpu");
}

TEST(Solve, Case1WithSpreadFillsWhatIsLeft) {
    auto with = problem(both(9, 18), {consumer("a", {pods(both(1, 4), 100)}), consumer("b", {pods(both(3, 1), 100)})});
    with.spread = true;
    const auto shares = solve(with);
    expect_fair(shares[0], 3, 14);
    expect_fair(shares[1], 6, 4);
    expect_deserved(shares[0], 3000, 12);
    expect_deserved(shares[1], 6000, 2);
}

TEST(Solve, Case2TheOtherBottleneck) {
    const auto shares = solve(
        problem(both(30, 30), {consumer("a", {pods(both(1, 3), kMany)}), consumer("b", {pods(both(1, 1), kMany)})}));
    expect_fair(shares[0], 5, 15);
    expect_fair(shares[1], 15, 15);
    expect_deserved(shares[0], 5000, 15);
    expect_deserved(shares[1], 15000, 15);
}

TEST(Solve, OfTwoThatAreFullTogetherTheFirstByNameBounds) {
    const auto shares =
        solve(problem(both(2, 2), {consumer("a", {pods(both(1, 1), 2)}), consumer("b", {pods(both(1, 1), 2)})}));
    EXPECT_EQ(shares[0].bound_by, "cpu");
    EXPECT_EQ(shares[1].bound_by, "cpu");
}

TEST(Solve, Case4Weights) {
    auto weighted =
        problem(both(9, 18), {consumer("a", {pods(both(1, 4), 100)}), consumer("b", {pods(both(3, 1), 100)})});
    weighted.consumers[0].weight = 2;
    const auto shares = solve(weighted);
    expect_fair(shares[0], 54.0 / 13, 216.0 / 13);
    expect_fair(shares[1], 54.0 / 13, 18.0 / 13);
}

TEST(Solve, Case5AFullResourceStopsOnlyThoseWhoNeedIt) {
    const auto shares =
        solve(problem(both(10, 10), {consumer("a", {pods(both(1, 0), kMany)}), consumer("b", {pods(both(1, 0), kMany)}),
                                     consumer("c", {pods(both(0, 1), kMany)})}));
    expect_fair(shares[0], 5, 0);
    expect_fair(shares[1], 5, 0);
    expect_fair(shares[2], 0, 10);
}

Problem areas(int64_t app, int64_t spark, int64_t hadoop) {
    Problem out = problem(
        both(100, 0), {consumer("app", {pods(both(1, 0), app)}), consumer("bigdata", {}),
                       consumer("hadoop", {pods(both(1, 0), hadoop)}), consumer("spark", {pods(both(1, 0), spark)})});
    out.consumers[0].weight = 40;
    out.consumers[1].weight = 60;
    out.consumers[2].parent = out.consumers[3].parent = "bigdata";
    return out;
}

TEST(Solve, Case6AreasInsideAreas) {
    EXPECT_EQ(cpus(solve(areas(kMany, kMany, kMany))), (Cpus{40, 60, 30, 30}));
    EXPECT_EQ(cpus(solve(areas(10, kMany, kMany))), (Cpus{10, 90, 45, 45}));
    EXPECT_EQ(cpus(solve(areas(kMany, kMany, 5))), (Cpus{40, 60, 5, 55}));
}

TEST(Solve, Case6WithGuaranteesInPlaceOfWeights) {
    for (const auto& [app, hadoop, expected] : std::vector<std::tuple<int64_t, int64_t, Cpus>>{
             {kMany, kMany, {40, 60, 30, 30}}, {10, kMany, {10, 90, 45, 45}}, {kMany, 5, {40, 60, 5, 55}}}) {
        Problem reserved = areas(app, kMany, hadoop);
        reserved.consumers[0].weight = reserved.consumers[1].weight = 1;
        reserved.consumers[0].reserved = both(40, 0);
        reserved.consumers[1].reserved = both(60, 0);
        EXPECT_EQ(cpus(solve(reserved)), expected);
    }
}

TEST(Solve, AParentsReservedCountsAtItsOwnLevel) {
    Problem reserved = areas(kMany, kMany, kMany);
    reserved.consumers[0].weight = reserved.consumers[1].weight = 1;
    reserved.consumers[1].reserved = both(60, 0);
    reserved.consumers[3].reserved = both(20, 0);
    EXPECT_EQ(cpus(solve(reserved)), (Cpus{20, 80, 30, 50}));
}

TEST(Solve, Case7GuaranteesAndTheFloorPolicy) {
    Problem reserved =
        problem(both(100, 0), {consumer("a", {pods(both(1, 0), kMany)}), consumer("b", {pods(both(1, 0), kMany)})});
    reserved.consumers[0].reserved = both(60, 0);
    reserved.consumers[1].reserved = both(20, 0);
    EXPECT_EQ(cpus(solve(reserved)), (Cpus{70, 30}));
    reserved.policy = Policy::Floor;
    EXPECT_EQ(cpus(solve(reserved)), (Cpus{60, 40}));
}

TEST(Solve, Case8GuaranteesShrinkWhenANodeIsLost) {
    Problem reserved =
        problem(both(100, 0), {consumer("a", {pods(both(1, 0), kMany)}), consumer("b", {pods(both(1, 0), kMany)})});
    reserved.consumers[0].reserved = both(30, 0);
    reserved.consumers[1].reserved = both(90, 0);
    const auto shares = solve(reserved);
    EXPECT_EQ(cpus(shares), (Cpus{25, 75}));
    EXPECT_TRUE(shares[0].scaled && shares[1].scaled);
}

TEST(Solve, Case9MinimaWeightsAndNeeds) {
    Problem mixed = problem(both(100, 0), {});
    const int64_t least[] = {10, 15, 20, 15}, weight[] = {40, 60, 50, 80}, need[] = {5, 20, 40, 70};
    for (int i = 0; i < 4; ++i) {
        mixed.consumers.push_back(consumer(std::string(1, static_cast<char>('a' + i)), {pods(both(1, 0), need[i])}));
        mixed.consumers.back().reserved = both(least[i], 0);
        mixed.consumers.back().weight = weight[i];
    }
    EXPECT_EQ(cpus(solve(mixed)), (Cpus{5, 20, 35, 40}));
}

TEST(Solve, Case10IdleGuaranteesAreLentUpToTheLimit) {
    Problem lending = problem(both(10, 0), {consumer("a", {}), consumer("b", {pods(both(1, 0), kMany)})});
    lending.consumers[0].reserved = both(4, 0);
    EXPECT_EQ(cpus(solve(lending)), (Cpus{0, 10}));
    lending.consumers[0].lending_limit.set(model::kCpu, 0);
    EXPECT_EQ(cpus(solve(lending)), (Cpus{0, 6}));
    lending.consumers[0].lending_limit.set(model::kCpu, 1000);
    EXPECT_EQ(cpus(solve(lending)), (Cpus{0, 7}));
}

TEST(Solve, Case11InfiniteConsumersComeFirst) {
    Problem system =
        problem(both(10, 0), {consumer("a", {pods(both(1, 0), kMany)}), consumer("b", {pods(both(1, 0), kMany)}),
                              consumer("kube-system", {pods(both(3, 0), 1)})});
    system.consumers[2].infinite = true;
    const auto shares = solve(system);
    expect_fair(shares[0], 3.5, 0);
    expect_fair(shares[1], 3.5, 0);
    EXPECT_EQ(cpus(shares), (Cpus{4, 3, 3}));
    // A fraction of a pod evicts nobody: it goes to the one that runs already.
    system.consumers[1].leaves = {pods(both(1, 0), kMany, 4)};
    EXPECT_EQ(cpus(solve(system)), (Cpus{3, 4, 3}));
}

TEST(Solve, Case12And13WhoRunsTooMuch) {
    Problem one =
        problem(both(10, 0), {consumer("a", {pods(both(1, 0), 0, 10)}), consumer("b", {pods(both(1, 0), 10)})});
    one.consumers[0].reserved = both(4, 0);
    EXPECT_EQ(cpus(solve(one)), (Cpus{7, 3}));
    const Problem two =
        problem(both(12, 0), {consumer("a", {pods(both(1, 0), 0, 7)}), consumer("b", {pods(both(1, 0), 0, 5)}),
                              consumer("n", {pods(both(1, 0), 4)})});
    EXPECT_EQ(cpus(solve(two)), (Cpus{4, 4, 4}));
}

TEST(Solve, BorrowingLimitCapsAboveTheGuarantee) {
    Problem limited =
        problem(both(10, 0), {consumer("a", {pods(both(1, 0), kMany)}), consumer("b", {pods(both(1, 0), kMany)})});
    limited.consumers[0].reserved = both(2, 0);
    limited.consumers[0].borrowing_limit = both(1, 0);
    const auto shares = solve(limited);
    EXPECT_EQ(cpus(shares), (Cpus{3, 7}));
    EXPECT_EQ(shares[0].bound_by, "borrowingLimit");
}

TEST(Solve, HardCapsAndAreasHaveLimitsToo) {
    Problem limited = areas(kMany, kMany, kMany);
    limited.consumers[1].hard = both(30, 0);
    EXPECT_EQ(cpus(solve(limited)), (Cpus{70, 30, 15, 15}));
    limited.consumers[2].hard = both(10, 0);
    const auto shares = solve(limited);
    EXPECT_EQ(cpus(shares), (Cpus{70, 30, 10, 20}));
    EXPECT_EQ(shares[2].bound_by, "hard");
}

// The cluster has limits without end, the area has not: what a guarantee of cpu lets start at once is within the
// area's.
TEST(Solve, AnAreaLimitsWhatTheClusterHasWithoutEnd) {
    const auto limits = *model::intern_resource("limits.cpu");
    Consumer area = consumer("area", {});
    area.hard.set(limits, 10);
    Consumer a = consumer("a", {Leaf{{{model::kCpu, 8000}, {limits, 80}}, {}}});
    Consumer b = consumer("b", {Leaf{{{model::kCpu, 4000}, {limits, 40}}, {}}});
    Consumer c = consumer("c", {Leaf{{{limits, 4}}, {}}});
    a.reserved.set(model::kCpu, 4000);
    b.reserved.set(model::kCpu, 1000);
    a.parent = b.parent = c.parent = "area";
    auto shares = solve(problem(both(20, 0), {area, a, b}));
    EXPECT_NEAR(shares[0].fair_of(limits), 10, 1e-9);
    EXPECT_NEAR(shares[1].fair_of(limits), 8, 1e-9);
    EXPECT_NEAR(shares[2].fair_of(limits), 2, 1e-9);
    EXPECT_NEAR(shares[1].fair_of(model::kCpu), 4000, 1e-9) << "its guarantee stays";
    EXPECT_NEAR(shares[2].fair_of(model::kCpu), 1000, 1e-9);
    // Who has a guarantee of the limits has it first.
    c.reserved.set(limits, 4);
    area.reserved.set(limits, 4);
    shares = solve(problem(both(20, 0), {area, a, b, c}));
    EXPECT_NEAR(shares[0].fair_of(limits), 10, 1e-9);
    EXPECT_NEAR(shares[1].fair_of(limits), 4.8, 1e-9);
    EXPECT_NEAR(shares[3].fair_of(limits), 4, 1e-9);
    // And without it those who need nothing else are no better off.
    c.reserved.clear();
    area.reserved.clear();
    shares = solve(problem(both(20, 0), {area, a, b, c}));
    EXPECT_NEAR(shares[0].fair_of(limits), 10, 1e-9);
    EXPECT_NEAR(shares[3].fair_of(limits), 10.0 * 4 / 54, 1e-9);
}

TEST(Solve, AGpuPodThatCannotStartStopsNoCpuPod) {
    const auto gpu = *model::intern_resource("nvidia.com/gpu");
    Resources with_gpu = both(1, 0);
    with_gpu.set(gpu, 1);
    Resources capacity = both(10, 0);
    capacity.set(gpu, 0);
    const auto shares = solve(problem(capacity, {consumer("a", {pods(with_gpu, 1), pods(both(1, 0), kMany)}),
                                                 consumer("b", {pods(both(1, 0), kMany)})}));
    EXPECT_EQ(cpus(shares), (Cpus{5, 5}));
    EXPECT_EQ(shares[0].pods, (Cpus{0, 5}));
}

TEST(Solve, WeightZeroGetsItsGuaranteeOnly) {
    Problem zero =
        problem(both(10, 0), {consumer("a", {pods(both(1, 0), kMany)}), consumer("b", {pods(both(1, 0), kMany)})});
    zero.spread = true;
    zero.consumers[0].weight = 0;
    zero.consumers[0].reserved = both(2, 0);
    EXPECT_EQ(cpus(solve(zero)), (Cpus{2, 8}));
}

}  // namespace
}  // namespace berth::share
