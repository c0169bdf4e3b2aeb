#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "api/http.h"

namespace berth::api {

class Guest;

// Who is connected, and what their requests hold in memory: by peer and in all. A peer is an IPv4 address, or the first
// half of an IPv6 one. Who has not shown who he is may lose his place to the next who comes: when there is none left at
// all, the oldest; when his peer has many who ask for nothing, of those the one that has done so for longest. Where all
// are known, one of the peer with the most connections that has asked for nothing for longest goes. So no number of
// idle ones keeps others out. Any thread.
class Guests {
public:
    using Time = base::Instant;

    Guests(const HttpOptions& options, std::shared_ptr<HttpCounters>& counters)
        : options_(options), counters_(counters) {}

    // A connection from there; null when every place is taken by somebody who is known and asks for something.
    std::unique_ptr<Guest> enter(const std::string& address, Time now);
    // Somebody goes, so that there is a free file. False when there is nobody who could.
    bool make_place();

private:
    friend class Guest;
    struct Peer {
        std::atomic<size_t> held{0};
        // Asking for nothing, those who do so for longest first: who is not known, and who is.
        std::list<Guest*> idle, known_idle;
        size_t guests = 0;
    };

    bool evict_one();
    void evict(Guest& guest);
    void forget(Guest& guest);
    static void forget_idle(Guest& guest);
    void leave(Guest& guest);

    const HttpOptions& options_;
    const std::shared_ptr<HttpCounters>& counters_;
    std::mutex mutex_;
    std::unordered_map<std::string, Peer> peers_;
    std::list<Guest*> unknown_;  // of all peers, oldest first
    size_t count_ = 0;
    size_t leaving_ = 0;  // of them, told to go and not gone yet
};

// One connection's place. Gone with the connection.
class Guest {
public:
    ~Guest();
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

    // What to do when the place is needed, from any thread; false when it was needed before this was said.
    bool on_eviction(std::function<void()> go);
    // From now on it is the client's turn to send a header; then it has sent one.
    void set_idle(Guests::Time now);
    void set_busy();
    // It showed who it is, and keeps its place.
    void set_known();
    bool known() const { return known_; }
    // What its request holds now. False, and as before, when that is more than there is for its peer or for all.
    bool hold(size_t bytes);
    const std::string& address() const { return address_; }

private:
    friend class Guests;
    Guest(Guests& guests, Guests::Peer& peer, std::string key, std::string address)
        : guests_(guests), peer_(peer), key_(std::move(key)), address_(std::move(address)) {}

    Guests& guests_;
    Guests::Peer& peer_;
    const std::string key_;
    const std::string address_;
    size_t held_ = 0;
    bool known_ = false;
    // Guarded by the guests' mutex.
    bool evicted_ = false;
    std::function<void()> go_;
    std::list<Guest*>::iterator in_all_, in_idle_;
    std::optional<Guests::Time> idle_since_;
};

}  // namespace berth::api
