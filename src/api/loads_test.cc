// What the server makes of NodeMetrics, NodeSLOs and PodMigrationJobs as they are written.
#include <gtest/gtest.h>

#include "api/test_front.h"

namespace berth::api {
namespace {

const std::string kMetrics = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics";
const std::string kLevels = "/apis/slo.koordinator.sh/v1alpha1/nodeslos";
const std::string kMoves = "/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs";

TEST(Loads, AMeasurementIsKeptMemberByMember) {
    TestFront t;
    const auto made = t.ask(
        "POST", kMetrics, R"({"metadata":{"name":"n1"},"spec":{"metricCollectPolicy":{"reportIntervalSeconds":60}}})");
    ASSERT_EQ(made.code, 201) << made.raw.body;
    const std::string status =
        R"({"updateTime":"2026-01-01T00:00:00Z","nodeMetric":{"nodeUsage":{"resources":{"cpu":"12","memory":"4Gi"}},)"
        R"("aggregatedNodeUsages":[{"usage":{"p95":{"resources":{"cpu":"13"}}},"duration":"5m0s"}],)"
        R"("systemUsage":{"resources":{"cpu":"2"}}},)"
        R"("podsMetric":[{"name":"p","namespace":"default","podUsage":{"resources":{"cpu":"500m"}},)"
        R"("priority":"koord-prod","qos":"LS","extensions":{"a":{"b":1}}}],)"
        R"("hostApplicationMetric":[{"name":"h","usage":{"resources":{"cpu":"1"}},"priority":"koord-prod","qos":"LS"}],)"
        R"("prodReclaimableMetric":{"resource":{"resources":{"cpu":"3"}}}})";
    const auto said = t.ask("PATCH", kMetrics + "/n1/status", R"({"status":)" + status + "}", kMerge);
    ASSERT_EQ(said.code, 200) << said.raw.body;
    EXPECT_EQ(base::to_text(*base::find(t.ask("GET", kMetrics + "/n1").json, {"status"})), status);
    expect_refused(
        t.ask("POST", kMetrics,
              R"({"metadata":{"name":"n2"},"spec":{"metricCollectPolicy":{"nodeMemoryCollectPolicy":"some"}}})"),
        "nodeMemoryCollectPolicy: Unsupported value");
}

TEST(Loads, LevelsAreKeptAndTheirPercentagesChecked) {
    TestFront t;
    const std::string spec =
        R"({"resourceUsedThresholdWithBE":{"enable":true,"cpuSuppressThresholdPercent":70,"cpuSuppressPolicy":"cfsQuota"},)"
        R"("resourceQOSStrategy":{"lsClass":{"cpuQOS":{"groupIdentity":2}}},"extensions":{"x":1}})";
    const auto made = t.ask("POST", kLevels, R"({"metadata":{"name":"n1"},"spec":)" + spec + "}");
    ASSERT_EQ(made.code, 201) << made.raw.body;
    EXPECT_EQ(base::to_text(*base::find(made.json, {"spec"})), spec);
    const auto with = [](const std::string& member) {
        return R"({"spec":{"resourceUsedThresholdWithBE":{)" + member + "}}}";
    };
    expect_refused(t.ask("PATCH", kLevels + "/n1", with(R"("cpuSuppressThresholdPercent":101)"), kMerge),
                   "cpuSuppressThresholdPercent: Invalid value: 101");
    expect_refused(t.ask("PATCH", kLevels + "/n1", with(R"("cpuSuppressPolicy":"shares")"), kMerge),
                   "cpuSuppressPolicy: Unsupported value");
}

TEST(Loads, AnOrderToMoveNamesItsPod) {
    TestFront t;
    expect_refused(t.ask("POST", kMoves, R"({"metadata":{"name":"m"},"spec":{}})"), "spec.podRef: Required value");
    expect_refused(t.ask("POST", kMoves, R"({"metadata":{"name":"m"},"spec":{"podRef":{"name":"p"},"mode":"Fast"}})"),
                   "spec.mode: Unsupported value");
    for (const auto* ttl : {"soon", "-5m", "5"}) {
        expect_refused(
            t.ask("POST", kMoves,
                  R"({"metadata":{"name":"m"},"spec":{"podRef":{"name":"p"},"ttl":")" + std::string(ttl) + "\"}}"),
            "spec.ttl: Invalid value");
    }
    const auto made = t.ask("POST", kMoves,
                            R"({"metadata":{"name":"m"},"spec":{"ttl":"5m","mode":"EvictDirectly",)"
                            R"("podRef":{"namespace":"default","name":"p"},"reservationOptions":{"template":)"
                            R"({"spec":{"ttl":"1h","owners":null}}}}})");
    ASSERT_EQ(made.code, 201) << made.raw.body;
    EXPECT_EQ(base::find_string(made.json, {"spec", "reservationOptions", "template", "spec", "ttl"}), "1h");
    EXPECT_EQ(t.ask("PATCH", kMoves + "/m/status", R"({"status":{"phase":"Running","nodeName":"n2"}})", kMerge).code,
              200);
    EXPECT_EQ(t.ask("GET", kMoves + "/m").text({"status", "phase"}), "Running");
}

}  // namespace
}  // namespace berth::api
