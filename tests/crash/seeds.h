#pragma once

#include <cstdint>
#include <functional>

namespace berth::crash {

// Tells the story of each seed until one fails, and says which. BERTH_SEED and BERTH_SEEDS choose others.
void each_seed(uint64_t count, const std::function<void(uint64_t seed)>& story);

}  // namespace berth::crash
