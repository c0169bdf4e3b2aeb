#include "link/remote.h"

#include "link/scripted_wire.h"

namespace berth::link {
namespace {

struct Stage {
    explicit Stage(RemoteOptions options = {}) {
        auto made = std::make_unique<ScriptedWire>(clock);
        wire = made.get();
        server = std::make_unique<RemoteServer>(std::move(made), options);
    }
    void send(const std::string& method, const std::string& path, Urgency urgency = Urgency::Normal) {
        server->send({.method = method, .path = path, .body = "{}", .urgency = urgency},
                     [this](Result<Reply> reply) { replies.push_back(std::move(reply)); });
        wire->settle();
    }
    base::ManualClock clock;
    ScriptedWire* wire = nullptr;
    std::vector<Result<Reply>> replies;
    std::unique_ptr<RemoteServer> server;
};

TEST(Remote, AnyCodeIsAnAnswer) {
    Stage stage;
    stage.send("POST", "/a");
    stage.send("POST", "/b");
    stage.wire->answer(201, R"({"metadata":{"resourceVersion":"42"}})");
    stage.wire->answer(409, R"({"kind":"Status"})");
    ASSERT_EQ(stage.replies.size(), 2u);
    EXPECT_EQ(stage.replies[0]->revision, 42u);
    EXPECT_EQ(stage.replies[1]->code, 409);
}

TEST(Remote, AWriteThatMayHaveArrivedIsNotSentAgain) {
    Stage stage;
    stage.send("POST", "/a");
    stage.wire->fail(/*sent=*/true);
    ASSERT_EQ(stage.replies.size(), 1u);
    EXPECT_FALSE(stage.replies[0].ok());
}

TEST(Remote, WhatDidNotArriveAndReadsAreSentAgain) {
    for (const bool sent : {false, true}) {
        Stage stage;
        stage.send(sent ? "GET" : "POST", "/a");
        stage.wire->fail(sent);
        EXPECT_TRUE(stage.replies.empty());
        stage.wire->loop().run_for(std::chrono::seconds(5));
        stage.wire->answer(200, "{}");
        ASSERT_EQ(stage.replies.size(), 1u);
        EXPECT_TRUE(stage.replies[0].ok());
    }
}

TEST(Remote, PatienceEnds) {
    Stage stage;
    stage.send("POST", "/a");
    int tries = 0;
    for (; stage.replies.empty() && tries < 10'000; ++tries) {
        while (stage.wire->unanswered() == 0) ASSERT_TRUE(stage.wire->loop().step());
        stage.wire->fail(false);
    }
    EXPECT_FALSE(stage.replies[0].ok());
    EXPECT_GE(stage.clock.now().nanos, 30'000'000'000);
    EXPECT_GT(tries, 5);
}

TEST(Remote, ComesBackWhenABusyServerSays) {
    Stage stage;
    stage.send("POST", "/a");
    stage.wire->answer(WireAnswer{429, "", std::chrono::seconds(3)});
    stage.wire->loop().run_for(std::chrono::milliseconds(2999));
    EXPECT_EQ(stage.wire->unanswered(), 0u);
    stage.wire->loop().run_for(std::chrono::seconds(1));
    stage.wire->answer(WireAnswer{503, "", std::chrono::seconds(1)});
    stage.wire->loop().run_for(std::chrono::seconds(2));
    stage.wire->answer(201, "{}");
    ASSERT_EQ(stage.replies.size(), 1u);
    EXPECT_EQ(stage.replies[0]->code, 201);
}

TEST(Remote, ARefusalWithoutATimeIsAnAnswerAndSoIsTheSixth) {
    Stage stage;
    stage.send("POST", "/eviction");
    stage.wire->answer(429, "");
    ASSERT_EQ(stage.replies.size(), 1u);
    stage.send("POST", "/a");
    for (int i = 0; i < 6; ++i) {
        EXPECT_EQ(stage.replies.size(), 1u);
        stage.wire->loop().run_for(std::chrono::seconds(20));
        stage.wire->answer(WireAnswer{429, "", std::chrono::seconds(1)});
    }
    ASSERT_EQ(stage.replies.size(), 2u);
    EXPECT_EQ(stage.replies[1]->code, 429);
}

TEST(Remote, NewCredentialsAreTriedOnce) {
    Stage stage;
    stage.send("GET", "/a");
    stage.wire->answer(401, "");
    EXPECT_EQ(stage.wire->refreshed, 1);
    stage.wire->answer(401, "");
    ASSERT_EQ(stage.replies.size(), 1u);
    EXPECT_EQ(stage.replies[0]->code, 401);
}

TEST(Remote, AFewAtOnceEventsLast) {
    Stage stage({.in_flight = 4});
    for (int i = 0; i < 10; ++i) stage.send("POST", "/event", Urgency::Low);
    EXPECT_EQ(stage.wire->unanswered(), 1u);
    for (int i = 0; i < 10; ++i) stage.send("POST", "/bind");
    EXPECT_EQ(stage.wire->unanswered(), 4u);
    size_t answered = 0;
    for (; stage.wire->unanswered() > 0; ++answered) stage.wire->answer(200, "{}");
    EXPECT_EQ(answered, 20u);
    EXPECT_EQ(stage.replies.size(), 20u);
}

TEST(Remote, CountsWhatWasAnswered) {
    base::Metrics metrics;
    Stage stage({.metrics = &metrics});
    stage.send("POST", "/a");
    stage.wire->fail(false);
    stage.wire->loop().run_for(std::chrono::seconds(5));
    stage.wire->answer(409, "{}");
    const std::string text = metrics.text();
    EXPECT_NE(text.find(R"(rest_client_requests_total{code="<error>",method="POST"} 1)"), std::string::npos) << text;
    EXPECT_NE(text.find(R"(rest_client_requests_total{code="409",method="POST"} 1)"), std::string::npos) << text;
    EXPECT_NE(text.find(R"(rest_client_request_duration_seconds_count{verb="POST"} 2)"), std::string::npos) << text;
}

TEST(Remote, BehindTheFenceNothingIsWritten) {
    const auto fence = std::make_shared<Fence>();
    Stage stage({.in_flight = 1, .fence = fence});
    fence->move(base::Instant{} + std::chrono::seconds(10));
    for (const auto* path : {"/a", "/b", "/c"}) stage.send("POST", path);
    stage.wire->loop().run_for(std::chrono::seconds(9));
    stage.wire->answer(200, "{}");
    stage.wire->loop().run_for(std::chrono::seconds(2));
    stage.wire->answer(200, "{}");  // sent before
    EXPECT_EQ(stage.wire->unanswered(), 0u);
    ASSERT_EQ(stage.replies.size(), 3u);
    EXPECT_FALSE(stage.replies[2].ok());
    stage.send("GET", "/d");
    EXPECT_EQ(stage.wire->unanswered(), 1u);
}

TEST(Remote, WhatIsLeftAtTheEndIsAnsweredToo) {
    Stage stage({.in_flight = 1});
    for (int i = 0; i < 3; ++i) stage.send("POST", "/a");
    stage.server->send({"POST", "/b"}, [&](Result<Reply> reply) { stage.replies.push_back(std::move(reply)); });
    stage.server.reset();
    ASSERT_EQ(stage.replies.size(), 4u);
    for (const auto& reply : stage.replies) EXPECT_FALSE(reply.ok());
}

}  // namespace
}  // namespace berth::link
