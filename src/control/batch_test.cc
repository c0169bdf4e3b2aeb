#include "control/batch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json_view.h"
#include "control/objects.h"
#include "control/test_cluster.h"
#include "ledger/intake.h"
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
    void put(const std::string& resource, const std::string& text) {
        objects.put(resource, read_object(std::make_shared<const std::string>(text), ++revision));
        for (const auto& kind : ledger::kinds()) {
            if (kind.stored() != resource) continue;
            base::JsonParser parser;
            const auto view = parser.parse(text);
            const auto object = kind.read(*view, revision);
            ASSERT_TRUE(object) << object.error().message;
            objects.count(kind, *object);
        }
    }
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

}  // namespace
}  // namespace berth::control
