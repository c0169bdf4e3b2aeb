#include "seeds.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace berth::crash {

void each_seed(uint64_t count, const std::function<void(uint64_t seed)>& story) {
    const char* first = std::getenv("BERTH_SEED");
    const char* many = std::getenv("BERTH_SEEDS");
    const uint64_t begin = first ? std::strtoull(first, nullptr, 10) : 1;
    const uint64_t end = begin + (many ? std::strtoull(many, nullptr, 10) : count);
    uint64_t seed = begin;
    for (; seed < end && !testing::Test::HasFailure(); ++seed) story(seed);
    const auto last = static_cast<unsigned long long>(seed - 1);
    if (testing::Test::HasFailure()) std::printf("seed %llu: again with BERTH_SEED=%llu BERTH_SEEDS=1\n", last, last);
    std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(begin), last);
}

}  // namespace berth::crash
