#include "base/clock.h"

namespace berth::base {
namespace {

class SystemClock final : public Clock {
public:
    Instant now() const override { return {std::chrono::steady_clock::now().time_since_epoch().count()}; }
    Time wall() const override {
        return {std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()).count()};
    }
};

}  // namespace

const Clock& system_clock() {
    static const SystemClock clock;
    return clock;
}

}  // namespace berth::base
