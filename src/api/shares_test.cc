// What the server makes of Consumers and Allocations as they are written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/test_front.h"

namespace berth::api {
namespace {

const std::string kConsumers = "/apis/kuabe-arbitrator.incubator.k8s.io/v1/consumers";

std::string consumer(const std::string& name, const std::string& spec) {
    return R"({"metadata":{"name":")" + name + R"("},"spec":{)" + spec + "}}";
}

void add_node(TestFront& t, const std::string& cpu) {
    t.ask("POST", "/api/v1/nodes", R"({"metadata":{"name":"n1"}})");
    t.ask("PATCH", "/api/v1/nodes/n1/status", R"({"status":{"allocatable":{"cpu":")" + cpu + R"(","memory":"10Gi"}}})",
          kMerge);
}

TEST(ShareObjects, AConsumerHasAWeightAndMayBeTakenFrom) {
    TestFront t;
    const auto made =
        t.ask("POST", kConsumers, consumer("a", R"("hard":{"requests.cpu":"4"},"reserved":{"cpu":"40%"})"));
    EXPECT_EQ(made.code, 201) << made.raw.body;
    EXPECT_EQ(base::to_text(*base::find(made.json, {"spec"})),
              R"({"hard":{"requests.cpu":"4"},"reserved":{"cpu":"40%"},"weight":1,"reclaimable":true})");
    EXPECT_EQ(t.ask("POST", kConsumers, consumer("zero", R"("weight":0)")).code, 201);
    EXPECT_EQ(base::to_text(*base::find(t.ask("GET", kConsumers + "/zero").json, {"spec", "weight"})), "0");
}

TEST(ShareObjects, WhatCannotBeIsRefused) {
    TestFront t;
    expect_refused(t.ask("POST", kConsumers, consumer("a", R"("hard":{"cpu":"1"},"reserved":{"requests.cpu":"2"})")),
                   "is more than hard: 1 available");
    expect_refused(t.ask("POST", kConsumers, consumer("a", R"("reserved":{"pods":"2"})")), "counts are for hard only");
    expect_refused(t.ask("POST", kConsumers, consumer("a", R"("reserved":{"cpu":"120%"})")), "must be at most 100%");
    expect_refused(t.ask("POST", kConsumers, consumer("a", R"("weight":-1)")), "must be from 0 to 1000000");
    expect_refused(t.ask("POST", kConsumers, consumer("a", R"("parent":"a")")), "it would be its own parent");
    expect_refused(t.ask("POST", kConsumers, consumer("a", R"("parent":"nobody")")),
                   "there is no Consumer of this name");
    expect_refused(t.ask("POST", kConsumers, consumer("a", R"("gracePeriod":"soon")")), "is no duration");
    for (const auto* slip : {"limits.cpus", "limit.cpu", "nvidia-gpu", "storage"}) {
        expect_refused(t.ask("POST", kConsumers,
                             consumer("a", fmt::format(R"("hard":{{"{}":"2"}},"reserved":{{"cpu":"1"}})", slip))),
                       "is no key of a ResourceQuota");
    }
    expect_refused(t.ask("POST", kConsumers, consumer("a", R"("reserved":{"cpu":"2","requests.cpu":"3"})")),
                   "another key says how much of the same resource");
}

TEST(ShareObjects, GuaranteesOfSiblingsFitTheCluster) {
    TestFront t;
    add_node(t, "10");
    EXPECT_EQ(t.ask("POST", kConsumers, consumer("a", R"("reserved":{"cpu":"7"})")).code, 201);
    expect_refused(t.ask("POST", kConsumers, consumer("b", R"("reserved":{"cpu":"4"})")),
                   R"(spec.reserved[cpu]: Invalid value: "4": is more than the cluster has left: 3 available)");
    EXPECT_EQ(t.ask("POST", kConsumers, consumer("b", R"("reserved":{"cpu":"30%"})")).code, 201);
    // What shrinks is allowed, also where the cluster has become too small.
    t.ask("PATCH", "/api/v1/nodes/n1/status", R"({"status":{"allocatable":{"cpu":"2"}}})", kMerge);
    EXPECT_EQ(t.ask("PATCH", kConsumers + "/a", R"({"spec":{"reserved":{"cpu":"6"}}})", kMerge).code, 200);
    expect_refused(t.ask("PATCH", kConsumers + "/a", R"({"spec":{"reserved":{"cpu":"8"}}})", kMerge), "available");
}

TEST(ShareObjects, ParentsCoverTheirChildrenAndFormNoCircle) {
    TestFront t;
    add_node(t, "10");
    EXPECT_EQ(t.ask("POST", kConsumers, consumer("area", R"("reserved":{"cpu":"6"})")).code, 201);
    EXPECT_EQ(t.ask("POST", kConsumers, consumer("child", R"("parent":"area","reserved":{"cpu":"5"})")).code, 201);
    expect_refused(t.ask("POST", kConsumers, consumer("other", R"("parent":"area","reserved":{"cpu":"2"})")),
                   "is more than its parent has left: 1 available");
    expect_refused(t.ask("PATCH", kConsumers + "/area", R"({"spec":{"parent":"child"}})", kMerge),
                   "it would be its own parent");
    t.ask("POST", kConsumers, consumer("default", ""));
    expect_refused(t.ask("POST", kConsumers, consumer("below", R"("parent":"default")")), "it owns a namespace");
}

TEST(ShareObjects, HardIsWithinTheQuota) {
    TestFront t;
    t.ask("POST", "/api/v1/namespaces/default/resourcequotas",
          R"({"metadata":{"name":"q"},"spec":{"hard":{"requests.cpu":"3"}}})");
    expect_refused(t.ask("POST", kConsumers, consumer("default", R"("hard":{"cpu":"4"})")),
                   "is more than the quota of its namespace: 3 available");
    EXPECT_EQ(t.ask("POST", kConsumers, consumer("default", R"("hard":{"cpu":"3"})")).code, 201);
}

TEST(ShareObjects, AnAllocationHasAStatusOfItsOwn) {
    TestFront t;
    const std::string path = "/apis/kuabe-arbitrator.incubator.k8s.io/v1/allocations";
    EXPECT_EQ(t.ask("POST", path, R"({"metadata":{"name":"a"},"spec":{"deserved":{"cpu":"1500m"}}})").code, 201);
    const auto said = t.ask("PATCH", path + "/a/status", R"({"status":{"used":{"cpu":"2"},"overused":true}})", kMerge);
    EXPECT_EQ(said.code, 200) << said.raw.body;
    EXPECT_EQ(said.text({"spec", "deserved", "cpu"}), "1500m");
    EXPECT_EQ(said.text({"status", "used", "cpu"}), "2");
}

TEST(ShareObjects, WithGatesANewPodWaitsForItsShare) {
    TestFront t;
    t.context.here.share_gates = true;
    t.context.here.ungated_namespaces = {"kube-system"};
    const std::string spec = R"("containers":[{"name":"c","image":"i"}])";
    const auto gates = [&](const std::string& ns, const std::string& name, const std::string& more) {
        const auto made = t.ask("POST", "/api/v1/namespaces/" + ns + "/pods",
                                R"({"metadata":{"name":")" + name + R"("},"spec":{)" + more + spec + "}}");
        EXPECT_EQ(made.code, 201) << made.raw.body;
        const Json* found = base::find(made.json, {"spec", "schedulingGates"});
        return found == nullptr ? std::string() : base::to_text(*found);
    };
    EXPECT_EQ(gates("default", "a", ""), R"([{"name":"berth.dev/share"}])");
    EXPECT_EQ(gates("default", "b", R"("schedulingGates":[{"name":"x.io/y"}],)"),
              R"([{"name":"x.io/y"},{"name":"berth.dev/share"}])");
    EXPECT_EQ(gates("default", "c", R"("schedulingGates":[{"name":"berth.dev/share"}],)"),
              R"([{"name":"berth.dev/share"}])");
    EXPECT_EQ(gates("kube-system", "d", ""), "") << "it is always admitted";
}

}  // namespace
}  // namespace berth::api
