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
    if (count_ - leaving_ >= options_.max_connections && !evict_one()) return nullptr;
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
    return evict_one();
}

bool Guests::evict_one() {
    if (!unknown_.empty()) {
        evict(*unknown_.front());
        return true;
    }
    const Peer* most = nullptr;
    for (const auto& [key, peer] : peers_) {
        if (!peer.known_idle.empty() && (most == nullptr || peer.guests > most->guests)) most = &peer;
    }
    if (most != nullptr) evict(*most->known_idle.front());
    return most != nullptr;
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
    if (!guest.known_) unknown_.erase(guest.in_all_);
}

void Guests::forget_idle(Guest& guest) {
    if (!guest.idle_since_) return;
    (guest.known_ ? guest.peer_.known_idle : guest.peer_.idle).erase(guest.in_idle_);
    guest.idle_since_.reset();
}

void Guests::leave(Guest& guest) {
    const std::lock_guard lock(mutex_);
    if (guest.evicted_) --leaving_;
    if (!guest.evicted_) forget(guest);
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
    const std::lock_guard lock(guests_.mutex_);
    if (evicted_ || idle_since_) return;
    idle_since_ = now;
    auto& idle = known_ ? peer_.known_idle : peer_.idle;
    in_idle_ = idle.insert(idle.end(), this);
}

void Guest::set_busy() {
    const std::lock_guard lock(guests_.mutex_);
    Guests::forget_idle(*this);
}

void Guest::set_known() {
    if (known_) return;
    const std::lock_guard lock(guests_.mutex_);
    const auto idle_since = idle_since_;
    if (!evicted_) guests_.forget(*this);
    known_ = true;
    if (!idle_since || evicted_) return;
    idle_since_ = idle_since;
    in_idle_ = peer_.known_idle.insert(peer_.known_idle.end(), this);
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
