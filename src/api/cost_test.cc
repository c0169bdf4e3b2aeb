#include <gtest/gtest.h>

#include <algorithm>

#include "api/test_front.h"
#include "base/test_cost.h"

// Cheap requests have cheap answers: what is counted is what an answer repeats and what a reader holds.
namespace berth::api {
namespace {

constexpr size_t kMostAnswered = 256u << 10;

JsonObject pod_of(const std::string& name) {
    return {{"metadata", {{"name", name}}}, {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}}}}}}};
}

TEST(Cost, AnAnswerNamesSomeOfManyFaults) {
    TestFront t;
    JsonObject labels;
    for (int i = 0; i < 60'000; ++i) labels["-bad-" + std::to_string(i)] = "-";
    JsonObject pod = pod_of("p");
    pod["metadata"].as_object()["labels"] = std::move(labels);
    const auto answer = t.ask("POST", kPods, base::to_text(pod));
    EXPECT_EQ(answer.code, 422);
    EXPECT_LT(answer.raw.body.size(), 64u << 10);
    const auto& causes = answer.json.at("details").at("causes").as_array();
    ASSERT_EQ(causes.size(), 101U);
    EXPECT_EQ(causes.back().at("message"), "too many errors, 119900 more are not listed");
}

TEST(Cost, FaultsThatNeedOthersToBeSeenAreNamedInPartToo) {
    TestFront t;
    JsonObject amounts;
    for (int i = 0; i < 60'000; ++i) amounts["x.io/r" + std::to_string(i)] = "-1";
    const auto nodes =
        t.ask("POST", "/api/v1/nodes",
              base::to_text(JsonObject{{"metadata", {{"name", "n"}}}, {"status", {{"capacity", amounts}}}}));
    EXPECT_EQ(nodes.code, 422);
    EXPECT_LT(nodes.raw.body.size(), 64u << 10);
    EXPECT_LE(nodes.json.at("details").at("causes").as_array().size(), 101U);
    for (auto& [name, amount] : amounts) amount = "1";
    const auto consumers =
        t.ask("POST", "/apis/kuabe-arbitrator.incubator.k8s.io/v1/consumers",
              base::to_text(JsonObject{{"metadata", {{"name", "c"}}}, {"spec", {{"reserved", amounts}}}}));
    EXPECT_EQ(consumers.code, 422) << consumers.raw.body.substr(0, 300);
    EXPECT_LT(consumers.raw.body.size(), 64u << 10);
}

TEST(Cost, AnAnswerRepeatsOnlyTheBeginningOfWhatIsLong) {
    TestFront t;
    const std::string big(1 << 20, 'X');
    t.ask("POST", kMaps, R"({"metadata":{"name":"m"}})");
    const auto check = [](const Answer& answer) {
        EXPECT_GE(answer.code, 400) << answer.code;
        EXPECT_LT(answer.code, 500);
        EXPECT_LT(answer.raw.body.size(), kMostAnswered) << answer.raw.body.substr(0, 200);
        EXPECT_EQ(answer.text({"kind"}), "Status");
    };
    check(t.ask("POST", kMaps, R"({"kind":")" + big + R"("})"));
    check(t.ask("POST", kMaps, R"({"metadata":{"name":")" + big + R"("}})"));
    check(t.ask("POST", kMaps, R"({"metadata":{"name":"n"},"data":{"/)" + big + R"(":"x"}})"));
    check(t.ask("POST", kMaps + "?fieldValidation=Strict", R"({"metadata":{"name":"n"},")" + big + R"(":1})"));
    check(t.ask("PATCH", kMaps + "/m", R"([{"op":"remove","path":"/)" + big + R"("}])", kJsonPatch));
    check(t.ask("PATCH", kMaps + "/m", R"([{"op":")" + big + R"(","path":"/a"}])", kJsonPatch));
    const std::string pods = R"({"spec":{"containers":[{"image":")" + big + R"("}]}})";
    t.ask("POST", kPods, base::to_text(pod_of("p")));
    check(t.ask("PATCH", kPods + "/p", pods, kStrategic));
    check(t.ask("POST", kPods,
                R"({"metadata":{"name":"q"},"spec":{"containers":[{"name":"c","image":"i",)"
                R"("resources":{"limits":{"cpu":")" +
                    big + R"("}}}]}})"));
}

