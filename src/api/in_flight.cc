#include "api/in_flight.h"

namespace berth::api {

std::optional<InFlight::Place> InFlight::enter(const std::string& user) {
    const std::lock_guard lock(mutex_);
    const auto found = by_user_.find(user);
    const size_t held = found == by_user_.end() ? 0 : found->second;
    if (held >= places_ - taken_) return std::nullopt;
    ++taken_;
    ++by_user_[user];
    return Place(*this, user);
}

void InFlight::leave(const std::string& user) {
    const std::lock_guard lock(mutex_);
    --taken_;
    const auto found = by_user_.find(user);
    if (--found->second == 0) by_user_.erase(found);
}

size_t InFlight::taken() const {
    const std::lock_guard lock(mutex_);
    return taken_;
}

}  // namespace berth::api
