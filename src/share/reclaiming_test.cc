#include "share/reclaiming.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/random.h"

// Taking back over time. A small world around it: a scheduler that starts who may, pods that take a while to end,
// controllers that make again what was evicted.
namespace berth::share {
namespace {

constexpr base::Duration kCycle = std::chrono::seconds(1);

Resources cpu(int64_t cores) {
    return {{model::kCpu, cores * 1000}};
}

struct Town {
    Scene scene;
    Settings settings;
    Reclaiming reclaiming{std::chrono::seconds(30)};
    std::map<std::string, base::Time> ends;                    // of those that are going, by uid
    std::vector<std::pair<std::string, std::string>> evicted;  // who, for whom; uids
    std::vector<std::string> names;                            // of those who were evicted
    std::set<std::string> given;                               // those that were once evicted for
    bool recreates = true;
    base::Duration takes = std::chrono::seconds(3);  // to end
    uint64_t serial = 0;
    Answer answer_now;

    Town() { settings.now = base::Time{1'700'000'000'000'000'000}; }

    void node(const std::string& name, int64_t cores) {
        SceneNode& added = scene.nodes.emplace_back();
        added.name = name;
        added.allocatable = cpu(cores);
    }
    ScenePod& pod(const std::string& ns, int64_t cores, const std::string& on = "") {
        ScenePod& added = scene.pods.emplace_back();
        added.ns = ns;
        added.uid = fmt::format("uid-{:05}", serial++);
        added.name = fmt::format("{}-{}", ns, serial);
        added.size = cpu(cores);
        added.created = settings.now + std::chrono::milliseconds(serial);
        added.dated = true;
        for (uint32_t i = 0; i < scene.nodes.size(); ++i) {
            if (scene.nodes[i].name == on) added.node = i;
            if (scene.nodes[i].allocatable.get(model::kCpu) >= cores * 1000) added.may_stand.push_back(i);
        }
        added.placed = added.started = added.node != kNowhere;
        return added;
    }
    void consumer(const std::string& name, int64_t reserved, int64_t weight = 1) {
        model::Consumer& added = scene.consumers.emplace_back();
        added.meta.name = name;
        if (reserved > 0) added.reserved.amounts = cpu(reserved);
        added.weight = weight;
    }
    int64_t free(uint32_t node) const {
        int64_t out = scene.nodes[node].allocatable.get(model::kCpu);
        for (const auto& pod : scene.pods) out -= pod.node == node ? pod.size.get(model::kCpu) : 0;
        return out;
    }
    int64_t used(const std::string& ns) const {
        int64_t out = 0;
        for (const auto& pod : scene.pods) out += pod.placed && pod.ns == ns ? pod.size.get(model::kCpu) / 1000 : 0;
        return out;
    }
    int64_t waiting(const std::string& ns) const {
        return std::count_if(scene.pods.begin(), scene.pods.end(),
                             [&](const auto& pod) { return !pod.placed && pod.ns == ns; });
    }

