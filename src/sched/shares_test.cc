#include "sched/shares.h"

#include <fmt/format.h>

#include <algorithm>

#include "ledger/intake.h"
#include "sched/live_test.h"

namespace berth::sched {
namespace {

SchedulerOptions with_shares(share::Settings settings = {}) {
    SchedulerOptions options;
    options.shares = std::move(settings);
    return options;
}

class SharesTest : public LiveTest {
protected:
    explicit SharesTest(SchedulerOptions options = with_shares()) : LiveTest(std::move(options)) {}

    model::Pod& in(const std::string& ns, const std::string& name, int64_t cpu_milli, int32_t priority = 0) {
        model::Pod& pod = make(name, cpu_milli, priority);
        auto spec = std::make_shared<model::PodSpec>(*pod.spec);
        spec->ns = ns;
        pod.meta.ns = ns;
        pod.spec = spec;
        return pod;
    }
    void waits(const std::string& ns, const std::string& name, int64_t cpu_milli, int32_t priority = 0) {
        put(in(ns, name, cpu_milli, priority));
    }
    void runs(const std::string& ns, const std::string& name, int64_t cpu_milli, int32_t priority = 0,
              const std::string& on = "n1") {
        model::Pod& pod = in(ns, name, cpu_milli, priority);
        pod.node = on;
        put(pod);
    }
    model::Consumer consumer(const std::string& name, int64_t reserved_milli = 0) {
        model::Consumer out;
        out.meta.name = name;
        if (reserved_milli > 0) out.reserved.amounts.set(model::kCpu, reserved_milli);
        return out;
    }
    void rule(model::Consumer made) { scheduler_.put(std::make_shared<const model::Consumer>(std::move(made)), now_); }
    void quota(const std::string& ns, model::Resources hard) {
        auto made = std::make_shared<model::ResourceQuota>();
        made->meta.ns = ns;
        made->meta.name = "quota";
        made->hard = std::move(hard);
        scheduler_.put(made, now_);
    }
    int64_t deserved(const std::string& name) {
        for (const auto& account : scheduler_.shares()->accounts(scheduler_.ledger())) {
            if (account.name == name) return account.share.deserved.get(model::kCpu);
        }
        return -1;
    }
    Lines placed() {
        Lines out;
        for (const auto& line : told()) {
            if (line.starts_with("bind ")) out.push_back(line);
        }
        return out;
    }
};

constexpr const char* kNoRoom =
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 "
    "No preemption victims found for incoming pod.";

// The seed's T1 to T3.
TEST_F(SharesTest, ANamespaceGetsWhatItDeservesAndNoReplacementTakesIt) {
    node("n1", 2000);
    runs("c1", "old", 1000);
    runs("c1", "new", 1000);
    waits("c2", "one", 1000);
    step();
    EXPECT_EQ(told(), Lines{fmt::format("refuse one: {}", kNoRoom)});
    done();
    EXPECT_EQ(deserved("c1"), 1000);
    EXPECT_EQ(deserved("c2"), 1000);
    waits("c1", "again", 1000);
    gone("new");
    later(std::chrono::seconds(2));
    step();
    EXPECT_EQ(told(), (Lines{"bind one to n1",
                             "refuse again: 0/1 nodes are available: the share of namespace c1: cpu: 1 "
                             "used or granted and 1 asked for are more than the deserved 1."}));
}

TEST_F(SharesTest, AssumedPodsCount) {
    node("n1", 4000);
    for (const auto* name : {"a1", "a2", "a3", "a4"}) waits("a", name, 1000);
    for (const auto* name : {"b1", "b2", "b3", "b4"}) waits("b", name, 1000);
    step();
    EXPECT_EQ(placed(), (Lines{"bind a1 to n1", "bind a2 to n1", "bind b1 to n1", "bind b2 to n1"}));
}

TEST_F(SharesTest, WhoeverWasRefusedIsTriedWhenItsNamespaceMayHaveMore) {
    node("n1", 2000);
    runs("a", "a0", 1000);
    runs("b", "b0", 1000);
    waits("a", "a1", 1000);
    waits("b", "b1", 1000);
    step();
    told();
    done();
    EXPECT_EQ(scheduler_.queue().sizes().unschedulable, 2u);
    gone("b0");  // b deserves one, and uses none
    step();      // at once: nobody sits out a backoff for that
    EXPECT_EQ(placed(), Lines{"bind b1 to n1"});
}

TEST_F(SharesTest, AConsumerOrANodeMayBeWhatItWaitedFor) {
    node("n1", 2000);
    auto limited = consumer("a");
    limited.hard.amounts.set(model::kCpu, 1000);
    rule(limited);
    waits("a", "a1", 1000);
    waits("a", "a2", 1000);
    step();
    EXPECT_EQ(told(), (Lines{"bind a1 to n1",
                             "refuse a2: 0/1 nodes are available: the share of namespace a: cpu: 1 "
                             "used or granted and 1 asked for are more than the deserved 1."}));
    done();
    limited.hard.amounts.set(model::kCpu, 2000);
    rule(limited);
    step();
    EXPECT_EQ(placed(), Lines{"bind a2 to n1"});
    done();
    waits("a", "a3", 1000);
    step();
    EXPECT_EQ(placed(), Lines{});
    done();
    rule(consumer("a"));
    node("n2", 1000);
    later(std::chrono::seconds(1));
    step();
    EXPECT_EQ(placed(), Lines{"bind a3 to n2"});
}

TEST_F(SharesTest, AQuotaClipsAndCountsPods) {
    node("n1", 8000);
    quota("a", model::Resources{{model::kPods, 1}});
    waits("a", "a1", 1000);
    waits("a", "a2", 1000);
    step();
    EXPECT_EQ(told().back(),
              "refuse a2: 0/1 nodes are available: the share of namespace a: cpu: 1 used or granted and "
              "1 asked for are more than the deserved 1.");
    done();
    runs("a", "a3", 1000);  // others' doing
    step();
    quota("a", model::Resources{{model::kPods, 2}});
    waits("a", "a4", 0);
    step();
    EXPECT_EQ(told().back(),
              "refuse a4: 0/1 nodes are available: the share of namespace a: pods: 2 there or granted "
              "and 1 asked for are more than hard 2.");
}

TEST_F(SharesTest, InfiniteNamespacesAreAlwaysLetIn) {
    node("n1", 4000);
    for (const auto* name : {"a1", "a2", "a3", "a4"}) waits("a", name, 1000);
    for (const auto* name : {"k1", "k2", "k3"}) waits("kube-system", name, 1000);
    step();
    EXPECT_EQ(placed(), (Lines{"bind a1 to n1", "bind k1 to n1", "bind k2 to n1", "bind k3 to n1"}));
}

TEST_F(SharesTest, WhatFitsNoNodeIsNotAskedFor) {
    node("n1", 4000);
    waits("a", "huge", 100'000);
    waits("a", "a1", 1000);
    for (const auto* name : {"b1", "b2", "b3"}) waits("b", name, 1000);
    step();
    EXPECT_EQ(placed(), (Lines{"bind a1 to n1", "bind b1 to n1", "bind b2 to n1", "bind b3 to n1"}));
}

TEST_F(SharesTest, APodThatAnothersGateHoldsIsNotAskedFor) {
    node("n1", 4000);
    for (const auto* name : {"a1", "a2"}) {
        model::Pod& pod = in("a", name, 1000);
        pod.gates = {"example.com/other"};
        put(pod);
    }
    for (const auto* name : {"b1", "b2", "b3", "b4"}) waits("b", name, 1000);
    step();
    EXPECT_EQ(placed().size(), 4u);
}

TEST_F(SharesTest, LimitsCountWhereSomebodyNamesThem) {
    const auto limit = *model::intern_resource("limits.cpu");
    node("n1", 8000);
    auto limited = consumer("a");
    limited.hard.amounts.set(limit, 3000);
    rule(limited);
    for (const auto* name : {"a1", "a2"}) {
        model::Pod& pod = in("a", name, 1000);
        auto spec = std::make_shared<model::PodSpec>(*pod.spec);
        spec->limits.set(limit, 2000);
        pod.spec = spec;
        put(pod);
    }
    step();
    EXPECT_EQ(told(), (Lines{"bind a1 to n1",
                             "refuse a2: 0/1 nodes are available: the share of namespace a: "
                             "cpu: 1 used or granted and 1 asked for are more than the deserved "
                             "1."}));
    done();
    limited.hard.amounts.set(limit, 4000);
    rule(limited);
    step();
    EXPECT_EQ(placed(), Lines{"bind a2 to n1"});
}

// What a reservation holds for a namespace is its already.
TEST_F(SharesTest, WhoeverDrawsWhatIsHeldForItsNamespaceAsksForNothingMore) {
    node("n1", 4000);
    runs("b", "b0", 2000);
    auto held = reservation("r", 2000, {});
    held.owners.clear();
    held.owners.emplace_back().object.emplace().ns = "a";
    reserved_on("n1", held);
    waits("b", "b1", 1000);
    waits("a", "a1", 2000);
    step();
    EXPECT_EQ(placed(), Lines{"bind a1 to n1"});
}

TEST_F(SharesTest, PreemptionPushesNobodyBelowItsGuarantee) {
    node("n1", 4000);
    rule(consumer("a", 3000));
    rule(consumer("b", 1000));
    runs("a", "a1", 2000);
    runs("a", "a2", 2000);
    waits("b", "urgent", 1000, 10);
    step();
    EXPECT_EQ(told(), Lines{fmt::format("refuse urgent: {}", kNoRoom)});
    done();
    rule(consumer("a", 2000));
    later(std::chrono::minutes(6));
    step();
    const Lines lines = told();
    EXPECT_TRUE(std::find(lines.begin(), lines.end(), "hold n1 for urgent") != lines.end()) << lines.size();
}

TEST_F(SharesTest, NobodyIsEvictedForAPodThatItsShareRefuses) {
    node("n1", 2000);
    rule(consumer("b", 1000));
    runs("a", "a1", 1000);
    runs("b", "b1", 1000);
    waits("a", "urgent", 1000, 10);
    step();
    EXPECT_EQ(told(), Lines{"refuse urgent: 0/1 nodes are available: the share of namespace a: cpu: 1 used or granted "
                            "and 1 asked for are more than the deserved 1."});
}

TEST_F(SharesTest, ANodeThatIsNotReadyCountsForAMinute) {
    node("n1", 2000);
    auto lost = std::make_shared<model::Node>();
    lost->meta.name = "n2";
    lost->allocatable = model::Resources{{model::kCpu, 2000}, {model::kPods, 110}};
    lost->not_ready = wall_;
    scheduler_.put(lost, now_);
    auto half = consumer("a");
    half.hard.percents.set(model::kCpu, 50'000);
    rule(half);
    waits("a", "a1", 1500);
    step();
    EXPECT_EQ(placed().size(), 1u);
    done();
    gone("a1");
    later(std::chrono::seconds(61));
    waits("a", "a2", 1500);
    step();
    EXPECT_EQ(told(), Lines{"refuse a2: 0/2 nodes are available: the share of namespace a: cpu: 0 used or granted and "
                            "1500m asked for are more than the deserved 0."});
}

}  // namespace
}  // namespace berth::sched