TEST(Cost, WhatAnAnswerRepeatsEndsNoLineAndMovesNoCursor) {
    TestFront t;
    const auto answer =
        t.ask("POST", kPods, R"({"metadata":{"name":"a\nb\u001b[2J\u007f\u0000\t\u009b2J\u202egnp\u2028"}})");
    EXPECT_EQ(answer.code, 422);
    for (const auto& text : {answer.text({"message"}), base::to_text(answer.json.at("details").at("causes"))}) {
        EXPECT_TRUE(std::ranges::none_of(text, [](char c) { return c < ' ' || c == 0x7f; })) << text;
        EXPECT_NE(text.find("[2J"), std::string::npos) << text;
    }
    EXPECT_NE(answer.text({"message"}).find(R"("a\nb\u001b[2J\u007f\u0000\t\u009b2J\u202egnp\u2028")"),
              std::string::npos)
        << answer.text({"message"});
}

TEST(Cost, WarningsAreShortenedAsKubernetesDoes) {
    TestFront t;
    JsonObject map{{"metadata", {{"name", "m"}}}};
    for (int i = 0; i < 60'000; ++i) map["unknown" + std::to_string(i)] = 1;
    const auto answer = t.ask("POST", kMaps, base::to_text(map));
    EXPECT_EQ(answer.code, 201);
    size_t count = 0, bytes = 0;
    for (const auto& [name, value] : answer.raw.headers) {
        if (name != "Warning") continue;
        ++count;
        bytes += value.size();
    }
    EXPECT_GE(count, 1U);
    EXPECT_LE(count, 101U);
    EXPECT_LT(bytes, 8192U);
    const auto strict = t.ask("POST", kMaps + "?fieldValidation=Strict", base::to_text(map));
    EXPECT_EQ(strict.code, 400);
    EXPECT_LT(strict.raw.body.size(), 16u << 10);
    Response few, many;
    add_warnings({"a", std::string(300, 'b')}, few);
    ASSERT_EQ(few.headers.size(), 2U);
    EXPECT_EQ(few.headers[1].second, "299 - \"" + std::string(300, 'b') + "\"");
    add_warnings({std::string(4000, 'a'), std::string(300, 'b')}, many);
    ASSERT_EQ(many.headers.size(), 2U);
    EXPECT_EQ(many.headers[0].second, "299 - \"" + std::string(256, 'a') + "\"");
    EXPECT_EQ(many.headers[1].second, "299 - \"" + std::string(256, 'b') + "\"");
}

// Eight times the items; a quadratic way costs 64 times as much.
TEST(Cost, UpdatesGrowAsTheListsDo) {
    const auto cost = [](int n) {
        TestFront t;
        JsonObject pod = pod_of("p");
        JsonArray tolerations, mounts, volumes, finalizers;
        for (int i = 0; i < n; ++i) {
            const auto name = "n" + std::to_string(i);
            tolerations.push_back(JsonObject{{"key", name}, {"operator", "Exists"}});
            volumes.push_back(JsonObject{{"name", name}, {"emptyDir", JsonObject{}}});
            mounts.push_back(JsonObject{{"name", name}, {"mountPath", "/" + name}});
            finalizers.push_back(Json("example.com/" + name));
        }
        auto& spec = pod["spec"].as_object();
        spec["tolerations"] = tolerations;
        spec["volumes"] = volumes;
        spec["containers"].as_array()[0].as_object()["volumeMounts"] = mounts;
        pod["metadata"].as_object()["finalizers"] = finalizers;
        EXPECT_EQ(t.ask("POST", kPods, base::to_text(pod)).code, 201);
        EXPECT_EQ(t.ask("DELETE", kPods + "/p").code, 200);
        tolerations = t.ask("GET", kPods + "/p").json.at("spec").at("tolerations").as_array();  // and the server's own
        std::reverse(tolerations.begin(), tolerations.end());
        std::reverse(finalizers.begin(), finalizers.end());
        int turn = 0;
        return base::least_cost([&] {
            const JsonObject change{
                {"metadata", {{"finalizers", finalizers}, {"labels", {{"turn", std::to_string(turn++)}}}}},
                {"spec", {{"tolerations", tolerations}}}};
            EXPECT_EQ(t.ask("PATCH", kPods + "/p", base::to_text(change), kMerge).code, 200);
        });
    };
    const auto few = cost(500);
    EXPECT_LT(cost(4000) / few, 24);
}

// 2 MiB of objects.
void fill(TestFront& t) {
    for (int i = 0; i < 64; ++i) {
        const JsonObject map{{"metadata", {{"name", "m" + std::to_string(i)}}},
                             {"data", {{"text", std::string(32u << 10, 'x')}}}};
        ASSERT_EQ(t.ask("POST", kMaps, base::to_text(map)).code, 201);
    }
}

std::string read_rest(FakeExchange& exchange, size_t most_at_once) {
    std::string all;
    Source::State state = Source::State::More;
    while (state == Source::State::More) {
        std::string piece;
        state = exchange.source->pull(piece);
        EXPECT_LE(piece.size(), most_at_once);
        all += piece;
    }
    EXPECT_EQ(state, Source::State::Ended);
    return all;
}

TEST(Cost, ALargeListIsMadeWhileItIsRead) {
    TestFront t;
    fill(t);
    for (const std::string query : {"", "?limit=40", "?labelSelector=!absent"}) {
        auto reading = t.send("GET", kMaps + query);
        ASSERT_NE(reading->source, nullptr);
        EXPECT_TRUE(reading->answered->body.empty());
        const Json list = base::parse_json(read_rest(*reading, 512u << 10)).value();
        EXPECT_EQ(list.at("items").as_array().size(), query == "?limit=40" ? 40U : 64U);
        EXPECT_EQ(base::find_string(list, {"kind"}), "ConfigMapList");
        EXPECT_EQ(base::find_string(list, {"metadata", "continue"}).empty(), query != "?limit=40");
    }
    EXPECT_EQ(t.send("GET", kMaps + "?limit=1")->source, nullptr);
    auto table = t.send("GET", kMaps + "?includeObject=Object", "", kTable);
    ASSERT_NE(table->source, nullptr);
    EXPECT_EQ(base::parse_json(read_rest(*table, 512u << 10))->at("rows").as_array().size(), 64U);
}

// Who reads slowly keeps neither a copy nor the old versions of objects: the list breaks off when the store has
// forgotten what it was of.
TEST(Cost, ASlowReaderHoldsNothing) {
    TestFront t;
    fill(t);
    auto slow = t.send("GET", kMaps);
    ASSERT_NE(slow->source, nullptr);
    std::string piece;
    EXPECT_EQ(slow->source->pull(piece), Source::State::More);
    const std::weak_ptr<const store::Record> last = t.store->get({"configmaps", "default", "m9"});
    for (int i = 0; i < 64; ++i) t.ask("DELETE", kMaps + "/m" + std::to_string(i));
    for (int i = 0; i < 160; ++i) {  // the history forgets by size and by age
        t.ask("POST", kMaps, R"({"metadata":{"name":"n"},"data":{"x":")" + std::string(1u << 20, 'y') + R"("}})");
        t.ask("DELETE", kMaps + "/n");
        t.clock.advance(std::chrono::minutes(1));
    }
    EXPECT_TRUE(last.expired());
    auto state = Source::State::More;
    while (state == Source::State::More) {
        piece.clear();
        state = slow->source->pull(piece);
    }
    EXPECT_EQ(state, Source::State::Broken);
}

TEST(Cost, AWatchSendsWhatIsLargePieceByPiece) {
    TestFront t;
    auto early = t.send("GET", kMaps + "?watch=1");
    fill(t);
    auto late = t.send("GET", kMaps + "?watch=1");
    for (auto* watch : {early.get(), late.get()}) {
        std::string all;
        Source::State state = Source::State::More;
        while (state == Source::State::More) {
            std::string piece;
            state = watch->source->pull(piece);
            EXPECT_LE(piece.size(), 512u << 10);
            all += piece;
        }
        EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 64);
    }
}

TEST(Cost, LargeReadsHavePlaces) {
    TestFront t;
    fill(t);
    std::vector<std::shared_ptr<FakeExchange>> readers;
    while (readers.size() < 10'000) {
        readers.push_back(t.send("GET", kMaps));
        if (readers.back()->source == nullptr) break;
    }
    EXPECT_EQ(readers.back()->answered->status, 429);
    EXPECT_GT(readers.size(), 100U);
    EXPECT_LT(readers.size(), 1000U);
    EXPECT_EQ(t.ask("GET", kMaps + "/m1").code, 200);  // what is small needs none
    t.peer = {"other", {"system:masters"}};
    EXPECT_NE(t.send("GET", kMaps)->source, nullptr);
    t.peer = {"admin", {"system:masters"}};
    readers.clear();
    EXPECT_NE(t.send("GET", kMaps)->source, nullptr);
}

}  // namespace
}  // namespace berth::api
