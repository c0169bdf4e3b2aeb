#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "link/api_client.h"
#include "run/driver.h"

namespace berth::run {

// A server as a test wants it: feeds tell the objects that are there, requests wait until the test answers. The test
// keeps the script; the component under test gets the server that plays it. Any thread.
class Script : public std::enable_shared_from_this<Script> {
public:
    // Before the component starts.
    void has(const std::string& plural, std::string object) { objects_[plural].push_back(std::move(object)); }
    std::unique_ptr<link::ApiClient> server();
    // Later: the object changed.
    void tell(const std::string& plural, std::string object, uint64_t revision);

    // Waits for the first request to this method and path's beginning that no earlier call has taken.
    link::Request take(const std::string& method, const std::string& path, link::Reply answer);
    // The how manieth request was this, if one was.
    std::optional<size_t> find(const std::function<bool(const link::Request&)>& wanted);
    // These, and those that come.
    void answer_all(const link::Reply& answer);
    size_t requests();

private:
    struct Sent {
        link::Request request;
        link::ReplyTo reply;
    };
    class Player;
    class PlayedFeed;
    void send(link::Request request, link::ReplyTo reply);
    std::vector<link::FeedEvent> news(const std::string& plural);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, std::vector<std::string>> objects_;
    std::map<std::string, std::vector<link::FeedEvent>> news_;
    std::vector<Sent> open_;
    std::vector<link::Request> all_;
    std::optional<link::Reply> answer_;
};

class Script::PlayedFeed final : public link::Feed {
public:
    PlayedFeed(std::shared_ptr<Script> script, std::string plural)
        : script_(std::move(script)), plural_(std::move(plural)) {}
    std::vector<link::FeedEvent> poll(size_t) override { return script_->news(plural_); }

private:
    const std::shared_ptr<Script> script_;
    const std::string plural_;
};

class Script::Player final : public link::ApiClient {
public:
    explicit Player(std::shared_ptr<Script> script) : script_(std::move(script)) {}
    void send(link::Request request, link::ReplyTo reply) override {
        script_->send(std::move(request), std::move(reply));
    }
    std::unique_ptr<link::Feed> follow(const link::Resource& resource, std::function<void()>) override {
        for (const auto& object : script_->objects_[resource.plural]) script_->tell(resource.plural, object, 1);
        const std::lock_guard lock(script_->mutex_);
        script_->news_[resource.plural].push_back({link::FeedEvent::Type::Synced, nullptr, 1});
        return std::make_unique<PlayedFeed>(script_, resource.plural);
    }

private:
    std::shared_ptr<Script> script_;
};

inline std::unique_ptr<link::ApiClient> Script::server() {
    return std::make_unique<Player>(shared_from_this());
}

inline void Script::tell(const std::string& plural, std::string object, uint64_t revision) {
    const std::lock_guard lock(mutex_);
    news_[plural].push_back(
        {link::FeedEvent::Type::Put, std::make_shared<const std::string>(std::move(object)), revision});
}

inline std::vector<link::FeedEvent> Script::news(const std::string& plural) {
    const std::lock_guard lock(mutex_);
    return std::exchange(news_[plural], {});
}

inline void Script::send(link::Request request, link::ReplyTo reply) {
    std::unique_lock lock(mutex_);
    all_.push_back(request);
    if (!answer_) {
        open_.push_back({std::move(request), std::move(reply)});
        return changed_.notify_all();
    }
    const link::Reply answer = *answer_;
    changed_.notify_all();
    lock.unlock();
    reply(answer);
}

inline link::Request Script::take(const std::string& method, const std::string& path, link::Reply answer) {
    std::unique_lock lock(mutex_);
    Sent sent;
    changed_.wait(lock, [&] {
        for (auto it = open_.begin(); it != open_.end(); ++it) {
            if (it->request.method != method || !it->request.path.starts_with(path)) continue;
            sent = std::move(*it);
            open_.erase(it);
            return true;
        }
        return false;
    });
    lock.unlock();
    sent.reply(std::move(answer));
    return sent.request;
}

inline std::optional<size_t> Script::find(const std::function<bool(const link::Request&)>& wanted) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(all_.begin(), all_.end(), wanted);
    if (found == all_.end()) return std::nullopt;
    return static_cast<size_t>(found - all_.begin());
}

inline void Script::answer_all(const link::Reply& answer) {
    std::unique_lock lock(mutex_);
    answer_ = answer;
    const auto open = std::exchange(open_, {});
    lock.unlock();
    for (const auto& sent : open) sent.reply(answer);
}

inline size_t Script::requests() {
    const std::lock_guard lock(mutex_);
    return all_.size();
}

// Turns a driver, as its thread would, over the time that it asks for, until that is the case. False: it never was.
template <class Done>
bool turn_until(Driver& driver, base::ManualClock& clock, Done done) {
    constexpr int kMostTurns = 10'000;
    for (int i = 0; i < kMostTurns; ++i) {
        driver.turn(moment(clock));
        if (done()) return true;
        if (driver.next() > clock.now()) clock.advance(driver.next() - clock.now());
    }
    return false;
}

}  // namespace berth::run
