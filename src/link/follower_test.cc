#include "link/follower.h"

#include <fmt/format.h>

#include "link/scripted_wire.h"

namespace berth::link {
namespace {

std::string object(const std::string& name, const std::string& uid, int revision) {
    return fmt::format(
        R"({{"metadata":{{"name":"{}","namespace":"a","uid":"{}","resourceVersion":"{}"}},"spec":{{}}}})", name, uid,
        revision);
}

std::string list(int revision, const std::vector<std::string>& items, const std::string& more = "") {
    return fmt::format(R"({{"kind":"List","metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
                       revision, more, fmt::join(items, ","));
}

std::string event(const std::string& type, const std::string& text) {
    return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, text);
}

constexpr auto kLong = std::chrono::minutes(2);

// A follower of pods between a scripted wire and a mailbox that the test polls.
struct Stage {
    explicit Stage(const Resource& resource = {"", "v1", "pods"})
        : follower(std::make_shared<Follower>(wire, resource, mailbox, /*seed=*/7)) {}
    base::ManualClock clock;
    ScriptedWire wire{clock};
    int notified = 0;
    std::shared_ptr<Mailbox> mailbox =
        std::make_shared<Mailbox>([this] { ++notified; }, [this] { follower->resume(); });
    std::shared_ptr<Follower> follower;

