// When the live scheduler tries again: gates, backoff, hints; and pods whose specs are long.
#include "sched/live_test.h"
#include "sched/table_test.h"

namespace berth::sched {
namespace {

using std::chrono::seconds;

class WakingTest : public LiveTest {
protected:
    WakingTest() : LiveTest({.holds_rooms = false}) { node("n1", 4000); }
    // Whether the pod was looked at, and found no node.
    bool tries(const std::string& name) {
        const auto before = refusals();
        step();
        told();
        return refusals() > before && scheduler_.pending_pod(name);
    }
    uint64_t refusals() const {
        const auto& counts = scheduler_.counts().unschedulable;
        const auto found = counts.find("berth");
        return found == counts.end() ? 0 : found->second;
    }
};

TEST_F(WakingTest, WhatCannotBeScoredIsAnErrorAndTriedAgain) {
    node("n2", 4000);
    model::Pod& pod = make("p", 1000, 0);
    auto spec = std::make_shared<model::PodSpec>(*pod.spec);
    spec->preferred_fault = "[0]: it compares with no integer";
    pod.spec = spec;
    put(pod);
    step();
    EXPECT_EQ(told(), Lines{"refuse p: running PreScore plugin \"NodeAffinity\": [0]: it compares with no integer"});
    EXPECT_EQ(scheduler_.counts().errors.find("berth")->second, 1u);
    EXPECT_EQ(refusals(), 0u);
    later(seconds(1));
    step();
    EXPECT_EQ(told(), Lines()) << "the same is not told again";
    EXPECT_EQ(scheduler_.counts().errors.find("berth")->second, 2u);
}

TEST_F(WakingTest, AGatedPodIsNotTried) {
    model::Pod& pod = make("p", 1000, 0);
    pod.gates = {"example.com/quota"};
    put(pod);
    step();
    EXPECT_EQ(told(), Lines{});
    EXPECT_EQ(scheduler_.queue().sizes().gated, 1u);
    pod.gates.clear();
    put(pod);
    step();
    EXPECT_EQ(told(), Lines{"bind p to n1"});
}

// 1 s after the first failure, then 2, 4, 8, and never more than 10.
TEST_F(WakingTest, EachFailureDoublesTheWait) {
    pending("p", 1000, 0);
    for (const int wait : {1, 2, 4, 8, 10, 10}) {
        step();
        EXPECT_EQ(told(), Lines{"bind p to n1"});
        answer(Outcome::Refused);
        EXPECT_EQ(told(), Lines{"read p"});
        done();
        later(seconds(wait) - std::chrono::nanoseconds(1));
        step();
        EXPECT_EQ(told(), Lines{}) << "not before " << wait << " s";
        later(std::chrono::nanoseconds(1));
    }
}

TEST_F(WakingTest, OnlyWhatCouldHelpWakes) {
    pending("large", 9000, 0);
    EXPECT_TRUE(tries("large"));
    later(seconds(20));
    scheduler_.put(std::make_shared<const model::StorageClass>(), now_);
    scheduler_.put(std::make_shared<const model::Namespace>(), now_);
    bound("other", 100, 0, "n1");
    EXPECT_FALSE(tries("large")) << "no cpu came of that";
    node("n2", 2000);
    EXPECT_TRUE(tries("large"));
    later(seconds(20));
    gone("other");
    EXPECT_TRUE(tries("large"));
    EXPECT_FALSE(tries("large"));
    later(std::chrono::minutes(5));
    EXPECT_TRUE(tries("large")) << "and now and then anyway";
}

TEST_F(WakingTest, ABoundPodThatShrinksWakes) {
    bound("other", 4000, 0, "n1");
    pending("p", 2000, 0);
    EXPECT_TRUE(tries("p"));
    later(seconds(20));
    bound("other", 1000, 0, "n1");
    step();
    EXPECT_EQ(told(), Lines{"bind p to n1"});
}

TEST_F(WakingTest, WhyAReservationWaitsIsToldUntilItIsWritten) {
    reserved(reservation("r", 9000, {"w1"}));
    for (const auto outcome : {Outcome::Refused, Outcome::Unknown}) {
        step();
        EXPECT_EQ(told().size(), 1u);
        answer(outcome);
        later(seconds(10));
    }
    step();
    EXPECT_EQ(told().size(), 1u);
    done();
    later(seconds(10));
    step();
    EXPECT_EQ(told(), Lines{});
}

// Neither others nor itself: each try in vain doubles the wait after the one that would have helped.
TEST_F(WakingTest, AReservationThatWaitsWakesNobody) {
    pending("p", 9000, 0);
    step();
    told();
    later(seconds(10));
    reserved(reservation("r", 8000, {"w1"}));
    step();
    EXPECT_EQ(told().size(), 1u) << "the reservation itself";
    done();
    later(seconds(10));
    step();
    EXPECT_EQ(scheduler_.queue().attempts("p"), 1);
    EXPECT_EQ(scheduler_.queue().attempts("r"), 1);
}

TEST_F(WakingTest, RoomThatIsNoLongerKeptForOthersWakes) {
    auto made = std::make_shared<model::Node>(*scheduler_.ledger().at(0).node);
    made->meta.annotations.set(model::kNodeReservation, R"({"resources":{"cpu":"3"}})");
    scheduler_.put(made, now_);
    pending("p", 2000, 0);
    EXPECT_TRUE(tries("p"));
    later(seconds(20));
    made = std::make_shared<model::Node>(*made);
    made->meta.annotations = {};
    scheduler_.put(made, now_);
    step();
    EXPECT_EQ(told(), Lines{"bind p to n1"});
}

TEST_F(WakingTest, AHopelessPodStarvesNobody) {
    pending("hopeless", 9000, 1000);
    for (int i = 0; i < 4; ++i) {
        step();
        const Lines lines = told();
        const std::string name = std::to_string(i);
        pending(name, 1000, 0);
        step();
        EXPECT_EQ(told(), Lines{"bind " + name + " to n1"});
        done();
        node("n2", 100 + i);
        later(seconds(11));
    }
}

TEST(LongSpecsTest, ASelectorWithTenThousandValues) {
    TestTable table;
    table.put(node_yaml("n1", "{rack: v9999}") + node_yaml("n2", "{rack: none}"));
    std::string values;
    for (int i = 0; i < 10'000; ++i) values += (i == 0 ? "v" : ", v") + std::to_string(i);
    table.put(
        "kind: Pod\nmetadata: {name: p, namespace: default}\nspec: {containers: [{name: c}], affinity: {nodeAffinity: "
        "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: rack, "
        "operator: In, values: [" +
        values + "]}]}]}}}}\n");
    EXPECT_EQ(table.feasible("p"), Names{"n1"});
}

}  // namespace
}  // namespace berth::sched
