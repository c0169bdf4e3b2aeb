#include "link/recorder.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace berth::link {
namespace {

class Listener final : public ApiClient {
public:
    void send(Request request, ReplyTo) override { requests.push_back(std::move(request)); }
    std::unique_ptr<Feed> follow(const Resource&, std::function<void()>) override { return nullptr; }

    std::vector<Request> requests;
};

const Subject kPod{"v1", "Pod", "shop", "web", "u-1"};
constexpr base::Time kNow{1'700'000'000'000'000'000};

TEST(Recorder, WritesAnEvent) {
    Listener server;
    Recorder recorder(server, "berth-scheduler");
    recorder.warning(kPod, "FailedScheduling", "a \"quoted\"\nword \\ and\x01more", kNow);
    ASSERT_EQ(server.requests.size(), 1U);
    const Request& request = server.requests[0];
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/api/v1/namespaces/shop/events");
    const auto event = base::parse_json(request.body);
    ASSERT_TRUE(event) << event.error().message;
    EXPECT_EQ(base::find_string(*event, {"kind"}), "Event");
    EXPECT_EQ(base::find_string(*event, {"type"}), "Warning");
    EXPECT_EQ(base::find_string(*event, {"reason"}), "FailedScheduling");
    EXPECT_EQ(base::find_string(*event, {"message"}), "a \"quoted\"\nword \\ and\x01more");
    EXPECT_EQ(base::find_string(*event, {"involvedObject", "name"}), "web");
    EXPECT_EQ(base::find_string(*event, {"involvedObject", "uid"}), "u-1");
    EXPECT_EQ(base::find_string(*event, {"source", "component"}), "berth-scheduler");
    EXPECT_EQ(base::find_string(*event, {"firstTimestamp"}), "2023-11-14T22:13:20Z");
}

TEST(Recorder, TheSameAgainIsCounted) {
    Listener server;
    Recorder recorder(server, "berth-scheduler");
    recorder.normal(kPod, "Scheduled", "there", kNow);
    recorder.normal(kPod, "Scheduled", "there", kNow);
    ASSERT_EQ(server.requests.size(), 2U);
    EXPECT_EQ(server.requests[1].method, "PATCH");
    EXPECT_EQ(base::parse_json(server.requests[1].body)->at("count"), 2);
}

TEST(Recorder, ASubjectHasABudget) {
    Listener server;
    Recorder recorder(server, "berth-scheduler");
    for (int i = 0; i < 40; ++i) recorder.normal(kPod, "Scheduled", std::to_string(i), kNow);
    EXPECT_EQ(server.requests.size(), 25U);
}

}  // namespace
}  // namespace berth::link
