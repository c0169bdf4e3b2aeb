#include "api/in_flight.h"

namespace berth::api {

std::optional<InFlight::Place> InFlight::enter(const std::string& user, size_t places) {
    const std::lock_guard lock(mutex_);
    const auto found = by_user_.find(user);
    const size_t held = found == by_user_.end() ? 0 : found->second;
    if (held + places > places_ - taken_) return std::nullopt;
    taken_ += places;
    by_user_[user] += places;
    return Place(*this, user, places);
}

void InFlight::leave(const std::string& user, size_t places) {
    const std::lock_guard lock(mutex_);
    taken_ -= places;
    const auto found = by_user_.find(user);
    found->second -= places;
    if (found->second == 0) by_user_.erase(found);
}

size_t InFlight::taken() const {
    const std::lock_guard lock(mutex_);
    return taken_;
}

}  // namespace berth::api
