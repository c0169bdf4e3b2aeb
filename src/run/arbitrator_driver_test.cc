#include "run/arbitrator_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "run/scripted_server.h"

// What comes of objects that an API server without our admission lets in, and of answers that a real one gives.
namespace berth::run {
namespace {

const std::string kAllocations = "/apis/kuabe-arbitrator.incubator.k8s.io/v1/allocations";

class ArbitratorDriverTest : public testing::Test {
protected:
    void has(const std::string& plural, const std::string& object) { script_->has(plural, object); }
    void ns(const std::string& name) {
        has("namespaces", fmt::format(R"({{"metadata":{{"name":"{}","uid":"ns-{}"}}}})", name, name));
    }
    void consumer(const std::string& name, const std::string& spec, bool owned = true) {
        const std::string owners = fmt::format(
            R"(,"ownerReferences":[{{"apiVersion":"v1","kind":"Namespace","name":"{}","uid":"ns-{}"}}])", name, name);
        has("consumers", fmt::format(R"({{"metadata":{{"name":"{}","uid":"c-{}"{}}},"spec":{{{}}}}})", name, name,
                                     owned ? owners : "", spec));
    }
    void node(int cpu) {
        has("nodes", fmt::format(R"({{"metadata":{{"name":"n1"}},"status":{{"allocatable":{{"cpu":"{}","memory":"1Gi",
            "pods":"110"}}}}}})",
                                 cpu));
    }
    static std::string pod(const std::string& ns, const std::string& name, const std::string& more,
                           const std::string& meta = "") {
        return fmt::format(R"({{"metadata":{{"name":"{}","namespace":"{}","uid":"uid-{}","creationTimestamp":
            "2026-01-01T00:00:00Z"{}}},"spec":{{{}"containers":[{{"name":"c","image":"i","resources":{{"requests":
            {{"cpu":"1"}}}}}}]}}}})",
                           name, ns, name, meta, more);
    }
    void start(ArbitratorOptions options = {}) {
        driver_ = std::make_unique<ArbitratorDriver>(ArbitratorDriver::Doors{script_->server(), [] {}, metrics_},
                                                     std::move(options));
    }
    void turn(base::Duration by) {
        const auto end = clock_.now() + by;
        while (clock_.now() < end) {
            driver_->turn(moment(clock_));
            clock_.advance(std::max(base::Duration(1), std::min(end, driver_->next()) - clock_.now()));
        }
        driver_->turn(moment(clock_));
    }
    // The last thing that was written of a consumer's Allocation: its creation.
    Json created(const std::string& name) {
        Json out;
        script_->find([&](const link::Request& request) {
            if (request.method != "POST" || request.path != kAllocations) return false;
            auto body = *base::parse_json(request.body);
            if (base::find_string(body, {"metadata", "name"}) == name) out = body;
            return false;
        });
        return out;
    }
    std::string spec(const std::string& name, const char* part) {
        const Json document = created(name);
        const Json* found = document.is_object() ? base::find(document, {"spec", part}) : nullptr;
        return found == nullptr ? "-" : base::to_text(*found);
    }
    size_t evictions() {
        size_t count = 0;
        script_->find([&](const link::Request& request) {
            count += request.path.ends_with("/eviction") ? 1 : 0;
            return false;
        });
        return count;
    }

    std::shared_ptr<Script> script_ = std::make_shared<Script>();
    base::Metrics metrics_;
    base::ManualClock clock_{base::Time{1'800'000'000'000'000'000}};
    std::unique_ptr<ArbitratorDriver> driver_;
};

TEST_F(ArbitratorDriverTest, WhatIsWrittenBrokenHarmsNobodyElse) {
    node(10);
    for (const auto* name : {"loop-a", "loop-b", "odd", "poor", "rich", "well"}) ns(name);
    consumer("loop-a", R"("parent":"loop-b")");
    consumer("loop-b", R"("parent":"loop-a")");
    consumer("odd", R"("reserved":{"cpu":"many"},"gracePeriod":"soon")");
    consumer("poor", R"("hard":{"cpu":"1"})");
    consumer("rich", R"("reserved":{"cpu":"1000"})");
    consumer("well", R"("reserved":{"cpu":"2"})");
    for (const auto* name : {"p1", "p2", "p3"}) has("pods", pod("poor", name, R"("nodeName":"n1",)"));
    for (const auto* name : {"w1", "w2"}) has("pods", pod("well", name, ""));
    script_->answer_all({201, "{}", 0});
    start();
    turn(std::chrono::seconds(3));
    EXPECT_EQ(spec("well", "deserved"), R"({"cpu":"2"})");
    EXPECT_EQ(spec("poor", "hard"), R"({"cpu":"1"})");
    EXPECT_EQ(spec("poor", "deserved"), R"({"cpu":"1"})") << "hard is below what it uses";
    EXPECT_EQ(spec("odd", "reserved"), "{}") << "it counts as if it said nothing";
    EXPECT_TRUE(created("loop-a").is_object());
    EXPECT_TRUE(created("rich").is_object());
    EXPECT_TRUE(script_->find([](const link::Request& request) {
        return request.path.find("/events") != request.path.npos &&
               request.body.find("\"Unreadable\"") != request.body.npos &&
               request.body.find("many") != request.body.npos;
    }));
}

