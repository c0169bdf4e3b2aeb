#pragma once

#include <cstdint>

#include "base/check.h"
#include "base/int128.h"

namespace berth::base {

// Seeded numbers (splitmix64): the same seed gives the same sequence on every machine. Not for secrets.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}

    uint64_t next() {
        uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
    // Uniform in [0, n).
    uint64_t below(uint64_t n) {
        CHECK(n > 0);
        return static_cast<uint64_t>((static_cast<uint128>(next()) * n) >> 64);
    }
    // Uniform in [low, high].
    int64_t between(int64_t low, int64_t high) {
        CHECK(low <= high);
        return low + static_cast<int64_t>(below(static_cast<uint64_t>(high - low) + 1));
    }
    bool chance(uint64_t numerator, uint64_t denominator) { return below(denominator) < numerator; }

private:
    uint64_t state_;
};

// A seed from the operating system, for places where unpredictability is wanted. Outer rooms only.
uint64_t seed_from_system();

}  // namespace berth::base