    // One cycle; how many had to go.
    size_t cycle() {
        settings.now = settings.now + kCycle;
        end_those_that_are_due();
        Scene seen = scene;
        reclaiming.prepare(seen, settings.now);
        answer_now = answer(seen, settings);
        const auto victims = reclaiming.due(seen, answer_now, settings.now);
        for (const auto& victim : victims) evict(victim);
        schedule();
        return victims.size();
    }
    size_t cycles(int count) {
        size_t gone = 0;
        for (int i = 0; i < count; ++i) gone += cycle();
        return gone;
    }

private:
    void end_those_that_are_due() {
        std::vector<ScenePod> again;
        std::erase_if(scene.pods, [&](const ScenePod& pod) {
            const auto end = ends.find(pod.uid);
            if (end == ends.end() || end->second > settings.now) return false;
            if (recreates) again.push_back(pod);
            return true;
        });
        for (const auto& gone : again) pod(gone.ns, gone.size.get(model::kCpu) / 1000);
    }
    void evict(const Victim& victim) {
        ScenePod& pod = scene.pods[victim.pod];
        EXPECT_FALSE(ends.contains(pod.uid)) << pod.name << " was evicted twice";
        const std::string& claim = scene.pods[victim.claim].uid;
        evicted.emplace_back(pod.uid, claim);
        names.push_back(pod.name);
        pod.terminating = true;
        ends[pod.uid] = settings.now + takes;
    }
    // Who may start, in the order of the queue, where there is room.
    void schedule() {
        Scene told = scene;  // schedulers hear whose room is kept
        reclaiming.prepare(told, settings.now);
        for (const auto& admission : admit(scene, answer(scene, settings).accounts)) {
            ScenePod& pod = scene.pods[admission.pod];
            if (!admission.admitted) continue;
            for (const uint32_t node : pod.may_stand) {
                const auto kept = rooms_for_others(told);
                const auto room = kept.find(node);
                const bool is_theirs = told.pods[admission.pod].earmark != kNowhere;
                if (!is_theirs && room != kept.end() && !fits(pod.size, room->second)) continue;
                if (free(node) < pod.size.get(model::kCpu)) continue;
                told.pods[admission.pod].placed = true;
                told.pods[admission.pod].node = node;
                pod.node = node;
                pod.placed = pod.started = true;
                break;
            }
        }
    }
};

// The seed's T1 to T3.
TEST(Reclaiming, TheNewerGoesAfterTheGraceAndItsReplacementIsRefused) {
    Town town;
    town.node("n1", 2);
    town.pod("c1", 1, "n1");
    const std::string newer = town.pod("c1", 1, "n1").name;
    town.scene.namespaces = {"c1", "c2"};
    EXPECT_EQ(town.cycles(60), 0u) << "an empty namespace takes nothing from anybody";
    town.pod("c2", 1);
    EXPECT_EQ(town.cycles(30), 0u) << "within the grace";
    EXPECT_EQ(town.cycles(200), 1u);
    EXPECT_EQ(town.names, std::vector<std::string>{newer});
    EXPECT_EQ(town.used("c1"), 1);
    EXPECT_EQ(town.used("c2"), 1);
    EXPECT_EQ(town.waiting("c1"), 1) << "its replacement waits";
}

TEST(Reclaiming, GuaranteesComeBackWithAsManyEvictionsAsNeeded) {  // case 12
    Town town;
    town.node("n1", 10);
    town.consumer("a", 4);
    for (int i = 0; i < 10; ++i) town.pod("a", 1, "n1");
    for (int i = 0; i < 10; ++i) town.pod("b", 1);
    EXPECT_EQ(town.cycles(300), 3u);
    EXPECT_EQ(town.used("a"), 7);
    EXPECT_EQ(town.used("b"), 3);
}

TEST(Reclaiming, TheMostOverusedGivesMost) {  // case 13
    Town town;
    town.node("n1", 12);
    for (int i = 0; i < 7; ++i) town.pod("a", 1, "n1");
    for (int i = 0; i < 5; ++i) town.pod("b", 1, "n1");
    for (int i = 0; i < 4; ++i) town.pod("n", 1);
    EXPECT_EQ(town.cycles(300), 4u);
    EXPECT_EQ(town.used("a"), 4);
    EXPECT_EQ(town.used("b"), 4);
    EXPECT_EQ(town.used("n"), 4);
}

TEST(Reclaiming, WhatABudgetHoldsStaysAndOthersAreTried) {  // case 14, and a server that says so
    Town town;
    town.node("n1", 5);
    for (int i = 0; i < 5; ++i) town.pod("a", 1, "n1");
    for (int i = 0; i < 3; ++i) town.pod("b", 1);
    town.scene.budgets.push_back({"a/few", 1});
    for (auto& pod : town.scene.pods) {
        if (pod.ns == "a") pod.budgets = {0};
    }
    const auto victims = [&] {
        town.settings.now = town.settings.now + kCycle;
        Scene seen = town.scene;
        town.reclaiming.prepare(seen, town.settings.now);
        town.answer_now = answer(seen, town.settings);
        return town.reclaiming.due(seen, town.answer_now, town.settings.now);
    };
    EXPECT_TRUE(victims().empty());
    town.settings.now = town.settings.now + std::chrono::seconds(30);
    const auto first = victims();
    ASSERT_EQ(first.size(), 1u) << "the budget lets one go";
    const auto& account = *account_named(town.answer_now.accounts, "a");
    EXPECT_TRUE(std::any_of(account.conditions.begin(), account.conditions.end(),
                            [](const auto& one) { return one.type == "ReclaimBlockedByPDB"; }));
    const std::string refused = town.scene.pods[first.front().pod].uid;
    town.reclaiming.refused(refused, "the budget needs 5 healthy pods", town.settings.now);
    const auto second = victims();
    ASSERT_EQ(second.size(), 1u);
    EXPECT_NE(town.scene.pods[second.front().pod].uid, refused);
    EXPECT_EQ(town.reclaiming.refusals().at("a"), "the budget needs 5 healthy pods");
}

TEST(Reclaiming, NobodyGoesForWhatFitsNowhereAndAllOnOneNodeForWhatFits) {  // case 15
    Town town;
    town.node("n1", 4);
    town.node("n2", 4);
    for (const auto* node : {"n1", "n2"}) {
        for (int i = 0; i < 4; ++i) town.pod("a", 1, node);
    }
    town.pod("b", 6);
    EXPECT_EQ(town.cycles(100), 0u);
    town.pod("b", 4);
    EXPECT_EQ(town.cycles(100), 4u);
    EXPECT_EQ(town.used("b"), 4);
}

TEST(Reclaiming, WhatComesAndGoesTakesNothing) {  // case 17
    Town town;
    town.node("n1", 4);
    for (int i = 0; i < 4; ++i) town.pod("a", 1, "n1");
    for (int second = 0; second < 600; second += 4) {
        town.pod("b", 1);
        EXPECT_EQ(town.cycles(2), 0u);
        std::erase_if(town.scene.pods, [](const auto& pod) { return pod.ns == "b"; });
        EXPECT_EQ(town.cycles(2), 0u);
    }
}

TEST(Reclaiming, ACordonTakesNothing) {  // case 18
    Town town;
    town.node("n1", 4);
    town.node("n2", 4);
    for (const auto* node : {"n1", "n2"}) {
        for (int i = 0; i < 4; ++i) town.pod("a", 1, node);
    }
    town.scene.nodes[0].cordoned = true;
    EXPECT_EQ(town.cycles(100), 0u);
}

TEST(Reclaiming, AConsumersOwnGraceWins) {
    Town town;
    town.node("n1", 2);
    town.consumer("a", 0);
    town.scene.consumers.back().grace = std::chrono::seconds(5);
    for (int i = 0; i < 2; ++i) town.pod("a", 1, "n1");
    town.pod("b", 1);
    EXPECT_EQ(town.cycles(5), 0u);
    EXPECT_EQ(*town.reclaiming.standings().at("a").deadline, town.settings.now + kCycle);
    EXPECT_EQ(town.reclaiming.standings().at("a").amounts, cpu(1));
    EXPECT_EQ(town.cycle(), 1u);
}

TEST(Reclaiming, ALaterLeaderKeepsTheDeadline) {
    Town town;
    town.node("n1", 2);
    for (int i = 0; i < 2; ++i) town.pod("a", 1, "n1");
    town.pod("b", 1);
    town.cycles(20);
    const Overuse before = town.reclaiming.standings().at("a");
    Reclaiming later{std::chrono::seconds(30)};
    later.remember("a", before.overused_since, before.deadline);
    std::swap(town.reclaiming, later);
    EXPECT_EQ(town.cycle(), 0u);
    EXPECT_EQ(town.reclaiming.standings().at("a").deadline, before.deadline);
    EXPECT_EQ(town.reclaiming.standings().at("a").overused_since, before.overused_since);
    EXPECT_EQ(town.cycles(10), 1u);
}

TEST(Reclaiming, OnlySoManyGoInACycle) {
    Town town;
    town.node("n1", 60);
    for (int i = 0; i < 60; ++i) town.pod("a", 1, "n1");
    for (int i = 0; i < 30; ++i) town.pod("b", 1);
    town.cycles(30);
    EXPECT_EQ(town.cycle(), 20u) << "of one consumer";
    EXPECT_EQ(town.cycles(100), 10u);
}

// What has room and does not start would make others give for nothing.
TEST(Reclaiming, APodThatNeverStartsLeavesTheDemand) {
    Town town;
    town.node("n1", 4);
    town.pod("a", 1, "n1");
    const std::string idle = town.pod("b", 1).uid;
    const auto asks = [&] {
        Scene seen = town.scene;
        town.reclaiming.prepare(seen, town.settings.now);
        town.answer_now = answer(seen, town.settings);
        town.reclaiming.due(seen, town.answer_now, town.settings.now);
        return account_named(town.answer_now.accounts, "b")->demand.get(model::kCpu);
    };
    EXPECT_EQ(asks(), 1000);
    town.settings.now = town.settings.now + std::chrono::minutes(6);
    asks();
    EXPECT_EQ(asks(), 0);
    town.scene.nodes[0].cordoned = true;
    EXPECT_EQ(asks(), 1000) << "something changed";
}

// Random towns whose controllers make again whatever was evicted: all come to rest, nobody is evicted for the same pod
// twice, no guarantee is broken. BERTH_LOOPS=10000 for a longer run.
class Loop : public Town {
public:
    explicit Loop(uint64_t seed) : random_(seed) {
        const int nodes = pick(1, 4);
        for (int i = 0; i < nodes; ++i) node(fmt::format("n{}", i), pick(2, 12));
        const int tenants = pick(2, 5);
        int64_t left = total();
        for (int i = 0; i < tenants; ++i) {
            const std::string name = fmt::format("t{}", i);
            const int64_t reserved = pick(0, 2) == 0 ? pick(0, static_cast<int>(left / 2)) : 0;
            left -= reserved;
            consumer(name, reserved, pick(1, 3));
            scene.namespaces.push_back(name);
        }
        takes = std::chrono::seconds(pick(1, 40));
    }
    void change() {
        const std::string ns = fmt::format("t{}", pick(0, static_cast<int>(scene.consumers.size()) - 1));
        if (pick(0, 3) == 0) {
            std::erase_if(scene.pods,
                          [&](const auto& pod) { return pod.ns == ns && !pod.terminating && pick(0, 1) == 0; });
        } else {
            const int count = pick(1, 8), size = pick(1, 4);
            for (int i = 0; i < count; ++i) pod(ns, size);
        }
    }
    int pick(int least, int most) {
        return least + static_cast<int>(random_.below(static_cast<uint64_t>(most - least + 1)));
    }
    int64_t total() const {
        int64_t out = 0;
        for (const auto& node : scene.nodes) out += node.allocatable.get(model::kCpu) / 1000;
        return out;
    }
    // What each has that is not going.
    std::map<std::string, int64_t> kept() const {
        std::map<std::string, int64_t> out;
        for (const auto& pod : scene.pods) {
            if (pod.placed && !pod.terminating) out[pod.ns] += pod.size.get(model::kCpu);
        }
        return out;
    }

private:
    base::Random random_;
};

void run_loop(uint64_t seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Loop town(seed);
    std::set<std::string> served;
    for (int round = 0; round < 4; ++round) {
        town.change();
        size_t quiet = 0;
        for (int second = 0; second < 1200 && quiet < 120; ++second) {
            const auto before = town.kept();
            const size_t known = town.evicted.size();
            const size_t gone = town.cycle();
            quiet = gone == 0 ? quiet + 1 : 0;
            std::set<std::string> claims;
            for (size_t i = known; i < town.evicted.size(); ++i) claims.insert(town.evicted[i].second);
            for (const auto& claim : claims) {
                ASSERT_TRUE(served.insert(claim).second) << claim << " made others go twice";
            }
            if (gone == 0) continue;
            const auto after = town.kept();
            for (const auto& consumer : town.scene.consumers) {
                const auto& name = consumer.meta.name;
                const int64_t had = before.contains(name) ? before.at(name) : 0;
                const int64_t has = after.contains(name) ? after.at(name) : 0;
                const int64_t reserved = consumer.reserved.amounts.get(model::kCpu);
                ASSERT_TRUE(has >= had || has >= reserved) << name << " has " << has << " of " << reserved;
            }
        }
        ASSERT_GE(quiet, 120u) << "it does not come to rest";
    }
}

TEST(Reclaiming, LoopsComeToRest) {
    const char* wanted = std::getenv("BERTH_LOOPS");
    const char* first = std::getenv("BERTH_SEED");
    const uint64_t count = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 60;
    const uint64_t begin = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
    for (uint64_t seed = begin; seed < begin + count && !testing::Test::HasFatalFailure(); ++seed) run_loop(seed);
}

}  // namespace
}  // namespace berth::share