    // "+name/uid@revision", "-name/uid", "synced@revision".
    std::vector<std::string> told() {
        std::vector<std::string> out;
        for (const auto& event : mailbox->poll(1'000'000)) {
            if (event.type == FeedEvent::Type::Synced) {
                out.push_back(fmt::format("synced@{}", event.revision));
                continue;
            }
            auto line = read_watch_line(fmt::format(R"({{"type":"ADDED","object":{}}})", *event.text)).value();
            const bool gone = event.type == FeedEvent::Type::Gone;
            const auto name = line.object.name.substr(2);
            out.push_back(gone ? fmt::format("-{}/{}", name, line.object.uid)
                               : fmt::format("+{}/{}@{}", name, line.object.uid, event.revision));
        }
        return out;
    }
    // Listed x/1@5, then watching from 10.
    void begin() {
        follower->list();
        wire.answer(200, list(10, {object("x", "1", 5)}));
        wire.head(200);
        told();
    }
};

using Lines = std::vector<std::string>;

TEST(Follower, ListsInPagesThenWatchesFromWhereTheListStood) {
    Stage stage;
    stage.follower->list();
    EXPECT_EQ(stage.wire.asked(), "GET /api/v1/pods?limit=500");
    stage.wire.answer(200, list(10, {object("x", "1", 5)}, "to/ken"));
    EXPECT_EQ(stage.wire.asked(), "GET /api/v1/pods?limit=500&continue=to%2Fken");
    EXPECT_EQ(stage.told(), Lines({"+x/1@5"}));
    stage.wire.answer(200, list(10, {object("y", "2", 6)}));
    EXPECT_EQ(stage.told(), Lines({"+y/2@6", "synced@10"}));
    EXPECT_TRUE(stage.wire.watched().starts_with(
        "/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=10&timeoutSeconds="))
        << stage.wire.watched();
}

TEST(Follower, TellsEachChangeOnce) {
    Stage stage;
    stage.begin();
    stage.wire.data(event("MODIFIED", object("x", "1", 11)) + event("MODIFIED", object("x", "1", 11)) +
                    event("MODIFIED", object("x", "1", 9)) + event("ADDED", object("y", "2", 12)));
    EXPECT_EQ(stage.told(), Lines({"+x/1@11", "+y/2@12"}));
    stage.wire.data(event("DELETED", object("x", "1", 13)) + event("DELETED", object("x", "1", 13)));
    EXPECT_EQ(stage.told(), Lines({"-x/1"}));
}

TEST(Follower, AnUnreadableObjectHarmsItselfOnly) {
    Stage stage;
    stage.follower->list();
    const std::string deep = R"({"metadata":{"name":"d","uid":"3","resourceVersion":"7"},"spec":)" +
                             std::string(500, '[') + std::string(500, ']') + "}";
    stage.wire.answer(200, list(10, {R"({"metadata":[}})", deep, object("x", "1", 5), R"({"spec":{}})"}));
    stage.wire.head(200);
    const auto events = stage.mailbox->poll(10);
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(*events[0].text, deep);
    EXPECT_EQ(*events[1].text, object("x", "1", 5));
    stage.wire.data("{\"type\":\"ADDED\",\"object\":{\"metadata\":7x}}\n" + event("ADDED", object("y", "2", 12)));
    EXPECT_EQ(stage.told(), Lines({"+y/2@12"}));
    EXPECT_EQ(stage.wire.opened, 1);
    // What is missing beside an unreadable one may be that one.
    stage.wire.head(410);
    stage.wire.loop().run_for(kLong);
    stage.wire.answer(200, list(30, {R"({"metadata":[}})", object("y", "2", 12)}));
    EXPECT_EQ(stage.told(), Lines({"synced@30"}));
}

TEST(Follower, AnotherUidUnderTheSameNameIsAnotherObject) {
    Stage stage;
    stage.begin();
    stage.wire.data(event("ADDED", object("x", "9", 11)));
    EXPECT_EQ(stage.told(), Lines({"-x/1", "+x/9@11"}));
    stage.wire.data(event("DELETED", object("x", "1", 12)));  // the first one's, late
    EXPECT_EQ(stage.told(), Lines({}));
}

TEST(Follower, ALineThatIsCutOffIsToldByTheNextWatch) {
    Stage stage;
    stage.begin();
    const std::string line = event("ADDED", object("y", "2", 11));
    stage.wire.data(event("MODIFIED", object("x", "1", 11)) + line.substr(0, 20));
    stage.wire.end("cut");
    stage.wire.loop().run_for(kLong);
    EXPECT_NE(stage.wire.watched().find("resourceVersion=11&"), std::string::npos) << stage.wire.watched();
    stage.wire.head(200);
    for (const char c : line) stage.wire.data(std::string(1, c));
    EXPECT_EQ(stage.told(), Lines({"+x/1@11", "+y/2@11"}));
}

TEST(Follower, ABookmarkMovesTheWatchOn) {
    Stage stage;
    stage.begin();
    stage.wire.data(event("BOOKMARK", R"({"kind":"Pod","metadata":{"resourceVersion":"500"}})"));
    stage.clock.advance(std::chrono::minutes(6));
    stage.wire.end("");
    EXPECT_NE(stage.wire.watched().find("resourceVersion=500&"), std::string::npos) << stage.wire.watched();
    EXPECT_EQ(stage.told(), Lines({}));
}

TEST(Follower, AfterGoneItListsAgainAndTellsWhatVanished) {
    for (const bool in_stream : {false, true}) {
        Stage stage;
        stage.begin();
        stage.wire.data(event("ADDED", object("y", "2", 11)));
        stage.told();
        if (in_stream) {
            stage.wire.data(event("ERROR", R"({"kind":"Status","code":410,"message":"too old"})"));
        } else {
            stage.wire.end("cut");
            stage.wire.loop().run_for(kLong);
            stage.wire.head(410);
        }
        stage.wire.loop().run_for(kLong);
        ASSERT_EQ(stage.wire.asked(), "GET /api/v1/pods?limit=500");
        stage.wire.answer(200, list(30, {object("y", "2", 11), object("z", "3", 20)}));
        EXPECT_EQ(stage.told(), Lines({"+z/3@20", "-x/1", "synced@30"})) << in_stream;
    }
}

TEST(Follower, AListThatIsOvertakenBeginsAnewAndAtLastComesWhole) {
    Stage stage;
    stage.follower->list();
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(stage.wire.asked(), "GET /api/v1/pods?limit=500");
        stage.wire.answer(200, list(10, {object("x", "1", 5)}, "more"));
        stage.wire.answer(410, "{}");
        stage.wire.loop().run_for(kLong);
    }
    ASSERT_EQ(stage.wire.asked(), "GET /api/v1/pods?");
    stage.wire.answer(200, list(20, {object("y", "2", 15)}));
    EXPECT_EQ(stage.told(), Lines({"+x/1@5", "+y/2@15", "-x/1", "synced@20"}));
}

