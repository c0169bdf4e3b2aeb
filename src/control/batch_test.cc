#include "control/batch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "control/batch_zones.h"
#include "control/objects.h"
#include "control/test_cluster.h"
#include "control/test_objects.h"
#include "model/pod.h"

namespace berth::control {
namespace {

constexpr int64_t kGiga = 1'000'000'000;

BatchInput cpu_input() {
    BatchInput in;
    in.capacity = 100'000;
    in.system_used = 7'000;
    in.is_cpu = true;
    in.pods = {{model::Qos::LS, model::PriorityBand::Prod, 40'000, 33'000},
               {model::Qos::BE, model::PriorityBand::Batch, 9'000, 9'000}};
    return in;
}

BatchInput memory_input() {
    BatchInput in;
    in.capacity = 120 * kGiga;
    in.system_used = 12 * kGiga;
    in.pods = {{model::Qos::LS, model::PriorityBand::Prod, 50 * kGiga, 33 * kGiga}};
    return in;
}

TEST(BatchAmount, CapacityLessMarginSystemAndDearPods) {
    auto cpu = cpu_input();
    EXPECT_EQ(batch_amount(cpu, {}), 25'000);
    cpu.reserved = 20'000;
    EXPECT_EQ(batch_amount(cpu, {}), 12'000);
    cpu.kubelet_reserved = 21'000;
    EXPECT_EQ(batch_amount(cpu, {}), 11'000) << "the largest of the three";
    cpu.listed = 5'000;
    EXPECT_EQ(batch_amount(cpu, {}), 6'000);
    cpu.reserved = 90'000;
    EXPECT_EQ(batch_amount(cpu, {}), 0);
    auto memory = memory_input();
    EXPECT_EQ(batch_amount(memory, {}), 33 * kGiga);
    memory.reserved = 20 * kGiga;
    EXPECT_EQ(batch_amount(memory, {}), 25 * kGiga);
}

TEST(BatchAmount, Policies) {
    auto cpu = cpu_input();
    EXPECT_EQ(batch_amount(cpu, {.policy = BatchPolicy::MaxUsageRequest}), 18'000);
    cpu.pods[0].used.reset();
    EXPECT_EQ(batch_amount(cpu, {}), 18'000) << "no metric: what it asks";
    EXPECT_EQ(batch_amount(cpu, {.policy = BatchPolicy::MaxUsageRequest}), 18'000);
    cpu.pods[0] = {model::Qos::LSE, model::PriorityBand::Prod, 40'000, 1'000};
    EXPECT_EQ(batch_amount(cpu, {}), 18'000) << "an LSE pod has its cores, used or not";
    auto memory = memory_input();
    memory.reserved = 2 * kGiga;
    EXPECT_EQ(batch_amount(memory, {.policy = BatchPolicy::Request}), (120 - 42 - 2 - 50) * kGiga);
    EXPECT_EQ(batch_amount(memory, {.most_percent = 10}), 12 * kGiga);
}

// margin = 1001 x 35 / 100 = 350.35 -> 350; 1001 - 350 = 651. Of 150 %: -50 %, -500.5 -> -500.
TEST(BatchAmount, EachProductIsCutTowardsZero) {
    BatchInput in;
    in.capacity = 1001;
    EXPECT_EQ(batch_amount(in, {}), 651);
    EXPECT_EQ(batch_amount(in, {.reclaim_percent = 150}), 1501);
    EXPECT_EQ(batch_amount(in, {.reclaim_percent = 100, .most_percent = 33}), 330);
    in.capacity = int64_t{1} << 60;
    EXPECT_EQ(batch_amount(in, {.reclaim_percent = 100}), int64_t{1} << 60) << "no product overflows";
}

TEST(MidAmount, WhatProdDoesNotUse) {
    auto in = cpu_input();
    in.node_used = 49'000;
    EXPECT_EQ(mid_amount(in, {}), 0) << "nobody said what can be had back";
    in.prod_reclaimable = 10'000;
    EXPECT_EQ(mid_amount(in, {}), 10'000);
    in.prod_reclaimable = 80'000;
    EXPECT_EQ(mid_amount(in, {}), 51'000) << "not more than is idle";
    EXPECT_EQ(mid_amount(in, {.mid_percent = 50}), 50'000);
    EXPECT_EQ(mid_amount(in, {.mid_unallocated_percent = 10}), 51'000 + 5'300) << "a tenth of 100 - 7 - 40";
}

TEST(BatchStrategy, AnnotationThenLabels) {
    std::string fault;
    auto strategy = strategy_of({}, {}, fault);
    EXPECT_EQ(strategy.cpu.reclaim_percent, 60);
    EXPECT_EQ(strategy.memory.reclaim_percent, 65);
    strategy = strategy_of({{std::string(kColocation),
                             R"({"enable":false,"cpuReclaimThresholdPercent":70,"memoryCalculatePolicy":"request"})"}},
                           {{"node.koordinator.sh/memory-reclaim-ratio", "0.5"}}, fault);
    EXPECT_TRUE(fault.empty()) << fault;
    EXPECT_FALSE(strategy.enable);
    EXPECT_EQ(strategy.cpu.reclaim_percent, 70);
    EXPECT_EQ(strategy.memory.reclaim_percent, 50);
    EXPECT_EQ(strategy.memory.policy, BatchPolicy::Request);
    strategy_of({{std::string(kColocation), R"({"cpuCalculatePolicy":"often"})"}}, {}, fault);
    EXPECT_NE(fault.find("\"often\""), std::string::npos);
}

class BatchTest : public testing::Test {
protected:
    void put(const std::string& resource, const std::string& text) { keep(objects, resource, text, ++revision); }
    void node(const std::string& status, const std::string& annotations = "{}") {
        put("nodes", R"({"kind":"Node","metadata":{"name":"n1","uid":"u","annotations":)" + annotations +
                         R"(},"status":{"capacity":{"cpu":"100","memory":"120G")" + status +
                         R"(},"allocatable":{"cpu":"100","memory":"120G")" + status + "}" + conditions + "}}");
    }
    void metric(const std::string& time) {
        put("slo.koordinator.sh/nodemetrics",
            R"({"kind":"NodeMetric","metadata":{"name":"n1","uid":"m"},"status":{"updateTime":")" + time +
                R"(","nodeMetric":{"nodeUsage":{"resources":{"cpu":"40","memory":"45G"}},)"
                R"("systemUsage":{"resources":{"cpu":"7","memory":"12G"}}},"podsMetric":[)"
                R"({"namespace":"ns","name":"gone","priority":"koord-prod","qos":"LS","podUsage":{"resources":{"cpu":"33","memory":"33G"}}}]}})");
    }
    Reconciled reconcile() { return batch_reconciler()->reconcile({"", "n1"}, objects, now); }
    std::string written() {
        const auto out = reconcile();
        if (out.writes.empty()) return "";
        const auto& status = out.writes[0].body.at("status");
        return base::to_text(status.at("allocatable"));
    }

    const std::string strategy = R"({"node.koordinator.sh/colocation-strategy":"{\"cpuReclaimThresholdPercent\":65}")";
    std::string conditions;
    Objects objects;
    uint64_t revision = 0;
    base::Time now = *model::parse_time("2026-01-01T00:10:00Z");
};

constexpr const char* kFirst =
    R"({"kubernetes.io/batch-cpu":"25000","kubernetes.io/batch-memory":"33000000000","kubernetes.io/mid-cpu":"0","kubernetes.io/mid-memory":"0"})";

TEST_F(BatchTest, AMetricBecomesResources) {
    node("", strategy + "}");
    EXPECT_EQ(written(), "") << "a node without a metric is left alone";
    metric("2026-01-01T00:09:00Z");
    EXPECT_EQ(written(), kFirst);
    EXPECT_EQ(*reconcile().again, *model::parse_time("2026-01-01T00:24:00Z"));
    node("", strategy + R"(,"node.koordinator.sh/reservation":"{\"reservedCPUs\":\"0-19\"}"})");
    EXPECT_TRUE(written().starts_with(R"({"kubernetes.io/batch-cpu":"12000")")) << written();
}

TEST_F(BatchTest, SmallChangesWaitAndLargeOnesDoNot) {
    const auto have = [&](int cpu, const char* since) {
        conditions = fmt::format(
            R"(,"conditions":[{{"type":"BerthBatchResources","status":"True","lastHeartbeatTime":"{}"}}])", since);
        node(fmt::format(R"(,"kubernetes.io/batch-cpu":"{}","kubernetes.io/batch-memory":"33000000000",)"
                         R"("kubernetes.io/mid-cpu":"0","kubernetes.io/mid-memory":"0")",
                         cpu),
             strategy + "}");
    };
    metric("2026-01-01T00:09:00Z");
    have(25'000, "2026-01-01T00:00:00Z");
    EXPECT_EQ(written(), "") << "what is so is not written";
    have(23'000, "2026-01-01T00:08:00Z");
    EXPECT_EQ(written(), "") << "2,000 of 23,000";
    EXPECT_EQ(*reconcile().again, *model::parse_time("2026-01-01T00:13:00Z"));
    have(23'000, "2026-01-01T00:05:00Z");
    EXPECT_EQ(written(), kFirst) << "300 s old";
    have(22'000, "2026-01-01T00:09:59Z");
    EXPECT_EQ(written(), kFirst) << "3,000 of 22,000 is more than a tenth";
}

TEST_F(BatchTest, AnOldMetricTakesItAllAway) {
    metric("2026-01-01T00:09:00Z");
    node(R"(,"kubernetes.io/batch-cpu":"25000")", strategy + "}");
    now = *model::parse_time("2026-01-01T00:24:00Z");
    EXPECT_EQ(
        written(),
        R"({"kubernetes.io/batch-cpu":null,"kubernetes.io/batch-memory":null,"kubernetes.io/mid-cpu":null,"kubernetes.io/mid-memory":null})");
    node("", strategy + "}");
    EXPECT_EQ(written(), "");
}

TEST_F(BatchTest, WhatPodsAskCountsUntilTheyAreMeasured) {
    node("", strategy + "}");
    metric("2026-01-01T00:09:00Z");
    put("pods",
        R"({"kind":"Pod","metadata":{"namespace":"ns","name":"new","uid":"p"},"spec":{"nodeName":"n1","priority":9500,)"
        R"("containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"5","memory":"1G"}}}]},"status":{"phase":"Running"}})");
    EXPECT_TRUE(
        written().starts_with(R"({"kubernetes.io/batch-cpu":"20000","kubernetes.io/batch-memory":"32000000000")"))
        << written();
}

// Two zones of 50 cpu, system 7, LS pods 33 anywhere, 65 %: 50 - 17.5 - 3.5 - 16.5 = 12.5; with 0-19 of the first
// reserved 50 - 17.5 - 20 - 16.5 < 0.
TEST(BatchZones, TheSameFormulaForAZone) {
    const auto cpu = cpu_input();
    const auto amount = [&](const BatchInput& in, std::optional<int64_t> reserved, int32_t numa) {
        return batch_amount(zone_input(in, {50'000, reserved, numa}, 2), {});
    };
    EXPECT_EQ(amount(cpu, std::nullopt, 0), 12'500);
    EXPECT_EQ(amount(cpu, 20'000, 0), 0);
    EXPECT_EQ(amount(cpu, 4'000, 0), 12'000);
    EXPECT_EQ(amount(cpu, 0, 1), 12'500);
    auto bound = cpu;
    bound.pods[0].numas = {1};
    EXPECT_EQ(amount(bound, std::nullopt, 0), 29'000);
    EXPECT_EQ(amount(bound, std::nullopt, 1), 0) << "50 - 17.5 - 3.5 - 33";
    auto odd = cpu;
    odd.system_used = 7'001;
    odd.pods[0].used = 33'001;
    EXPECT_EQ(amount(odd, std::nullopt, 0), 12'498) << "each part is rounded up: 3,501 and 16,501";
}

class BatchZonesTest : public BatchTest {
protected:
    BatchZonesTest() {
        metric("2026-01-01T00:09:00Z");
        node("", strategy + "}");
    }
    static std::string zone(int numa, const std::string& more) {
        return fmt::format(R"({{"name":"node-{}","type":"Node","resources":[{{"name":"cpu","capacity":"50",)"
                           R"("allocatable":"50","available":"50"}},{{"name":"memory","capacity":"60G",)"
                           R"("allocatable":"60G","available":"60G"}}{}]}})",
                           numa, more);
    }
    static std::string lent(int64_t cpu, int64_t memory) {
        return fmt::format(
            R"(,{{"name":"kubernetes.io/batch-cpu","capacity":"{0}","allocatable":"{0}","available":"{0}"}},)"
            R"({{"name":"kubernetes.io/batch-memory","capacity":"{1}","allocatable":"{1}","available":"{1}"}})",
            cpu, memory);
    }
    // 100 CPUs, of which the second zone has those from 50.
    void topology(const std::string& first, const std::string& second, const JsonObject& more = {}) {
        JsonArray detail;
        for (int id = 0; id < 100; ++id)
            detail.push_back(JsonObject{{"id", id}, {"core", id}, {"socket", id / 50}, {"node", id / 50}});
        JsonObject notes{
            {"node.koordinator.sh/cpu-topology", base::to_text(JsonObject{{"detail", std::move(detail)}})}};
        for (const auto& [key, value] : more) notes[key] = value;
        put(kTopologies, R"({"kind":"NodeResourceTopology","metadata":{"name":"n1","uid":"t","annotations":)" +
                             base::to_text(notes) + R"(},"zones":[)" + zone(0, first) + "," + zone(1, second) + "]}");
    }
    // What is written there; "": nothing is.
    std::string zones() {
        for (const auto& write : reconcile().writes) {
            if (write.resource != kTopologies) continue;
            EXPECT_NE(write.revision, 0U) << "not over what an agent writes meanwhile";
            return base::to_text(write.body.at("zones"));
        }
        return "";
    }
    static std::string all(const std::string& first, const std::string& second) {
        return "[" + zone(0, first) + "," + zone(1, second) + "]";
    }
};

// Memory: 60 - 21 - 6 - 16.5 = 16.5.
TEST_F(BatchZonesTest, EachZoneIsWrittenBesideWhatItsAgentSays) {
    topology("", "");
    EXPECT_EQ(zones(), all(lent(12'500, 16'500'000'000), lent(12'500, 16'500'000'000)));
    topology("", "", {{"node.koordinator.sh/reservation", R"({"reservedCPUs":"0-4"})"}});
    EXPECT_EQ(zones(), all(lent(11'000, 16'500'000'000), lent(12'500, 16'500'000'000)))
        << "cores that are reserved count where they are";
    put("pods",
        R"({"kind":"Pod","metadata":{"namespace":"ns","name":"new","uid":"p","annotations":)"
        R"({"scheduling.koordinator.sh/resource-status":"{\"cpuset\":\"50-54\"}"}},"spec":{"nodeName":"n1","priority":9500,)"
        R"("containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"5","memory":"1G"}}}]},"status":{"phase":"Running"}})");
    EXPECT_EQ(zones(), all(lent(11'000, 16'500'000'000), lent(7'500, 15'500'000'000))) << "so does a pod with cores";
}

TEST_F(BatchZonesTest, WrittenWhenItIsWorthIt) {
    const JsonObject lately{{kZonesWritten, "2026-01-01T00:09:00Z"}}, before{{kZonesWritten, "2026-01-01T00:05:00Z"}};
    topology(lent(12'500, 16'500'000'000), lent(12'500, 16'500'000'000), before);
    EXPECT_EQ(zones(), "") << "it is so";
    topology(lent(12'000, 16'500'000'000), lent(12'500, 16'500'000'000), lately);
    EXPECT_EQ(zones(), "") << "500 of 12,000";
    EXPECT_EQ(*reconcile().again, *model::parse_time("2026-01-01T00:14:00Z"));
    topology(lent(12'000, 16'500'000'000), lent(12'500, 16'500'000'000), before);
    EXPECT_NE(zones(), "") << "300 s old";
    topology(lent(11'000, 16'500'000'000), lent(12'500, 16'500'000'000), lately);
    EXPECT_NE(zones(), "") << "1,500 of 11,000";
}

TEST_F(BatchZonesTest, AnOldMetricMakesThemZero) {
    now = *model::parse_time("2026-01-01T00:24:00Z");
    topology("", "");
    EXPECT_EQ(zones(), "");
    topology(lent(12'000, 5), "");
    EXPECT_EQ(zones(), all(lent(0, 0), ""));
    topology(lent(0, 0), "");
    EXPECT_EQ(zones(), "");
}

}  // namespace
}  // namespace berth::control
