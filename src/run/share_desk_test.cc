#include "run/share_desk.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"

// What schedulers hear.
namespace berth::run {
namespace {

constexpr base::Instant kStart{1'000'000'000'000};

class ShareDeskTest : public testing::Test {
protected:
    ShareDeskTest() {
        auto& node = scene_.nodes.emplace_back();
        node.name = "n1";
        node.allocatable = {{model::kCpu, 100'000}};
    }
    void consumer(const std::string& name, int64_t hard, int64_t reserved = 0) {
        auto& added = scene_.consumers.emplace_back();
        added.meta.name = name;
        if (hard >= 0) added.hard.amounts.set(model::kCpu, hard * 1000);
        if (reserved > 0) added.reserved.amounts.set(model::kCpu, reserved * 1000);
    }
    share::ScenePod& pod(const std::string& ns, const std::string& name, bool placed) {
        auto& added = scene_.pods.emplace_back();
        added.ns = ns;
        added.name = name;
        added.uid = "uid-" + name;
        added.size = {{model::kCpu, 1000}};
        added.placed = placed;
        if (placed) added.node = 0;
        added.may_stand = {0};
        return added;
    }
    void cycle(base::Instant now = kStart) { desk_.show(scene_, settings_, share::answer(scene_, settings_), now); }
    static std::string document(const std::string& ns, const std::string& name) {
        return fmt::format(
            R"({{"metadata":{{"name":"{}","namespace":"{}","uid":"uid-{}"}},"spec":{{"containers":[{{"name":"c",
            "image":"i","resources":{{"requests":{{"cpu":"1"}}}}}}]}}}})",
            name, ns, name);
    }
    // "": it may start.
    std::string alone(const std::string& ns, const std::string& name, base::Instant now = kStart) {
        const auto reply = desk_.filter(fmt::format(R"({{"Pod":{}}})", document(ns, name)), now);
        EXPECT_EQ(reply.code, 200) << reply.body;
        const auto answer = base::parse_json(reply.body);
        return answer ? std::string(base::find_string(*answer, {"Error"})) : reply.body;
    }
    std::string filter(const std::string& ns, const std::string& name, const std::string& nodes) {
        return desk_.filter(fmt::format(R"({{"Pod":{},{}}})", document(ns, name), nodes), kStart).body;
    }
    std::string preempt(const std::string& ns, const std::string& name, const std::string& victims) {
        return desk_.preempt(fmt::format(R"({{"Pod":{},{}}})", document(ns, name), victims), kStart).body;
    }

    share::Scene scene_;
    share::Settings settings_;
    ShareDesk desk_;
};

TEST_F(ShareDeskTest, OfThreeOnlyTheShareIsGranted) {  // case 16
    consumer("a", 2);
    pod("a", "runs", true);
    for (const auto* name : {"p1", "p2", "p3"}) pod("a", name, false);
    cycle();
    EXPECT_EQ(alone("a", "p1"), "");
    EXPECT_EQ(alone("a", "p1"), "") << "asking twice counts once";
    EXPECT_NE(alone("a", "p2"), "");
    EXPECT_NE(alone("a", "p3"), "");
    EXPECT_EQ(desk_.in_flight(kStart), std::set<std::string>{"uid-p1"});
    EXPECT_EQ(alone("a", "runs"), "") << "it is counted already";
    EXPECT_FALSE(desk_.asks_for_cycle());
    EXPECT_NE(alone("a", "p2", kStart + std::chrono::seconds(29)), "");
    EXPECT_EQ(alone("a", "p2", kStart + std::chrono::seconds(31)), "") << "the first was not bound in half a minute";
    EXPECT_NE(alone("a", "p1", kStart + std::chrono::seconds(31)), "");
}

TEST_F(ShareDeskTest, WhatWasGrantedCountsUntilItIsSeenBoundOrGone) {
    consumer("a", 2);
    pod("a", "p1", false);
    for (const auto* name : {"p2", "p3"}) pod("a", name, false);
    cycle();
    EXPECT_EQ(alone("a", "p1"), "");
    scene_.pods.front().placed = true;
    scene_.pods.front().node = 0;
    cycle();
    EXPECT_TRUE(desk_.in_flight(kStart).empty());
    EXPECT_EQ(alone("a", "p2"), "");
    EXPECT_NE(alone("a", "p3"), "");
    std::erase_if(scene_.pods, [](const auto& one) { return one.name == "p2"; });
    cycle();
    EXPECT_EQ(alone("a", "p3"), "") << "p2 was deleted";
}

TEST_F(ShareDeskTest, APodThatNoCycleHasSeenIsNotLeftWaiting) {
    scene_.nodes.front().allocatable = {{model::kCpu, 4000}};
    for (const auto* name : {"r1", "r2", "r3", "r4"}) pod("a", name, true);
    cycle();
    EXPECT_EQ(alone("new", "first"), "") << "its half is its own, though others have it now";
    EXPECT_EQ(alone("new", "second"), "");
    EXPECT_NE(alone("new", "third"), "");
    EXPECT_TRUE(desk_.asks_for_cycle());
}

