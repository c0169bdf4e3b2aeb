#include "api/desk.h"

#include <fmt/format.h>

#include "model/times.h"

namespace berth::api {

std::string Dice::uid() {
    uint64_t high = 0, low = 0;
    {
        const std::lock_guard lock(mutex_);
        high = random_.next();
        low = random_.next();
    }
    high = (high & ~0xf000ULL) | 0x4000ULL;
    low = (low & ~(3ULL << 62)) | (2ULL << 62);
    return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xffff,
                       low >> 48, low & 0xffffffffffffULL);
}

std::string Dice::suffix() {
    constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
    const std::lock_guard lock(mutex_);
    std::string out;
    for (int i = 0; i < 5; ++i) out += kAlphabet[random_.below(kAlphabet.size())];
    return out;
}

uint64_t Dice::below(uint64_t n) {
    const std::lock_guard lock(mutex_);
    return random_.below(n);
}

Desk::Desk(store::Store& the_store, const base::Clock& the_clock, uint64_t seed)
    : store(the_store), clock(the_clock), dice(seed), kinds_(std::make_shared<model::Kinds>(model::kinds())) {}

std::shared_ptr<const model::Kinds> Desk::kinds() const {
    const std::lock_guard lock(mutex_);
    return kinds_;
}

void Desk::publish(std::shared_ptr<const model::Kinds> kinds) {
    const std::lock_guard lock(mutex_);
    kinds_ = std::move(kinds);
}

std::string Desk::now_text() const {
    return model::time_text(clock.wall());
}

}  // namespace berth::api
