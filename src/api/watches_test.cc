// What a watch sees, and when it ends.
#include <gtest/gtest.h>

#include "api/test_front.h"

namespace berth::api {
namespace {

TEST(Watches, AWatchTellsWhatHappensAfterAVersion) {
    TestFront t;
    const auto list = t.ask("GET", kMaps);
    auto watch = t.send("GET", kMaps + "?watch=True&resourceVersion=" + list.text({"metadata", "resourceVersion"}));
    ASSERT_NE(watch->source, nullptr);
    t.ask("POST", kMaps, map_body("m", "1"));
    t.ask("PUT", kMaps + "/m", map_body("m", "2"));
    t.ask("DELETE", kMaps + "/m");
    std::string types;
    for (const auto& event : TestFront::events(*watch)) types += std::string(base::find_string(event, {"type"})) + " ";
    EXPECT_EQ(types, "ADDED MODIFIED DELETED ");
}

TEST(Watches, ASelectiveWatchSeesObjectsComeAndGo) {
    TestFront t;
    auto watch = t.send("GET", kPods + "?watch=1&labelSelector=app%3Da");
    t.ask("POST", kPods, pod_body("a"));
    t.ask("PATCH", kPods + "/a", R"({"metadata":{"labels":{"app":"z"}}})", kMerge);
    t.ask("PATCH", kPods + "/a", R"({"metadata":{"labels":{"app":"a"}}})", kMerge);
    const auto events = TestFront::events(*watch);
    ASSERT_EQ(events.size(), 3U);
    EXPECT_EQ(base::find_string(events[1], {"type"}), "DELETED");
    EXPECT_EQ(base::find_string(events[1], {"object", "metadata", "labels", "app"}), "a");
    EXPECT_EQ(base::find_string(events[2], {"type"}), "ADDED");
}

TEST(Watches, AWatchListEndsItsBeginningWithABookmark) {
    TestFront t;
    t.ask("POST", kMaps, map_body("m", "1"));
    auto watch = t.send(
        "GET", kMaps + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
    const auto events = TestFront::events(*watch);
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(base::find_string(events[1], {"type"}), "BOOKMARK");
    EXPECT_EQ(base::find_string(events[1], {"object", "metadata", "annotations", "k8s.io/initial-events-end"}), "true");
    EXPECT_EQ(t.ask("GET", kMaps + "?watch=1&sendInitialEvents=true").code, 422);
}

TEST(Watches, AWatchEndsWithItsCredentialAndWhoeverTakesBookmarksGoesOnFromThere) {
    TestFront t;
    bool welcome = true;
    t.context.still_welcome = [&](const Identity&) { return welcome; };
    auto person = t.send("GET", kMaps + "?watch=1");
    auto informer = t.send("GET", kMaps + "?watch=1&allowWatchBookmarks=true");
    for (auto* watch : {person.get(), informer.get()}) EXPECT_TRUE(TestFront::events(*watch).empty());
    const auto created = t.ask("POST", kMaps, map_body("m", "1"));
    welcome = false;
    t.clock.advance(std::chrono::seconds(2));
    std::string piece;
    EXPECT_EQ(person->source->pull(piece), Source::State::Ended);
    EXPECT_NE(piece.find("\"type\":\"ERROR\""), std::string::npos) << piece;
    EXPECT_NE(piece.find("Unauthorized"), std::string::npos) << piece;
    EXPECT_EQ(piece.find("ADDED"), std::string::npos) << "nothing more is told to it";
    piece.clear();
    EXPECT_EQ(informer->source->pull(piece), Source::State::Ended);
    EXPECT_NE(piece.find("\"type\":\"BOOKMARK\""), std::string::npos) << piece;
    EXPECT_EQ(piece.find("ERROR"), std::string::npos) << piece;
    // What it was not told comes after the bookmark, not before.
    const auto mark = base::parse_json(piece.substr(0, piece.find('\n')));
    ASSERT_TRUE(mark);
    EXPECT_LT(std::stoull(std::string(base::find_string(*mark, {"object", "metadata", "resourceVersion"}))),
              std::stoull(created.text({"metadata", "resourceVersion"})));
}

TEST(Watches, ATableHasItsColumnsInTheFirstEventOnly) {
    TestFront t;
    auto watch = t.send("GET", kMaps + "?watch=1", "", kTable);
    t.ask("POST", kMaps, map_body("a", "1"));
    t.ask("POST", kMaps, map_body("b", "1"));
    const auto events = TestFront::events(*watch);
    ASSERT_EQ(events.size(), 2U);
    EXPECT_TRUE(events[0].at("object").at("columnDefinitions").is_array());
    EXPECT_TRUE(events[1].at("object").at("columnDefinitions").is_null());
}

TEST(Watches, OneIdentityHasAThousandWatches) {
    TestFront t;
    t.peer = {"someone", {std::string(kSchedulers)}};
    std::vector<std::shared_ptr<FakeExchange>> open;
    for (int i = 0; i < kMaxWatchesPerUser; ++i) {
        open.push_back(t.send("GET", kPods + "?watch=1"));
        ASSERT_TRUE(open.back()->source);
    }
    const auto refused = t.ask("GET", kPods + "?watch=1");
    EXPECT_EQ(refused.code, 429);
    EXPECT_EQ(refused.text({"message"}), "someone has 1000 watches open, no more are allowed");
    open.pop_back();
    EXPECT_TRUE(t.send("GET", kPods + "?watch=1")->source);
}

}  // namespace
}  // namespace berth::api
