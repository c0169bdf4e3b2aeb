#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "link/api_client.h"

namespace berth::link {

// Called on any thread when there is something to poll or to take.
using Wake = std::function<void()>;

// All that one component has with a server: the feeds it polls, the requests it sent and their answers. A Tag says what
// a request was for. The owner waits until nothing is under way before it lets go. One thread calls everything but
// synced().
template <class Tag>
class Session {
public:
    Session(std::unique_ptr<ApiClient> server, Wake wake) : server_(std::move(server)), wake_(std::move(wake)) {}

    ApiClient& server() { return *server_; }

    void follow(std::string name, const Resource& resource) {
        followed_.push_back({std::move(name), server_->follow(resource, wake_)});
    }
    // Calls take(name, event) for what came, put or gone. False when nothing did.
    template <class Take>
    bool poll(Take take) {
        bool any = false;
        for (auto& followed : followed_) {
            for (const auto& event : followed.feed->poll(kEventsPerPoll)) {
                any = true;
                followed.seen = std::max(followed.seen, event.revision);
                if (event.type == FeedEvent::Type::Synced) {
                    followed.synced = true;
                } else {
                    take(followed.name, event);
                }
            }
        }
        if (any) {
            synced_ = std::all_of(followed_.begin(), followed_.end(), [](const auto& each) { return each.synced; });
        }
        return any;
    }
    // poll() until nothing comes: only then a feed rings again. For those who turn once for each ring.
    template <class Take>
    void hear(Take take) {
        while (poll(take)) {
        }
    }
    // Everything that was there at the start has come.
    bool synced() const { return synced_; }
    // The newest revision that a feed told. What is older than that has been told, too.
    uint64_t seen(std::string_view name) const {
        const auto found =
            std::find_if(followed_.begin(), followed_.end(), [&](const auto& each) { return each.name == name; });
        return found == followed_.end() ? 0 : found->seen;
    }

    void send(Request request, Tag tag) { server_->send(std::move(request), expect(std::move(tag))); }
    // For a request that goes another way: what this gives takes its answer, once, on any thread.
    ReplyTo expect(Tag tag) {
        ++under_way_;
        return [this, tag = std::move(tag)](Result<Reply> reply) mutable {
            // Under the lock: whoever takes the last answer may destroy us.
            const std::lock_guard lock(mutex_);
            answers_.push_back({std::move(tag), std::move(reply)});
            wake_();
        };
    }
    // Calls take(tag, reply) for each answer. False when there was none.
    template <class Take>
    bool answers(Take take) {
        std::vector<Answer> came;
        {
            const std::lock_guard lock(mutex_);
            came.swap(answers_);
        }
        under_way_ -= came.size();
        for (auto& [tag, reply] : came) take(tag, reply);
        return !came.empty();
    }
    size_t under_way() const { return under_way_; }

private:
    static constexpr size_t kEventsPerPoll = 2048;
    struct Followed {
        std::string name;
        std::unique_ptr<Feed> feed;
        bool synced = false;
        uint64_t seen = 0;
    };
    struct Answer {
        Tag tag;
        Result<Reply> reply;
    };

    std::unique_ptr<ApiClient> server_;
    Wake wake_;
    std::mutex mutex_;
    std::vector<Answer> answers_;
    std::vector<Followed> followed_;
    size_t under_way_ = 0;
    std::atomic<bool> synced_ = false;
};

}  // namespace berth::link
