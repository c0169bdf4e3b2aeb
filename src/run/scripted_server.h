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

#include "link/server.h"

namespace berth::run {

// A server as a test wants it: feeds tell the objects that are there, requests wait until the test answers. The test
// keeps the script; the component under test gets the server that plays it. Any thread.
class Script : public std::enable_shared_from_this<Script> {
public:
    // Before the component starts.
    void has(const std::string& plural, std::string object) { objects_[plural].push_back(std::move(object)); }
    std::unique_ptr<link::Server> server();

    // Waits for the first request to this method and path's beginning that no earlier call has taken.
    link::Request take(const std::string& method, const std::string& path, link::Reply answer);
    // Waits until so many requests have come in all; nobody has answered them.
    void wait_for_requests(size_t count);
    // Waits for a request, and says the how manieth it was.
    size_t wait_for(const std::function<bool(const link::Request&)>& wanted);
    // Waits until the feeds have been polled so often again.
    void wait_for_polls(size_t more);
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
    void polled();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, std::vector<std::string>> objects_;
    std::vector<Sent> open_;
    std::vector<link::Request> all_;
    std::optional<link::Reply> answer_;
    size_t polls_ = 0;
};

class Script::PlayedFeed final : public link::Feed {
public:
    PlayedFeed(std::shared_ptr<Script> script, std::vector<link::FeedEvent> events)
        : script_(std::move(script)), events_(std::move(events)) {}
    std::vector<link::FeedEvent> poll(size_t) override {
        script_->polled();
        return std::exchange(events_, {});
    }

private:
    std::shared_ptr<Script> script_;
    std::vector<link::FeedEvent> events_;
};

class Script::Player final : public link::Server {
public:
    explicit Player(std::shared_ptr<Script> script) : script_(std::move(script)) {}
    void send(link::Request request, link::ReplyTo reply) override {
        script_->send(std::move(request), std::move(reply));
    }
    std::unique_ptr<link::Feed> follow(const link::Resource& resource, std::function<void()>) override {
        std::vector<link::FeedEvent> events;
        for (const auto& object : script_->objects_[resource.plural]) {
            events.push_back({link::FeedEvent::Type::Put, std::make_shared<const std::string>(object), 1});
        }
        events.push_back({link::FeedEvent::Type::Synced, nullptr, 1});
        return std::make_unique<PlayedFeed>(script_, std::move(events));
    }

private:
    std::shared_ptr<Script> script_;
};

inline std::unique_ptr<link::Server> Script::server() {
    return std::make_unique<Player>(shared_from_this());
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

inline void Script::polled() {
    const std::lock_guard lock(mutex_);
    ++polls_;
    changed_.notify_all();
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

inline void Script::wait_for_requests(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return all_.size() >= count; });
}

inline size_t Script::wait_for(const std::function<bool(const link::Request&)>& wanted) {
    std::unique_lock lock(mutex_);
    auto found = all_.end();
    changed_.wait(lock, [&] { return (found = std::find_if(all_.begin(), all_.end(), wanted)) != all_.end(); });
    return static_cast<size_t>(found - all_.begin());
}

inline void Script::wait_for_polls(size_t more) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&, until = polls_ + more] { return polls_ >= until; });
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

}  // namespace berth::run
