#include "control/low_node_load.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "control/descheduler_config.h"
#include "control/migration.h"
#include "control/test_objects.h"
#include "ledger/view.h"
#include "model/times.h"

namespace berth::control {
namespace {

constexpr int64_t kGibi = int64_t{1} << 30;

LoadRules rules() {
    LoadRules out;
    out.enable = true;
    out.low = {45, 60};
    out.high = {65, 80};
    out.abnormal = 1;
    return out;
}

// 16 cpu and 64Gi; `cpu` in use of the former.
LoadedNode node(const std::string& name, int64_t cpu, int64_t abnormal = 1) {
    LoadedNode out;
    out.name = name;
    out.size = {16'000, 64 * kGibi};
    out.used = {cpu, 4 * kGibi};
    out.free = {16'000, 64 * kGibi};
    out.abnormal = abnormal;
    return out;
}

LoadedPod pod(const std::string& name, int64_t cpu, model::PriorityBand band = model::PriorityBand::Prod) {
    LoadedPod out;
    out.name = name;
    out.band = band;
    out.used = {cpu, kGibi};
    out.asked = {cpu, kGibi};
    return out;
}

std::vector<std::string> moved(const std::vector<LoadedNode>& nodes, const LoadRules& with) {
    std::vector<std::string> out;
    for (const auto& move : moves_for(nodes, with, with, [](const auto&, size_t) { return true; }))
        out.push_back(nodes[move.node].pods[move.pod].name);
    return out;
}

using Names = std::vector<std::string>;

// 65 % of 16 cpu are 10,400; of 12, that the annotation leaves, 7,800.
TEST(LowNodeLoad, LevelsAreOfWhatPodsMayHave) {
    auto reserved = node("b", 0);
    reserved.size.cpu = 12'000;
    const auto levels = levels_of({node("a", 0), reserved}, rules(), false);
    EXPECT_EQ(levels[0].high.cpu, 10'400);
    EXPECT_EQ(levels[1].high.cpu, 7'800);
    EXPECT_EQ(levels[1].low.cpu, 5'400);
    EXPECT_FALSE(is_high({10'400, 0}, levels[0], rules().high)) << "not above it";
    EXPECT_TRUE(is_high({10'401, 0}, levels[0], rules().high));
    EXPECT_TRUE(is_low({7'200, 0}, levels[0], rules().low));
    EXPECT_FALSE(is_low({7'200, 60 * kGibi}, levels[0], rules().low)) << "in all of them";
}

// 12,000 and 4,000 of 16,000: 75 % and 25 %, the mean is 50 %.
TEST(LowNodeLoad, ByDeviationFromTheMean) {
    LoadRules with = rules();
    with.by_deviation = true;
    with.low = with.high = {10, std::nullopt};
    const auto levels = levels_of({node("a", 12'000), node("b", 4'000)}, with, false);
    EXPECT_EQ(levels[0].high.cpu, 9'600);
    EXPECT_EQ(levels[0].low.cpu, 6'400);
}

TEST(LowNodeLoad, TheBusiestGivesUntilItIsHighNoMore) {
    auto busy = node("busy", 12'000);
    busy.pods = {pod("large", 1'500), pod("larger", 1'700), pod("cheap", 100, model::PriorityBand::Batch)};
    const auto idle = node("idle", 2'000);
    EXPECT_EQ(moved({busy, idle}, rules()), (Names{"cheap", "larger"})) << "12,000 - 100 - 1,700 is below 10,400";
    LoadRules with = rules();
    with.limits.per_node = 1;
    EXPECT_EQ(moved({busy, idle}, with), Names{"cheap"});
    busy.leaving = 1;
    EXPECT_EQ(moved({busy, idle}, with), Names{}) << "one is on its way already";
}

TEST(LowNodeLoad, OnlyWhoWasBusyLongEnough) {
    LoadRules with = rules();
    with.abnormal = 5;
    auto busy = node("busy", 12'000, 5);
    busy.pods = {pod("p", 2'000)};
    EXPECT_EQ(moved({busy, node("idle", 2'000)}, with), Names{});
    busy.abnormal = 6;
    EXPECT_EQ(moved({busy, node("idle", 2'000)}, with), Names{"p"});
}

TEST(LowNodeLoad, NothingWithoutNodesThatAreLow) {
    auto busy = node("busy", 12'000);
    busy.pods = {pod("p", 2'000)};
    auto idle = node("idle", 2'000);
    EXPECT_EQ(moved({busy, node("middle", 9'000)}, rules()), Names{});
    idle.schedulable = false;
    EXPECT_EQ(moved({busy, idle}, rules()), Names{});
    LoadRules with = rules();
    with.number_of_nodes = 1;
    EXPECT_EQ(moved({busy, node("idle", 2'000)}, with), Names{}) << "not more than one";
    EXPECT_EQ(moved({busy, node("idle", 2'000), node("idler", 0)}, with), Names{"p"});
}

TEST(LowNodeLoad, NobodyIsMovedToWhereHeDoesNotFit) {
    auto busy = node("busy", 15'000);
    busy.pods = {pod("p", 5'000)};
    auto idle = node("idle", 6'000);
    EXPECT_EQ(moved({busy, idle}, rules()), Names{}) << "11,000 would be high";
    idle.used.cpu = 2'000;
    idle.free.cpu = 4'000;
    EXPECT_EQ(moved({busy, idle}, rules()), Names{}) << "it asks for more than is free";
    idle.free.cpu = 5'000;
    EXPECT_EQ(moved({busy, idle}, rules()), Names{"p"});
    EXPECT_TRUE(moves_for({busy, idle}, rules(), rules(), [](const auto&, size_t) { return false; }).empty());
}

// Two idle nodes take 8,400 and 8,400 below high; a third pod of 6,000 would exceed what is left, 4,800.
TEST(LowNodeLoad, TheBudgetOfTheLowOnesIsNotExceeded) {
    LoadRules with = rules();
    with.limits.per_node = 9;
    std::vector<LoadedNode> nodes;
    for (const auto* name : {"b1", "b2", "b3"}) {
        nodes.push_back(node(name, 16'000));
        nodes.back().pods = {pod(fmt::format("{}-p", name), 6'000)};
    }
    nodes.push_back(node("i1", 2'000));
    nodes.push_back(node("i2", 2'000));
    EXPECT_EQ(moved(nodes, with), (Names{"b1-p", "b2-p"}));
}

TEST(LowNodeLoad, ProductionHasPercentagesOfItsOwn) {
    LoadRules with = rules();
    with.high = {95, 95};
    with.prod_low = {20, std::nullopt};
    with.prod_high = {50, std::nullopt};
    auto busy = node("busy", 14'000);
    busy.prod = {9'000, kGibi};
    busy.pods = {pod("batch", 4'000, model::PriorityBand::Batch), pod("prod", 2'000)};
    EXPECT_EQ(moved({busy, node("idle", 1'000)}, with), Names{"prod"});
}

constexpr const char* kConfig = R"({"apiVersion":"descheduler/v1alpha2","kind":"DeschedulerConfiguration",
 "deschedulingInterval":"30s","profiles":[{"name":"p","plugins":{"balance":{"enabled":[{"name":"LowNodeLoad"}]}},
 "pluginConfig":[{"name":"LowNodeLoad","args":{"lowThresholds":{"cpu":45},"highThresholds":{"cpu":65,"memory":80},
 "anomalyCondition":{"consecutiveAbnormalities":1},"evictableNamespaces":{"exclude":["kube-system"]}}},
 {"name":"MigrationController","args":{"maxMigratingPerNode":3,"maxMigratingPerWorkload":"20%","defaultJobTTL":"2m"}}]}]})";

TEST(DeschedulerConfig, ReadsWhatItHeedsAndRefusesTheRest) {
    const auto read = read_descheduler_config(*base::parse_json(kConfig));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_TRUE(read->load.enable);
    EXPECT_EQ(read->load.high.cpu, 65);
    EXPECT_FALSE(read->load.low.memory);
    EXPECT_EQ(read->load.interval, std::chrono::seconds(30));
    EXPECT_EQ(read->load.limits.per_node, 3);
    EXPECT_EQ(read->load.job_ttl, "2m0s");
    EXPECT_EQ(moves_per_workload(20, read->limits), 4);
    const auto refused = [](const std::string& args) {
        const auto bad = read_descheduler_config(*base::parse_json(
            R"({"kind":"DeschedulerConfiguration","profiles":[{"pluginConfig":[{"name":"LowNodeLoad","args":)" + args +
            "}]}]}"));
        return bad ? "" : bad.error().message;
    };
    EXPECT_EQ(refused(R"({"highThresholds":{"cpu":101}})"),
              "LowNodeLoad.highThresholds.cpu: 101 is no whole number from 0 to 100");
    EXPECT_EQ(refused(R"({"detectorCacheTimeout":"5m"})"), "LowNodeLoad.detectorCacheTimeout: nothing here heeds it");
    EXPECT_EQ(refused(R"({"nodePools":[{"highThresholds":{"disk":5}}]})"),
              "LowNodeLoad.nodePools[0].highThresholds.disk: nothing here heeds it");
    EXPECT_EQ(refused(R"({"podSelectors":[{"selector":{"matchExpressions":[{"key":"a","operator":"Is"}]}}]})"),
              "LowNodeLoad.podSelectors[0].selector: \"Is\" is not a valid label selector operator");
    EXPECT_EQ(refused(R"({"nodePools":{}})"), "LowNodeLoad.nodePools: {} is no list");
    EXPECT_EQ(refused(R"({"lowThresholds":{"cpu":70},"highThresholds":{"cpu":60}})"),
              "LowNodeLoad.highThresholds: below the low ones");
}

DeschedulerConfig configured(const std::string& load, const std::string& migration = "{}") {
    const auto read = read_descheduler_config(*base::parse_json(
        R"({"kind":"DeschedulerConfiguration","profiles":[{"pluginConfig":[{"name":"LowNodeLoad","args":)" + load +
        R"(},{"name":"MigrationController","args":)" + migration + "}]}]}"));
    EXPECT_TRUE(read) << read.error().message;
    return read ? *read : DeschedulerConfig();
}

TEST(DeschedulerConfig, PoolsSelectorsAndPaces) {
    const auto read = configured(
        R"({"dryRun":true,"resourceWeights":{"cpu":3},"anomalyCondition":{"consecutiveAbnormalities":2},
            "nodePools":[{"name":"gpu","nodeSelector":{"matchExpressions":[{"key":"gpu","operator":"Exists"}]},
              "lowThresholds":{"cpu":10},"highThresholds":{"cpu":20},"anomalyCondition":{"consecutiveAbnormalities":1}},
              {"name":"rest","useDeviationThresholds":true,"highThresholds":{"cpu":5},"resourceWeights":{"cpu":1}}],
            "podSelectors":[{"name":"web","selector":{"matchLabels":{"app":"web"}}}]})",
        R"({"evictQPS":"0.5","evictBurst":3,"maxUnavailablePerWorkload":"30%","ignorePvcPods":true,
            "objectLimiters":{"workload":{"duration":"5m","maxMigrating":1}},"priorityThreshold":{"value":9500},
            "skipCheckExpectedReplicas":true,"evictLocalStoragePods":true,"evictSystemCriticalPods":true})");
    EXPECT_TRUE(read.load.dry_run);
    ASSERT_EQ(read.load.pools.size(), 2u);
    EXPECT_TRUE(read.load.pools[0].nodes.matches(Labels({{"gpu", "a100"}})));
    EXPECT_FALSE(read.load.pools[0].nodes.matches({}));
    EXPECT_EQ(read.load.pools[0].high.cpu, 20);
    EXPECT_EQ(read.load.pools[0].abnormal, 1);
    EXPECT_EQ(read.load.pools[0].cpu_weight, 3) << "as beside the pools";
    EXPECT_TRUE(read.load.pools[1].by_deviation);
    EXPECT_EQ(read.load.pools[1].abnormal, 2);
    EXPECT_EQ(read.load.pools[1].cpu_weight, 1);
    EXPECT_EQ(read.load.movable.labels.size(), 1u);
    EXPECT_EQ(read.load.movable.below_priority, 9500);
    EXPECT_FALSE(read.load.movable.claims);
    EXPECT_TRUE(read.load.movable.few_replicas && read.load.movable.local_storage && read.load.movable.critical);
    EXPECT_EQ(read.pace.milli_per_second, 500);
    EXPECT_EQ(read.pace.burst, 3);
    EXPECT_EQ(read.limits.unavailable.of(10), 3);
    EXPECT_EQ(read.limits.in_window.of(10), 1);
}

// Two a second and a burst of 2: two at once, then one each 500 ms; who waited long has no more than the burst.
TEST(EvictionPace, IsABucket) {
    EvictionTokens tokens({2000, 2});
    const auto at = [](int64_t ms) { return base::Instant{ms * 1'000'000}; };
    EXPECT_FALSE(tokens.take(at(1000)));
    EXPECT_FALSE(tokens.take(at(1000)));
    EXPECT_EQ(tokens.take(at(1000)), at(1500));
    EXPECT_EQ(tokens.take(at(1499)), at(1500));
    EXPECT_FALSE(tokens.take(at(1500)));
    EXPECT_EQ(tokens.take(at(1500)), at(2000));
    EXPECT_FALSE(tokens.take(at(9000)));
    EXPECT_FALSE(tokens.take(at(9000)));
    EXPECT_TRUE(tokens.take(at(9000)));
}

class LowNodeLoadTest : public testing::Test {
protected:
    LowNodeLoadTest() {
        LoadRules with = rules();
        with.abnormal = 2;
        reconciler = low_node_load_reconciler(with);
        node("n1");
        node("n2");
        pod("a", "n1");
        pod("b", "n1");
        pod("daemon", "n1", "DaemonSet");
    }
    void put(const std::string& resource, const std::string& text) { keep(objects, resource, text, ++revision); }
    void node(const std::string& name, const JsonObject& annotations = {}, const std::string& spec = "{}",
              const std::string& labels = "{}") {
        node_labels[name] = labels;
        put("nodes", R"({"kind":"Node","metadata":{"name":")" + name + R"(","uid":"uid-)" + name + R"(","labels":)" +
                         labels + R"(,"annotations":)" + base::to_text(annotations) + R"(},"spec":)" + spec +
                         R"(,"status":{"capacity":{"cpu":"16","memory":"64Gi","pods":"110"},)"
                         R"("allocatable":{"cpu":"16","memory":"64Gi","pods":"110"}}})");
    }
    void pod(const std::string& name, const std::string& on, const std::string& kind = "ReplicaSet") {
        put("pods", R"({"kind":"Pod","metadata":{"namespace":"ns","name":")" + name + R"(","uid":"uid-)" + name +
                        R"(","ownerReferences":[{"apiVersion":"apps/v1","kind":")" + kind +
                        R"(","name":"o","uid":"o","controller":true}]},"spec":{"nodeName":")" + on +
                        R"(","containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"2"}}}]},)"
                        R"("status":{"phase":"Running"}})");
    }
    void metric(const std::string& name, const std::string& system, const std::string& pods = "[]") {
        put(kNodeMetrics, R"({"metadata":{"name":")" + name + R"("},"status":{"updateTime":")" + model::time_text(now) +
                              R"(","nodeMetric":{"nodeUsage":{"resources":{"cpu":"16","memory":"8Gi"}},"systemUsage":)"
                              R"({"resources":{"cpu":")" +
                              system + R"(","memory":"1Gi"}}},"podsMetric":)" + pods + "}}");
    }
    static std::string using_cpu(const std::string& pod, const std::string& cpu) {
        return R"({"namespace":"ns","name":")" + pod + R"(","podUsage":{"resources":{"cpu":")" + cpu +
               R"(","memory":"1Gi"}}})";
    }
    // n1 uses 8 + 2 + 3, and what the daemon asks: 15 of 16; a pod that has gone counts no more.
    void measure() {
        metric("n1", "8", "[" + using_cpu("a", "2") + "," + using_cpu("b", "3") + "," + using_cpu("gone", "9") + "]");
        metric("n2", "1");
    }
    // Does what is wanted; the names of new jobs.
    Names look() {
        Names out;
        for (const auto& write : reconciler->reconcile({"", "all"}, objects, now).writes) {
            if (write.resource == "nodes") {
                const Json* note = base::find(write.body, {"metadata", "annotations", kBusyNode});
                node(write.name, note->is_null() ? JsonObject() : JsonObject{{kBusyNode, *note}}, "{}",
                     node_labels[write.name]);
                continue;
            }
            out.emplace_back(base::find_string(write.body, {"metadata", "name"}));
            put(kMigrationJobs, base::to_text(write.body));
        }
        return out;
    }
    Names after_three_looks() {
        for (int i = 0; i < 2; ++i) {
            measure();
            EXPECT_EQ(look(), Names{});
            EXPECT_EQ(look(), Names{}) << "at the same time it is the same look";
            now = now + std::chrono::seconds(60);
        }
        measure();
        return look();
    }

    std::map<std::string, std::string> node_labels;
    uint64_t revision = 0;
    base::Time now = *model::parse_time("2026-01-01T00:00:00Z");
    Objects objects;
    std::unique_ptr<Reconciler> reconciler;
};

TEST_F(LowNodeLoadTest, MovesAfterSoManyLooksAndRests) {
    EXPECT_EQ(after_three_looks(), (Names{"low-node-load-uid-b", "low-node-load-uid-a"}))
        << "the one that uses more first; a DaemonSet's never";
    EXPECT_EQ(look(), Names{}) << "who is on his way counts no more";
    const auto job = objects.find(kMigrationJobs, "", "low-node-load-uid-b");
    EXPECT_EQ(job->meta.labels.get(kRelieves), "n1");
    EXPECT_EQ(base::find_string(job->document(), {"spec", "mode"}), "ReservationFirst");
    EXPECT_EQ(job->meta.annotations.get(kMovesTo), "n2") << "where it was found to fit";
}

// n2 uses 1 and may use 10.4: with 5 on their way there, a and b, which use 5, are too many for it.
TEST_F(LowNodeLoadTest, WhoIsOnHisWayToANodeCountsThere) {
    node("n3");
    for (const auto* each : {"x", "y"}) pod(each, "n3");
    put(kMigrationJobs, R"({"metadata":{"name":"j","uid":"j","annotations":{"berth.dev/moves-to":"n2"}},)"
                        R"("spec":{"podRef":{"namespace":"ns","name":"x"}}})");
    const auto measured = [&](const char* x) {
        measure();
        metric("n3", "5", "[" + using_cpu("x", x) + "," + using_cpu("y", "3") + "]");
    };
    const auto after = [&](const char* x) {
        for (int i = 0; i < 2; ++i) {
            measured(x);
            look();
            now = now + std::chrono::seconds(60);
        }
        measured(x);
        return look();
    };
    EXPECT_EQ(after("7"), Names{}) << "1 + 7 is not low";
    now = now + std::chrono::hours(1);
    EXPECT_EQ(after("4"), (Names{"low-node-load-uid-b", "low-node-load-uid-a"})) << "1 + 4 + 3 + 2 is not above 10.4";
}

TEST_F(LowNodeLoadTest, ANodeThatWasFineBetweenBeginsAnew) {
    measure();
    look();
    now = now + std::chrono::seconds(60);
    metric("n1", "1");
    metric("n2", "1");
    look();
    EXPECT_FALSE(objects.ledger().node(objects.ledger().row_of("n1")).meta.annotations.has(kBusyNode));
    EXPECT_EQ(after_three_looks().size(), 2u);
}

TEST_F(LowNodeLoadTest, WhatIsReservedIsNotThere) {
    node("n2", {{"node.koordinator.sh/reservation", R"({"resources":{"cpu":"14"}})"}});
    EXPECT_EQ(after_three_looks(), Names{}) << "1 of 2 is more than 45 %";
}

TEST_F(LowNodeLoadTest, NobodyGoesWhereHeMayNotBe) {
    node("n2", {}, R"({"taints":[{"key":"k","effect":"NoSchedule"}]})");
    EXPECT_EQ(after_three_looks(), Names{});
}

TEST_F(LowNodeLoadTest, AnOldMetricSaysNothing) {
    measure();
    now = now + std::chrono::seconds(180);
    EXPECT_EQ(look(), Names{});
    EXPECT_FALSE(objects.ledger().node(objects.ledger().row_of("n1")).meta.annotations.has(kBusyNode));
}

TEST_F(LowNodeLoadTest, DryRunOnlySays) {
    LoadRules with = rules();
    with.abnormal = 2;
    with.dry_run = true;
    reconciler = low_node_load_reconciler(with);
    EXPECT_EQ(after_three_looks(), Names{});
    const auto& notes = objects.ledger().node(objects.ledger().row_of("n1")).meta.annotations;
    EXPECT_NE(notes.get(kBusyNode).find(R"("times":3)"), std::string::npos) << notes.get(kBusyNode);
    EXPECT_NE(notes.get(kBusyNode).find(R"("wouldMove":["ns/b","ns/a"])"), std::string::npos) << notes.get(kBusyNode);
}

TEST_F(LowNodeLoadTest, OnlyPodsThatMayBeMoved) {
    LoadRules with = rules();
    with.abnormal = 2;
    with.movable.labels = {*Selector::parse("app=web")};
    reconciler = low_node_load_reconciler(with);
    EXPECT_EQ(after_three_looks(), Names{}) << "none is labelled so";
}

TEST_F(LowNodeLoadTest, TheOnlyPodOfItsWorkloadStays) {
    for (const auto* other : {"a", "daemon"}) objects.remove("pods", "ns", other);
    EXPECT_EQ(after_three_looks(), Names{}) << "b would be gone until it is made again";
    LoadRules with = rules();
    with.abnormal = 1;
    with.movable.few_replicas = true;
    reconciler = low_node_load_reconciler(with);
    EXPECT_EQ(look(), Names{}) << "it was looked at a moment ago";
    now = now + std::chrono::seconds(60);
    measure();
    EXPECT_EQ(look(), Names{"low-node-load-uid-b"});
}

TEST_F(LowNodeLoadTest, AWorkloadThatMayBeUnavailableAsAWholeStays) {
    LoadRules with = rules();
    with.abnormal = 2;
    with.limits.unavailable.percent = 100;
    reconciler = low_node_load_reconciler(with);
    EXPECT_EQ(after_three_looks(), Names{});
}

// n1 is busy by its pool's measure and not by that of the rest; each pool looks for room among its own.
TEST_F(LowNodeLoadTest, PoolsAreLookedAtApart) {
    LoadRules with = rules();
    with.abnormal = 2;
    with.low = with.high = {};
    LoadMeasure pool = rules();
    pool.abnormal = 2;
    pool.nodes = *Selector::parse("pool=a");
    with.pools = {pool};
    reconciler = low_node_load_reconciler(with);
    EXPECT_EQ(after_three_looks(), Names{}) << "they are in no pool";
    node("n1", {}, "{}", R"({"pool":"a"})");
    EXPECT_EQ(after_three_looks(), Names{}) << "nobody else is in it";
    node("n2", {}, "{}", R"({"pool":"a"})");
    now = now + std::chrono::seconds(60);
    measure();
    EXPECT_EQ(look(), (Names{"low-node-load-uid-b", "low-node-load-uid-a"}));
}

}  // namespace
}  // namespace berth::control
