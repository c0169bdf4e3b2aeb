#include "api/api_context.h"

#include "api/service_ranges.h"
#include "model/times.h"

namespace berth::api {

std::string Ids::uid() {
    uint64_t high = 0, low = 0;
    {
        const std::lock_guard lock(mutex_);
        high = random_.next();
        low = random_.next();
    }
    high = (high & ~0xf000ULL) | 0x4000ULL;
    low = (low & ~(3ULL << 62)) | (2ULL << 62);
    // 01234567-0123-4012-8123-0123456789ab
    std::string out(36, '-');
    size_t at = 0;
    for (const uint64_t half : {high, low}) {
        for (int shift = 60; shift >= 0; shift -= 4) {
            if (at == 8 || at == 13 || at == 18 || at == 23) ++at;
            out[at++] = "0123456789abcdef"[(half >> shift) & 15];
        }
    }
    return out;
}

std::string Ids::suffix() {
    constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
    const std::lock_guard lock(mutex_);
    std::string out;
    for (int i = 0; i < 5; ++i) out += kAlphabet[random_.below(kAlphabet.size())];
    return out;
}

uint64_t Ids::below(uint64_t n) {
    const std::lock_guard lock(mutex_);
    return random_.below(n);
}

ApiContext::ApiContext(store::Store& the_store, const base::Clock& the_clock, uint64_t seed)
    : store(the_store),
      clock(the_clock),
      ids(seed),
      services(std::make_unique<ServiceRanges>(store)),
      kinds_(std::make_shared<model::Kinds>(model::kinds())) {}

ApiContext::~ApiContext() = default;

std::shared_ptr<const model::Kinds> ApiContext::kinds() const {
    const std::lock_guard lock(mutex_);
    return kinds_;
}

void ApiContext::publish(std::shared_ptr<const model::Kinds> kinds) {
    const std::lock_guard lock(mutex_);
    kinds_ = std::move(kinds);
}

std::string ApiContext::now_text() const {
    return model::time_text(clock.wall());
}

}  // namespace berth::api