TEST_F(ShareDeskTest, InfiniteOnesAreAlwaysAdmitted) {
    scene_.nodes.front().allocatable = {{model::kCpu, 1000}};
    pod("a", "runs", true);
    cycle();
    EXPECT_EQ(alone("kube-system", "dns"), "");
    EXPECT_EQ(alone("kube-system", "proxy"), "");
}

TEST_F(ShareDeskTest, AnswersHaveTheKeysOfKubeScheduler) {
    consumer("a", 1);
    pod("a", "p1", false);
    cycle();
    EXPECT_EQ(filter("a", "p1", R"("NodeNames":["n1","n2"])"),
              R"({"Nodes":null,"NodeNames":["n1","n2"],"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""})");
    EXPECT_EQ(
        filter("a", "p2", R"("Nodes":null,"NodeNames":["n1","n2"])"),
        R"({"Nodes":null,"NodeNames":[],"FailedNodes":{},"FailedAndUnresolvableNodes":{)"
        R"("n1":"its share of the cluster: cpu: 1 used or granted and 1 asked for are more than the deserved 1",)"
        R"("n2":"its share of the cluster: cpu: 1 used or granted and 1 asked for are more than the deserved 1"},"Error":""})");
    EXPECT_EQ(filter("a", "p1", R"("Nodes":{"items":[{"metadata":{"name":"n1"}}]},"NodeNames":null)"),
              R"({"Nodes":{"items":[{"metadata":{"name":"n1"}}]},"NodeNames":null,"FailedNodes":{},)"
              R"("FailedAndUnresolvableNodes":{},"Error":""})");
}

TEST_F(ShareDeskTest, KeptRoomIsForThePodForWhichOthersWent) {
    scene_.nodes.front().allocatable = {{model::kCpu, 2000}};
    pod("a", "runs", true);
    pod("b", "claim", false).earmark = 0;
    pod("c", "other", false);
    cycle();
    EXPECT_NE(filter("b", "claim", R"("NodeNames":["n1"])").find(R"("NodeNames":["n1"])"), std::string::npos);
    scene_.consumers.clear();
    settings_.infinite = {"c"};
    cycle();
    EXPECT_NE(filter("c", "other", R"("NodeNames":["n1","n2"])").find(R"("NodeNames":["n2"],"FailedNodes":{"n1":)"),
              std::string::npos);
}

TEST_F(ShareDeskTest, PreemptionBreaksNoGuaranteeAndServesNobodyWhomItsShareRefuses) {
    consumer("a", -1, 2);
    consumer("b", 1);
    for (const auto* name : {"a1", "a2", "a3"}) pod("a", name, true);
    pod("b", "p1", false);
    cycle();
    const std::string one = R"("NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"uid-a1"}],"NumPDBViolations":1},)";
    const std::string two = R"("n2":{"Pods":[{"UID":"uid-a2"},{"UID":"uid-a3"}],"NumPDBViolations":0}})";
    EXPECT_EQ(preempt("b", "p1", one + two),
              R"({"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"uid-a1"}],"NumPDBViolations":1}}})");
    EXPECT_EQ(alone("b", "p1"), "");
    EXPECT_EQ(preempt("b", "p2", one + two), R"({"NodeNameToMetaVictims":{}})") << "its share is used up";
}

TEST_F(ShareDeskTest, VictimsThatNoCycleHasSeenCountAsTheyWereGranted) {
    consumer("a", -1, 2);
    for (const auto* name : {"a1", "a2"}) pod("a", name, false);
    pod("b", "p1", false);
    cycle();
    const std::string one = R"("NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"uid-a1"}],"NumPDBViolations":0}})";
    EXPECT_EQ(preempt("b", "p1", one), R"({"NodeNameToMetaVictims":{}})") << "nobody knows whose it is";
    EXPECT_EQ(alone("a", "a1"), "");
    EXPECT_EQ(alone("a", "a2"), "");
    EXPECT_EQ(preempt("b", "p1", one), R"({"NodeNameToMetaVictims":{}})") << "it has no more than its guarantee";
    pod("a", "a3", false);
    cycle();
    EXPECT_EQ(alone("a", "a3"), "");
    EXPECT_NE(preempt("b", "p1", one).find("uid-a1"), std::string::npos) << "it has one more";
}

TEST_F(ShareDeskTest, WhoDoesNotLeadSaysSoAndNonsenseIsRefused) {
    EXPECT_EQ(desk_.filter(R"({"Pod":{}})", kStart).code, 503);
    cycle();
    EXPECT_EQ(desk_.filter("{", kStart).code, 400);
    EXPECT_EQ(desk_.filter(R"({"NodeNames":["n1"]})", kStart).code, 400);
    EXPECT_EQ(desk_.preempt(R"([])", kStart).code, 400);
    desk_.close();
    EXPECT_EQ(desk_.preempt(R"({"Pod":{}})", kStart).code, 503);
}

}  // namespace
}  // namespace berth::run
