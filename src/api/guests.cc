#include "api/guests.h"

#include <arpa/inet.h>

namespace berth::api {
namespace {

// Whoever came with a burst, as a fleet of agents does, has this long to say who he is: it is also ours to listen.
constexpr auto kGrace = std::chrono::seconds(5);
// More than come: what a burst brought is made good.
constexpr int kEvictions = 2;

// Whoever has one IPv6 address has 2^64 of them.
std::string peer_key(const std::string& address) {
    in6_addr bytes{};
    if (::inet_pton(AF_INET6, address.c_str(), &bytes) != 1) return address;
    return {reinterpret_cast<const char*>(&bytes), 8};
}

}  // namespace

std::unique_ptr<Guest> Guests::enter(const std::string& address, Time now) {
    const std::lock_guard lock(mutex_);
    if (count_ - leaving_ >= options_.max_connections) {
        if (unknown_.empty()) return nullptr;
        evict(*unknown_.front());
    }
    const std::string key = peer_key(address);
    Peer& peer = peers_[key];
    for (int i = 0; i < kEvictions && peer.idle.size() >= options_.max_idle_per_peer; ++i) {
        Guest& longest = *peer.idle.front();
        if (now - *longest.idle_since_ < kGrace) break;
        evict(longest);
    }
    std::unique_ptr<Guest> out(new Guest(*this, peer, key, address));
    out->in_all_ = unknown_.insert(unknown_.end(), out.get());
    ++peer.guests;
    ++count_;
    return out;
}

bool Guests::make_place() {
    const std::lock_guard lock(mutex_);
    if (unknown_.empty()) return false;
    evict(*unknown_.front());
    return true;
}

void Guests::evict(Guest& guest) {
    forget(guest);
    guest.evicted_ = true;
    ++leaving_;
    if (guest.go_) guest.go_();
}

// It is no longer one of those who may lose their place.
void Guests::forget(Guest& guest) {
    forget_idle(guest);
    unknown_.erase(guest.in_all_);
}

void Guests::forget_idle(Guest& guest) {
    if (!guest.idle_since_) return;
    guest.peer_.idle.erase(guest.in_idle_);
    guest.idle_since_.reset();
}

void Guests::leave(Guest& guest) {
    const std::lock_guard lock(mutex_);
    if (guest.evicted_) --leaving_;
    if (!guest.evicted_ && !guest.known_) forget(guest);
    --count_;
    if (--guest.peer_.guests == 0) peers_.erase(guest.key_);
}

Guest::~Guest() {
    hold(0);
    guests_.leave(*this);
}

bool Guest::on_eviction(std::function<void()> go) {
    const std::lock_guard lock(guests_.mutex_);
    go_ = std::move(go);
    return !evicted_;
}

void Guest::set_idle(Guests::Time now) {
    if (known_) return;
    const std::lock_guard lock(guests_.mutex_);
    if (evicted_ || idle_since_) return;
    idle_since_ = now;
    in_idle_ = peer_.idle.insert(peer_.idle.end(), this);
}

void Guest::set_busy() {
    if (known_) return;
    const std::lock_guard lock(guests_.mutex_);
    Guests::forget_idle(*this);
}

void Guest::set_known() {
    if (known_) return;
    const std::lock_guard lock(guests_.mutex_);
    if (!evicted_) guests_.forget(*this);
    known_ = true;
}

bool Guest::hold(size_t bytes) {
    auto& all = guests_.counters_->held;
    if (bytes <= held_) {
        peer_.held -= held_ - bytes;
        all -= held_ - bytes;
    } else {
        const size_t more = bytes - held_;
        const bool fits = (peer_.held += more) <= guests_.options_.max_held_per_peer;
        if ((all += more) > guests_.options_.max_held || !fits) {
            peer_.held -= more;
            all -= more;
            return false;
        }
    }
    held_ = bytes;
    return true;
}

}  // namespace berth::api