// The conditions are sentences that name what is meant.
TEST_F(ArbitratorDriverTest, EachTroubleIsACondition) {
    node(10);
    for (const auto* name : {"loop", "odd", "rich"}) {
        ns(name);
        has("allocations", fmt::format(R"({{"metadata":{{"name":"{}","uid":"al-{}"}},"spec":{{}}}})", name, name));
    }
    consumer("loop", R"("parent":"loop")");
    consumer("odd", R"("reserved":{"cpu":"many"})");
    consumer("rich", R"("reserved":{"cpu":"1000"})");
    for (int i = 0; i < 12; ++i) has("pods", pod("rich", fmt::format("p{}", i), ""));
    script_->answer_all({200, "{}", 0});
    start();
    turn(std::chrono::seconds(3));
    const auto said = [&](const std::string& name, const std::string& type, const std::string& words) {
        return script_
            ->find([&](const link::Request& request) {
                return request.method == "PATCH" && request.path == kAllocations + "/" + name + "/status" &&
                       request.body.find("\"type\":\"" + type) != request.body.npos &&
                       request.body.find(words) != request.body.npos;
            })
            .has_value();
    };
    EXPECT_TRUE(said("loop", "ParentCycle", "its parents form a circle"));
    EXPECT_TRUE(said("odd", "ConsumerUnreadable", "spec.reserved.cpu")) << "the field";
    EXPECT_TRUE(said("rich", "ReservationScaled", "the cluster cannot hold all guarantees"));
}

TEST_F(ArbitratorDriverTest, AnEvictionNamesThePodItMeansAndIsNotRepeatedWhileNobodyKnows) {
    node(2);
    ns("a");
    ns("b");
    has("pods", pod("a", "a1", R"("nodeName":"n1",)"));
    has("pods", pod("a", "a2", R"("nodeName":"n1",)"));
    has("pods", pod("b", "claim", ""));
    ArbitratorOptions options;
    options.grace = std::chrono::seconds(5);
    start(options);
    script_->answer_all({201, "{}", 0});
    turn(std::chrono::seconds(4));
    EXPECT_EQ(evictions(), 0u);
    turn(std::chrono::seconds(30));
    EXPECT_EQ(evictions(), 1u) << "the feed has not told yet that it goes";
    EXPECT_TRUE(script_->find([](const link::Request& request) {
        return request.path.ends_with("/eviction") && request.body.find(R"("kind":"Eviction")") != request.body.npos &&
               request.body.find(R"("preconditions":{"uid":"uid-a)") != request.body.npos;
    }));
}

TEST_F(ArbitratorDriverTest, ARefusalIsTriedElsewhereAndTold) {
    node(2);
    ns("a");
    ns("b");
    has("pods", pod("a", "a1", R"("nodeName":"n1",)"));
    has("pods", pod("a", "a2", R"("nodeName":"n1",)"));
    has("pods", pod("b", "claim", ""));
    has("allocations", R"({"metadata":{"name":"a","uid":"al-a"},"spec":{}})");
    ArbitratorOptions options;
    options.grace = std::chrono::seconds(0);
    start(options);
    script_->answer_all(
        {429, R"({"kind":"Status","message":"Cannot evict pod","details":{"causes":[{"reason":"DisruptionBudget",
        "message":"The disruption budget few needs 2 healthy pods"}]}})",
         0});
    turn(std::chrono::seconds(5));
    EXPECT_EQ(evictions(), 2u) << "each once: both are refused for ten seconds";
    EXPECT_TRUE(script_->find([](const link::Request& request) {
        return request.path == kAllocations + "/a/status" &&
               request.body.find("The disruption budget few needs 2 healthy pods") != request.body.npos;
    }));
}

TEST_F(ArbitratorDriverTest, ANewLeaderTakesNothingInItsFirstCycle) {
    node(2);
    ns("a");
    ns("b");
    has("pods", pod("a", "a1", R"("nodeName":"n1",)"));
    has("pods", pod("a", "a2", R"("nodeName":"n1",)"));
    has("pods", pod("b", "claim", ""));
    script_->answer_all({201, "{}", 0});
    ArbitratorOptions options;
    options.grace = std::chrono::seconds(0);
    start(options);
    driver_->turn(moment(clock_));
    EXPECT_GT(script_->requests(), 0u) << "it publishes";
    EXPECT_EQ(evictions(), 0u);
    turn(std::chrono::seconds(3));
    EXPECT_EQ(evictions(), 1u);
}

}  // namespace
}  // namespace berth::run
