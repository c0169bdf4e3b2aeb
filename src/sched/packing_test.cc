#include "sched/packing.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace berth::sched {
namespace {

GpuDemand share(int64_t cpu_milli, int32_t milli) {
    return {.cpu_milli = cpu_milli, .count = 1, .milli = milli};
}

TEST(Packing, ADemandFitsByCpuMemoryModelAndWholeGpus) {
    const GpuRoom room{.cpu_milli = 4000, .memory = 10, .model = 2, .free = {400, 1000, 1000}};
    EXPECT_TRUE(fits(room, {.cpu_milli = 4000, .memory = 10, .count = 2, .milli = 1000}));
    EXPECT_FALSE(fits(room, {.count = 3, .milli = 1000})) << "0.4 and 0.6 of another are not one";
    EXPECT_FALSE(fits(room, {.cpu_milli = 4001}));
    EXPECT_FALSE(fits(room, {.memory = 11}));
    EXPECT_FALSE(fits(room, {.count = 1, .milli = 100, .models = 1}));
    EXPECT_TRUE(fits(room, {.cpu_milli = 1, .models = 1})) << "who wants no GPU does not mind the model";
}

TEST(Packing, TheMixIsWhatMostAskFor) {
    std::vector<GpuDemand> demands(95, share(1000, 500));
    demands.resize(100, share(2000, 1000));
    const GpuMix mix(demands);
    ASSERT_EQ(mix.parts().size(), 1u) << "95 of 100 are enough";
    EXPECT_EQ(mix.count(), 95);
    EXPECT_EQ(mix.cpu_milli(), 95 * 1000 + 5 * 2000) << "the sums are of all";
    EXPECT_EQ(mix.gpu_milli(), 95 * 500 + 5 * 1000);
    demands.resize(101, share(2000, 1000));
    EXPECT_EQ(GpuMix(demands).parts().size(), 2u);
}

// 128 cpu and 8 GPUs are the whole: 64 / 128 and (2 - 0.4) / 8 are left, so (50 + 20) / 2 = 35 % remain.
TEST(Packing, BestFitLeavesTheLeast) {
    const GpuMix none({});
    const GpuRoom room{.cpu_milli = 64'000, .free = {1000, 600, 400}};
    const auto placed = packed(Packing::BestFit, none, room, share(0, 400));
    EXPECT_EQ(placed.points, 65) << "1 - (0.5 + 1.6 / 8) / 2";
    EXPECT_EQ(placed.gpus, GpuChoice{2});
    const auto two = packed(Packing::BestFit, none, room, {.count = 2, .milli = 500});
    EXPECT_EQ(two.gpus, (GpuChoice{1, 0}));
}

// Half ask for a whole GPU, half for 0.4 of one. Free are 1.0 and 0.5. Before: 0.5 is of no use to the first, all is to
// the second: mean 0.25. 0.4 of the half one: 0.1 is of no use to both: 0.1, so 0.15 less; 0.4 of the whole one: the
// first can use nothing of 1.1: 0.55, so 0.3 more.
TEST(Packing, FragmentsGrowLeastWhereAShareCompletesAGpu) {
    const GpuMix mix({share(1000, 1000), share(1000, 400)});
    const GpuRoom room{.cpu_milli = 64'000, .free = {1000, 500}};
    const auto placed = packed(Packing::FGD, mix, room, share(1000, 400));
    EXPECT_EQ(placed.gpus, GpuChoice{1});
    EXPECT_EQ(placed.points, 53) << "100 / (1 + e^-0.15) = 53.7";
    const auto whole = packed(Packing::FGD, mix, {.cpu_milli = 64'000, .free = {1000}}, share(1000, 400));
    EXPECT_EQ(whole.points, 42) << "100 / (1 + e^0.3) = 42.6: nothing was a fragment, now 0.6 is half of one";
}

// The mix asks for 10 cpu a GPU, of which 8.5 are said to be needed. Who takes 12 cpu and one of two GPUs leaves 8 of
// 20 cpu for the other one: 0.0588 of it is stranded. Of 60 cpu plenty is left.
TEST(Packing, StrandedGpusAreSeenBeforeTheCpuIsGone) {
    const GpuMix mix({share(10'000, 1000)});
    const GpuDemand greedy = share(12'000, 1000);
    const GpuRoom poor{.cpu_milli = 22'000, .free = {1000, 1000}};
    const GpuRoom rich{.cpu_milli = 60'000, .free = {1000, 1000}};
    EXPECT_EQ(packed(Packing::FGD, mix, poor, greedy).points, packed(Packing::FGD, mix, rich, greedy).points);
    EXPECT_EQ(packed(Packing::Stranding, mix, rich, greedy).points, 0);
    const GpuRoom poorer{.cpu_milli = 20'000, .free = {1000, 1000}};
    EXPECT_EQ(packed(Packing::Stranding, mix, poorer, greedy).points, -1'000'000 - 58'824)
        << "one GPU of no use to the mix, and 0.0588 of one out of reach";
}

TEST(Packing, WhatLaterSharesTakeOfAGap) {
    const GpuMix alone({share(0, 400), share(0, 400), share(0, 1000), {.count = 2, .milli = 300}});
    EXPECT_EQ(alone.filled(399), 0);
    EXPECT_EQ(alone.filled(400), 400'000);
    EXPECT_EQ(alone.filled(799), 400'000);
    EXPECT_EQ(alone.filled(1000), 800'000);
    EXPECT_EQ(GpuMix({share(0, 1000)}).filled(1000), 0) << "nobody wants a share";
    // Half of the gaps of 1.0 get 0.7 and nothing more, half twice 0.4, but for one in a million in 20 shares.
    const GpuMix two({share(0, 400), share(0, 700)});
    EXPECT_NEAR(static_cast<double>(two.filled(1000)), 750'000, 2);
    // One share in eight is small: of 20 at least one with 1 - (7 / 8)^20 = 0.9308.
    std::vector<GpuDemand> rare(7, share(0, 900));
    rare.push_back(share(0, 100));
    EXPECT_NEAR(static_cast<double>(GpuMix(rare).filled(199)), 93'080, 30);
}

// 0.3 beside 0.7 leaves nothing to be lost; alone on a GPU it leaves 0.7, which others will take; beside 0.5 it leaves
// 0.2, where nobody fits.
TEST(Packing, StrandingTakesTheGapThatNobodyElseFills) {
    const GpuMix mix({share(0, 300), share(0, 700), share(0, 500)});
    const GpuRoom room{.cpu_milli = 64'000, .free = {500, 300, 1000}};
    EXPECT_EQ(packed(Packing::Stranding, mix, room, share(0, 300)).gpus, GpuChoice{1});
    const GpuRoom worse{.cpu_milli = 64'000, .free = {500, 1000}};
    EXPECT_EQ(packed(Packing::Stranding, mix, worse, share(0, 300)).gpus, GpuChoice{1});
}

TEST(Packing, WhatIsTakenWasFree) {
    const uint64_t seed = 7;
    base::Random random(seed);
    for (int round = 0; round < 2000; ++round) {
        std::vector<GpuDemand> demands;
        for (int i = 0; i < 5; ++i)
            demands.push_back({.cpu_milli = random.between(0, 9000),
                               .memory = random.between(0, 3),
                               .count = static_cast<int32_t>(random.between(0, 3)),
                               .milli = static_cast<int32_t>(random.between(1, 10)) * 100});
        GpuRoom room{.cpu_milli = random.between(0, 20'000), .memory = 3, .free = {}};
        for (uint64_t i = random.below(9); i > 0; --i)
            room.free.push_back(static_cast<int32_t>(random.between(0, 10)) * 100);
        const GpuMix mix(demands);
        for (const GpuDemand& demand : demands) {
            if (!fits(room, demand)) continue;
            for (const Packing packing : {Packing::BestFit, Packing::FGD, Packing::Stranding}) {
                GpuRoom after = room;
                const auto placed = packed(packing, mix, room, demand);
                ASSERT_EQ(placed.gpus.size(), static_cast<size_t>(demand.count)) << "seed " << seed;
                take(after, demand, placed.gpus);
                for (const int32_t free : after.free) ASSERT_GE(free, 0) << "seed " << seed;
                ASSERT_EQ(after.gpu_milli(), room.gpu_milli() - demand.gpu_milli());
            }
        }
    }
}

TEST(Packing, ScorersHaveNames) {
    EXPECT_EQ(packing_named("FGD"), Packing::FGD);
    EXPECT_EQ(packing_named("fgd"), std::nullopt);
}

}  // namespace
}  // namespace berth::sched
