#include "sched/shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "base/random.h"
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

// What is known of the others is known under their new numbers: who waits, what is deserved, what is used.
TEST_F(SharesTest, NamespacesThatCameAndWentLeaveNothingAndOthersAsTheyWere) {
    node("n1", 4000);
    for (int i = 0; i < 10; ++i) runs(fmt::format("early-{}", i), fmt::format("e{}", i), 1);
    runs("a", "a0", 1000);
    runs("b", "b0", 2000);
    for (const auto* name : {"a1", "a2"}) waits("a", name, 2000);
    waits("b", "b1", 1000);
    step();
    EXPECT_EQ(placed(), Lines{});
    const int64_t before = deserved("a");
    for (int i = 0; i < 10; ++i) gone(fmt::format("e{}", i));
    for (int i = 0; i < 1000; ++i) {
        const std::string name = fmt::format("p{}", i);
        runs(fmt::format("ns-{}", i), name, 1);
        step();
        gone(name);
        step();
        ASSERT_LT(scheduler_.ledger().spaces()->size(), 200u) << "after " << i << " namespaces";
        ASSERT_LT(scheduler_.shares()->accounts(scheduler_.ledger()).size(), 200u);
        ASSERT_EQ(deserved("a"), before) << "after " << i;
        ASSERT_EQ(placed(), Lines{});
    }
    gone("b0");
    step();
    EXPECT_EQ(placed(), (Lines{"bind a1 to n1", "bind b1 to n1"}));
}

// Pods of two namespaces come, are placed, are seen bound and go, on a node that is now larger, now smaller.
class Crowd {
public:
    explicit Crowd(base::Random& random) : random_(random) {
        ledger_.count_spaces();
        resize();
        for (size_t i = 0; i < specs_.size(); ++i) {
            auto spec = std::make_shared<model::PodSpec>();
            spec->ns = i % 2 == 0 ? "a" : "b";
            spec->requests = {{model::kCpu, i < 2 ? 500 : 1500}, {model::kPods, 1}};
            specs_[i] = std::move(spec);
        }
    }

    void step() {
        if (random_.chance(1, 25)) return resize();
        if (random_.chance(1, 40)) return rule();
        const std::string uid = fmt::format("p{}", random_.below(16));
        const auto known = pods_.find(uid);
        if (known == pods_.end()) return come(uid);
        const ledger::PodIndex placed = ledger_.find_pod(uid);
        if (placed == ledger::kNone && random_.chance(2, 3)) {
            ledger_.assume(known->second, 0, {});
        } else if (placed != ledger::kNone && random_.chance(1, 3)) {
            ledger_.see_bound(placed);
        } else {
            ledger_.remove_pod(uid);
            if (!ledger_.spaces()->counted(uid) || random_.chance(3, 4)) go(uid);
        }
    }

    // Where there is enough for all, nobody is refused; else what all deserve together is there.
    void judge() {
        shares_.follow(ledger_, {});
        int64_t asked = 0, deserved = 0;
        for (const auto& [uid, pod] : pods_) asked += pod.spec->requests.get(model::kCpu);
        for (const auto& account : shares_.accounts(ledger_)) deserved += account.share.deserved.get(model::kCpu);
        std::string told;
        for (const auto& account : shares_.accounts(ledger_))
            told += fmt::format("{}: reserved {} used {} deserved {}; ", account.name, account.reserved.text(),
                                account.used.text(), account.share.deserved.text());
        ASSERT_LE(deserved, size_) << "of " << asked << " asked for: " << told;
        for (const auto& [uid, pod] : pods_) {
            if (asked > size_ || ledger_.find_pod(uid) != ledger::kNone) continue;
            ASSERT_EQ(shares_.refusal(ledger_, *pod.spec, uid), "") << uid;
        }
    }

private:
    void resize() {
        auto node = std::make_shared<model::Node>();
        size_ = random_.between(4, 12) * 1000;
        node->meta.name = "n1";
        node->allocatable = {{model::kCpu, size_}, {model::kPods, 110}};
        ledger_.put(std::shared_ptr<const model::Node>(std::move(node)));
    }
    void rule() {
        auto consumer = std::make_shared<model::Consumer>();
        consumer->meta.name = random_.chance(1, 2) ? "a" : "b";
        consumer->reserved.amounts.set(model::kCpu, random_.between(0, 4) * 1000);
        ledger_.spaces()->put(std::shared_ptr<const model::Consumer>(std::move(consumer)));
    }
    void come(const std::string& uid) {
        model::Pod& pod = pods_[uid];
        pod.meta.uid = uid;
        pod.spec = specs_[random_.chance(3, 4) ? 0 : random_.below(specs_.size())];
        ledger_.spaces()->await(uid, pod.spec, true);
    }
    void go(const std::string& uid) {
        ledger_.spaces()->forget(uid);
        pods_.erase(uid);
    }

    base::Random& random_;
    ledger::Ledger ledger_;
    Shares shares_{share::Settings()};
    int64_t size_ = 0;
    std::array<std::shared_ptr<const model::PodSpec>, 4> specs_;
    std::map<std::string, model::Pod> pods_;
};

TEST(Shares, NobodyIsRefusedWhereThereIsEnoughAndNoMoreIsDeservedThanThereIs) {
    const char* given = std::getenv("BERTH_SEED");
    const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
    for (uint64_t seed = first; seed < first + (given != nullptr ? 1 : 60); ++seed) {
        SCOPED_TRACE(testing::Message() << "BERTH_SEED=" << seed);
        base::Random random(seed);
        Crowd crowd(random);
        for (int i = 0; i < 200; ++i) {
            crowd.step();
            ASSERT_NO_FATAL_FAILURE(crowd.judge()) << "step " << i;
        }
    }
}

}  // namespace
}  // namespace berth::sched
