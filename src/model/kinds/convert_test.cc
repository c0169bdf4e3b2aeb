#include "model/kinds/convert.h"

#include <gtest/gtest.h>

#include "model/kinds/test_objects.h"

namespace berth::model {
namespace {

TEST(Convert, EventsHaveTwoSpellings) {
    const Kind& view = *kinds().of("events.k8s.io/v1", "Event");
    const Json event = parsed(R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e"},"note":"n",
        "regarding":{"kind":"Pod"},"reportingController":"c","deprecatedCount":2,"reason":"R"})");
    const Json stored = to_stored(view, event);
    EXPECT_EQ(stored, parsed(R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"message":"n",
        "involvedObject":{"kind":"Pod"},"reportingComponent":"c","count":2,"reason":"R"})"));
    EXPECT_EQ(from_stored(view, stored), event);
}

TEST(Convert, AutoscalersLoseNothing) {
    const Kind& view = *kinds().of("autoscaling/v1", "HorizontalPodAutoscaler");
    const Json v1 = parsed(R"({"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},
        "spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":70},"status":{"currentCPUUtilizationPercentage":10}})");
    const Json stored = to_stored(view, v1);
    EXPECT_EQ(stored.at("spec"), parsed(R"({"maxReplicas":3,"metrics":[{"type":"Resource","resource":{"name":"cpu",
        "target":{"type":"Utilization","averageUtilization":70}}}]})"));
    EXPECT_EQ(from_stored(view, stored), v1);
    const Json rich = parsed(R"({"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler",
        "metadata":{"name":"h","annotations":{"a":"b"}},"spec":{"maxReplicas":3,"metrics":[{"type":"Pods","pods":{}},
        {"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}],
        "behavior":{"scaleDown":{}}},"status":{"conditions":[{"type":"AbleToScale"}]}})");
    const Json narrow = from_stored(view, rich);
    EXPECT_EQ(narrow.at("spec"), parsed(R"({"maxReplicas":3,"targetCPUUtilizationPercentage":50})"));
    Json back = to_stored(view, narrow);
    auto& metrics = back.at("spec").at("metrics").get_array();
    std::swap(metrics[0], metrics[1]);
    EXPECT_EQ(back, rich);
}

TEST(Convert, OtherKindsStayAsTheyAre) {
    const Json pod = parsed(R"({"apiVersion":"v1","kind":"Pod"})");
    EXPECT_EQ(to_stored(*kinds().of("v1", "Pod"), pod), pod);
    EXPECT_EQ(from_stored(*kinds().of("v1", "Pod"), pod), pod);
}

}  // namespace
}  // namespace berth::model