TEST(Follower, AResourceThatIsNotServedIsEmptyUntilItIs) {
    Stage stage;
    stage.follower->list();
    stage.wire.answer(404, "404 page not found");
    EXPECT_EQ(stage.told(), Lines({"synced@0"}));
    stage.wire.loop().run_for(kLong);
    stage.wire.answer(404, "404 page not found");
    EXPECT_EQ(stage.told(), Lines({}));
    stage.wire.loop().run_for(kLong);
    stage.wire.answer(200, list(10, {object("x", "1", 5)}));
    EXPECT_EQ(stage.told(), Lines({"+x/1@5", "synced@10"}));
}

TEST(Follower, AServerThatWasSetBackIsToldFromTheStart) {
    Stage stage;
    stage.begin();
    stage.wire.head(410);
    stage.wire.loop().run_for(kLong);
    stage.wire.answer(200, list(3, {object("x", "1", 2)}));
    EXPECT_EQ(stage.told(), Lines({"-x/1", "+x/1@2", "synced@3"}));
}

TEST(Follower, AsksForWhatItWantsOnly) {
    Stage stage({"", "v1", "pods", "status.phase!=Failed"});
    stage.follower->list();
    EXPECT_EQ(stage.wire.asked(), "GET /api/v1/pods?fieldSelector=status.phase%21%3DFailed&limit=500");
    stage.wire.answer(200, list(10, {}));
    EXPECT_TRUE(stage.wire.watched().starts_with("/api/v1/pods?fieldSelector=status.phase%21%3DFailed&watch=true&"))
        << stage.wire.watched();
}

TEST(Follower, ComesBackWhenABusyServerSays) {
    Stage stage;
    stage.follower->list();
    stage.wire.answer(WireAnswer{429, "", std::chrono::seconds(7)});
    stage.wire.loop().run_for(std::chrono::milliseconds(6999));
    EXPECT_EQ(stage.wire.unanswered(), 0u);
    stage.wire.loop().run_for(std::chrono::seconds(4));
    EXPECT_EQ(stage.wire.unanswered(), 1u);
}

TEST(Follower, WaitsLongerAndLongerButNotForEver) {
    Stage stage;
    stage.follower->list();
    base::Duration longest{};
    for (int i = 0; i < 30; ++i) {
        stage.wire.fail(false);
        const auto before = stage.clock.now();
        while (stage.wire.unanswered() == 0) ASSERT_TRUE(stage.wire.loop().step());
        longest = std::max(longest, stage.clock.now() - before);
        EXPECT_GE(stage.clock.now() - before, std::chrono::milliseconds(100));
    }
    EXPECT_GT(longest, std::chrono::seconds(4));
    EXPECT_LE(longest, std::chrono::seconds(10));
}

TEST(Follower, StopsReadingWhileNobodyPolls) {
    Stage stage;
    stage.begin();
    bool more = true;
    int sent = 0;
    for (; more && sent < 200'000; ++sent)
        more = stage.wire.data(event("ADDED", object(std::to_string(sent), "u", 100 + sent)));
    EXPECT_LT(sent, 60'000);
    EXPECT_EQ(stage.wire.resumed, 0);
    EXPECT_EQ(stage.told().size(), static_cast<size_t>(sent));
    EXPECT_EQ(stage.wire.resumed, 1);
}

TEST(Follower, NotifiesOncePerEmptyPoll) {
    Stage stage;
    stage.begin();  // polls once, with something in it
    stage.told();   // empty
    stage.notified = 0;
    stage.wire.data(event("ADDED", object("y", "2", 11)) + event("ADDED", object("z", "3", 12)));
    EXPECT_EQ(stage.notified, 1);
    stage.told();
    stage.wire.data(event("ADDED", object("w", "4", 13)));
    EXPECT_EQ(stage.notified, 1);
    EXPECT_EQ(stage.told().size(), 1u);
}

}  // namespace
}  // namespace berth::link
