#include "link/leadership.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>

#include "base/json.h"

namespace berth::link {
namespace {

using namespace std::chrono_literals;

// One Lease behind as many links as are asked for; each can be cut.
struct Shelf {
    std::mutex mutex;
    std::condition_variable changed;
    std::string lease;  // empty: there is none
    std::string holder;
    int version = 0;

    Reply answer(const Request& request) {
        const std::lock_guard lock(mutex);
        if (request.method == "GET") return lease.empty() ? Reply{404, "", 0} : Reply{200, lease, 0};
        Json object = base::parse_json(request.body).value();
        const auto given = base::find_string(object, {"metadata", "resourceVersion"});
        if (request.method == "POST" ? !lease.empty() : given != std::to_string(version)) return {409, "", 0};
        base::object_at(object, {"metadata"})["resourceVersion"] = std::to_string(++version);
        holder = base::find_string(object, {"spec", "holderIdentity"});
        lease = base::to_text(object);
        changed.notify_all();
        return {200, lease, 0};
    }
    bool held_by(std::string_view who) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, 20s, [&] { return holder == who; });
    }
};

class ShelfLink final : public ApiClient {
public:
    ShelfLink(Shelf& shelf, const std::atomic<bool>& cut) : shelf_(shelf), cut_(cut) {}
    ~ShelfLink() override {
        for (auto& thread : threads_) thread.join();
    }
    void send(Request request, ReplyTo reply) override {
        threads_.emplace_back([this, request = std::move(request), reply = std::move(reply)] {
            if (cut_) return reply(Error{Reason::Timeout, "cut"});
            reply(shelf_.answer(request));
        });
    }
    std::unique_ptr<Feed> follow(const Resource&, std::function<void()>) override { return nullptr; }

private:
    Shelf& shelf_;
    const std::atomic<bool>& cut_;
    std::vector<std::thread> threads_;
};

struct Candidate {
    Candidate(Shelf& shelf, std::string name)
        : leadership(std::make_unique<ShelfLink>(shelf, cut),
                     LeadershipOptions{"kube-system", "l", std::move(name), {1s, 500ms, 50ms}}, base::system_clock(),
                     [this] { lost.set_value(); }) {}
    std::atomic<bool> cut = false;
    std::promise<void> lost;
    Leadership leadership;
};

TEST(Leadership, IsGivenBackAtTheEnd) {
    Shelf shelf;
    auto a = std::make_unique<Candidate>(shelf, "a");
    ASSERT_TRUE(shelf.held_by("a"));
    Candidate b(shelf, "b");
    a.reset();
    ASSERT_TRUE(shelf.held_by("b"));
}

TEST(Leadership, WhoIsCutOffStopsAndTheNextTakesOver) {
    Shelf shelf;
    Candidate a(shelf, "a");
    ASSERT_TRUE(shelf.held_by("a"));
    Candidate b(shelf, "b");
    a.cut = true;
    ASSERT_EQ(a.lost.get_future().wait_for(20s), std::future_status::ready);
    EXPECT_FALSE(a.leadership.leads());
    EXPECT_FALSE(a.leadership.fence()->open(base::system_clock().now()));
    EXPECT_TRUE(shelf.held_by("b"));
}

}  // namespace
}  // namespace berth::link
