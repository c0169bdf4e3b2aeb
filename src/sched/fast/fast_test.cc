#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/fast/kernel.h"
#include "sched/fast/max_tree.h"

namespace berth::sched::fast {
namespace {

using base::Random;

std::vector<float> random_floats(Random& random, size_t size, int64_t low, int64_t high) {
    std::vector<float> values(size);
    for (auto& value : values) value = static_cast<float>(random.between(low, high));
    return values;
}

TEST(Kernel, VectorsAndScalarsAgree) {
    const uint64_t seed = base::seed_from_system();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    constexpr size_t kBlocks = 5;
    constexpr size_t kRows = kBlocks * kBlock;
    for (int round = 0; round < 200; ++round) {
        const auto cpu = random_floats(random, kRows, 0, 5000);
        const auto memory = random_floats(random, kRows, 0, int64_t{40} << 30);
        const auto cpu_scored = random_floats(random, kRows, 0, 5000);
        const auto memory_scored = random_floats(random, kRows, 0, int64_t{40} << 30);
        const std::vector<float> cpu_per(kRows, 100.0f / 4000);
        const std::vector<float> memory_per(kRows, 100.0f / static_cast<float>(int64_t{32} << 30));
        const auto pods = random_floats(random, kRows, -2, 5);
        std::vector<uint32_t> ranks(kRows);
        std::vector<uint16_t> base(kRows);
        for (size_t i = 0; i < kRows; ++i) {
            ranks[i] = kMaxRank - static_cast<uint32_t>(i);
            base[i] = static_cast<uint16_t>(random.below(3) * 50);
        }
        const RowColumns rows{cpu.data(),     memory.data(),     cpu_scored.data(), memory_scored.data(),
                              cpu_per.data(), memory_per.data(), pods.data(),       ranks.data()};
        const ClassNumbers numbers{100, 5e8f, 100, 5e8f, 1, 100 + kSlack, 100 + kSlack, 1, 1};
        std::vector<Key> keys(kRows), twin(kRows), tops(kBlocks), twin_tops(kBlocks);
        upper_keys(rows, numbers, base.data(), kBlocks, keys.data(), tops.data());
        upper_keys_scalar(rows, numbers, base.data(), kBlocks, twin.data(), twin_tops.data());
        ASSERT_EQ(keys, twin);
        ASSERT_EQ(tops, twin_tops);
        ASSERT_EQ(top_of_block(keys.data()), *std::max_element(keys.begin(), keys.begin() + kBlock));
        std::vector<uint16_t> struck = base;
        strike_short(pods.data(), 1.0f, kBlocks, struck.data());
        for (size_t i = 0; i < kRows; ++i) ASSERT_EQ(struck[i], pods[i] >= 1 ? base[i] : 0);
    }
}

TEST(MaxTree, TopIsTheLargestAfterEveryChange) {
    const uint64_t seed = base::seed_from_system();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    for (const size_t size : {1, 63, 64, 65, 4096, 5000, 20'000}) {
        MaxTree tree;
        tree.resize(size);
        std::vector<Key> keys(size);
        EXPECT_EQ(tree.top(), 0u);
        for (int i = 0; i < 300; ++i) {
            const size_t at = random.below(size);
            keys[at] = static_cast<Key>(random.below(i % 2 == 0 ? 10 : UINT32_MAX));
            tree.set(at, keys[at]);
            ASSERT_EQ(tree.top(), *std::max_element(keys.begin(), keys.end())) << size;
        }
        MaxTree whole;
        whole.resize(size);
        std::copy(keys.begin(), keys.end(), whole.keys());
        whole.keys_filled();
        EXPECT_EQ(whole.top(), tree.top());
    }
}

}  // namespace
}  // namespace berth::sched::fast
