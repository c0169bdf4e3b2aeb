#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

namespace berth::whatif {

// BERTH_HISTORIES=5000 for a longer run, BERTH_SEED for where it begins. Ends with the first that fails.
inline void each_seed(int64_t otherwise, const std::function<void(uint64_t seed)>& run) {
    const auto setting = [](const char* name, int64_t value) {
        const char* text = std::getenv(name);
        return text == nullptr ? value : std::strtoll(text, nullptr, 10);
    };
    const int64_t histories = setting("BERTH_HISTORIES", otherwise);
    const int64_t first = setting("BERTH_SEED", 1);
    fmt::print("histories {} to {}\n", first, first + histories - 1);
    for (int64_t seed = first; seed < first + histories && !testing::Test::HasFailure(); ++seed) {
        run(static_cast<uint64_t>(seed));
    }
}

}  // namespace berth::whatif
