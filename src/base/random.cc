#include "base/random.h"

#include <random>

namespace berth::base {

uint64_t seed_from_system() {
    std::random_device device;
    return (static_cast<uint64_t>(device()) << 32) | device();
}

}  // namespace berth::base
