#include "control/migration.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "control/reserved_cores.h"
#include "control/test_cluster.h"
#include "model/reservation.h"

namespace berth::control {
namespace {

class MigrationTest : public testing::Test {
protected:
    void node(const std::string& name, const std::string& reserved) {
        cluster.put_text("nodes",
                         R"({"metadata":{"name":")" + name + R"(","annotations":{"node.koordinator.sh/reservation":)" +
                             R"("{\"reservedCPUs\":\")" + reserved + R"(\"}"}},"status":{"capacity":{"cpu":"24"}}})");
    }
    void topology(const std::string& name, const std::string& reserved) {
        cluster.put_text("topology.node.k8s.io/noderesourcetopologies",
                         R"({"metadata":{"name":")" + name + R"(","annotations":{"node.koordinator.sh/reservation":)" +
                             R"("{\"reservedCPUs\":\")" + reserved + R"(\"}"}}})");
    }
    void pod(const std::string& name, const std::string& owner, const std::string& cpus, int priority = 9000,
             const std::string& on = "n1", const std::string& kind = "ReplicaSet") {
        cluster.put_text(
            "pods",
            R"({"metadata":{"namespace":"ns","name":")" + name + R"(","uid":"uid-)" + name +
                R"(","labels":{"koordinator.sh/qosClass":"LSR"},"annotations":{"scheduling.koordinator.sh/resource-status":)" +
                R"("{\"cpuset\":\")" + cpus + R"(\"}"},"ownerReferences":[{"apiVersion":"v1","kind":")" + kind +
                R"(","name":")" + owner + R"(","uid":"uid-)" + owner +
                R"(","controller":true}]},"spec":{"nodeName":")" + on + R"(","priority":)" + std::to_string(priority) +
                R"(,"containers":[{"name":"c"}]},"status":{"phase":"Running"}})");
    }
    void job(const std::string& name, const std::string& pod, const std::string& more = "") {
        cluster.put_text(kMigrationJobs, R"({"metadata":{"name":")" + name + R"(","uid":"job-)" + name +
                                             R"("},"spec":{"podRef":{"namespace":"ns","name":")" + pod + "\"}" + more +
                                             "}}");
    }
    std::string said(const std::string& job, std::string_view field) {
        const auto object = cluster.objects.find(kMigrationJobs, "", job);
        return object ? std::string(base::find_string(object->document(), {"status", field})) : "gone";
    }
    // The names of jobs for a node, of those that have not ended.
    std::vector<std::string> moving() {
        std::vector<std::string> out;
        for (const auto& each : cluster.objects.list(kMigrationJobs)) {
            const auto phase = base::find_string(each->document(), {"status", "phase"});
            if (phase != "Failed" && phase != "Succeeded")
                out.emplace_back(base::find_string(each->document(), {"spec", "podRef", "name"}));
        }
        std::sort(out.begin(), out.end());
        return out;
    }
    bool has_pod(const std::string& name) { return cluster.objects.find("pods", "ns", name) != nullptr; }
    // What the scheduler and the replacement do to every reservation.
    void say(const std::string& status) {
        for (const auto& held : cluster.objects.list(model::kReservationResource)) {
            Json document = held->document();
            document.as_object()["status"] = *base::parse_json(status);
            cluster.put(model::kReservationResource, document);
        }
    }
    void pass(base::Duration time) { cluster.now = cluster.now + time; }

    explicit MigrationTest(const MigrationLimits& limits = {}) : cluster(both(limits)) {}
    static Reconcilers both(const MigrationLimits& limits) {
        Reconcilers out;
        out.push_back(migration_reconciler(limits));
        out.push_back(reserved_cores_reconciler());
        return out;
    }
    Cluster cluster;
};

TEST_F(MigrationTest, RoomFirstThenTheEviction) {
    pod("web", "rs", "4-5");
    job("j", "web");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j", "phase"), "Running");
    const auto held = cluster.objects.find(model::kReservationResource, "", "job-j");
    ASSERT_TRUE(held);
    EXPECT_NE(held->text().find(R"("operator":"NotIn","values":["n1"])"), std::string::npos);
    EXPECT_TRUE(has_pod("web"));
    say(R"({"phase":"Available","nodeName":"n2"})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_FALSE(has_pod("web"));
    EXPECT_EQ(said("j", "phase"), "Running") << "the replacement has not come";
    say(R"({"phase":"Succeeded","nodeName":"n2","currentOwners":[{"name":"web-2"}]})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j", "phase"), "Succeeded");
    pass(std::chrono::minutes(10));
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j", "phase"), "gone");
}

TEST_F(MigrationTest, WithoutRoomThePodStays) {
    pod("web", "rs", "4-5");
    job("j", "web");
    ASSERT_TRUE(cluster.settle());
    say(R"({"phase":"Pending","conditions":[{"type":"Scheduled","status":"False","reason":"Unschedulable","message":"no room"}]})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j", "reason"), "Unschedulable");
    EXPECT_EQ(said("j", "message"), "no room");
    EXPECT_TRUE(has_pod("web"));
    EXPECT_TRUE(cluster.objects.list(model::kReservationResource).empty()) << "its room is given back";
}

TEST_F(MigrationTest, ItsTtlEndsIt) {
    pod("web", "rs", "4-5");
    job("j", "web", R"(,"ttl":"1m")");
    job("p", "web", R"(,"paused":true)");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("p", "phase"), "");
    pass(std::chrono::minutes(1));
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j", "reason"), "Timeout");
    EXPECT_TRUE(cluster.objects.list(model::kReservationResource).empty());
    EXPECT_TRUE(has_pod("web"));
}

TEST_F(MigrationTest, DirectlyAndWhatCannotBe) {
    pod("web", "rs", "4-5");
    pod("daemon", "ds", "6", 9000, "n1", "DaemonSet");
    job("direct", "web", R"(,"mode":"EvictDirectly","deleteOptions":{"gracePeriodSeconds":7})");
    job("none", "nobody");
    job("daemon", "daemon");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("direct", "phase"), "Succeeded");
    EXPECT_EQ(base::to_text(*base::find(cluster.last_eviction, {"deleteOptions"})),
              R"({"preconditions":{"uid":"uid-web"},"gracePeriodSeconds":7})");
    EXPECT_FALSE(has_pod("web"));
    EXPECT_EQ(said("none", "reason"), "MissingPod");
    EXPECT_EQ(said("daemon", "reason"), "ForbiddenMigratePod");
}

TEST_F(MigrationTest, SoManyAtOnceLowerPriorityFirst) {
    for (int i = 0; i < 4; ++i) {
        pod(fmt::format("p{}", i), fmt::format("rs{}", i), "4", 9003 - i);
        job(fmt::format("j{}", i), fmt::format("p{}", i));
    }
    pod("q0", "rs0", "4", 9000, "n2");
    job("jq", "q0");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j3", "phase"), "Running");
    EXPECT_EQ(said("j2", "phase"), "Running");
    EXPECT_EQ(said("j1", "phase"), "") << "two of a node";
    EXPECT_EQ(said("j0", "phase"), "");
    EXPECT_EQ(said("jq", "phase"), "Running") << "another node, and the first of its workload";
    say(R"({"phase":"Failed"})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j1", "phase"), "Running");
    EXPECT_EQ(moves_per_workload(3, {}), 1);
    EXPECT_EQ(moves_per_workload(10, {}), 2);
    EXPECT_EQ(moves_per_workload(40, {}), 4);
}

TEST_F(MigrationTest, PodsOnReservedCoresGoByGroups) {
    node("n1", "0-3");
    pod("job-a", "batch", "0-1", 9100, "n1", "Job");
    pod("job-b", "batch", "4-5", 9100, "n1", "Job");
    pod("job-c", "batch", "0-1", 9100, "n2", "Job");
    pod("dear", "rs", "2", 9500);
    pod("dear-elsewhere", "rs", "2", 9500, "n2");
    pod("aside", "other", "8-9", 9000);
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(moving(), (std::vector<std::string>{"job-a", "job-b", "job-c"}))
        << "a Job goes whole, and before dearer ones";
    say(R"({"phase":"Failed"})");
    EXPECT_TRUE(has_pod("job-a"));
}

TEST_F(MigrationTest, WithoutRoomReservedCoresAreFreedByEviction) {
    node("n1", "0-3");
    pod("web", "rs", "0-1");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(moving(), std::vector<std::string>{"web"});
    say(R"({"phase":"Pending","conditions":[{"type":"Scheduled","status":"False","reason":"Unschedulable"}]})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_FALSE(has_pod("web"));
    EXPECT_TRUE(moving().empty());
}

TEST_F(MigrationTest, TheTopologysCoresCountToo) {
    cluster.put_text("nodes", R"({"metadata":{"name":"n1"},"status":{"capacity":{"cpu":"24"}}})");
    pod("web", "rs", "12");
    ASSERT_TRUE(cluster.settle());
    EXPECT_TRUE(moving().empty());
    topology("n1", "0,12");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(moving(), std::vector<std::string>{"web"});
}

TEST_F(MigrationTest, TheReplacementIsAwaitedUntilItIsReady) {
    pod("web", "rs", "4-5");
    job("j", "web");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(cluster.objects.find(kMigrationJobs, "", "j")->meta.annotations.get(kPassedArbitration), "true");
    say(R"({"phase":"Available","nodeName":"n2"})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j", "nodeName"), "n2") << "where the room is";
    pod("web-2", "rs", "", 9000, "n2");
    say(R"({"phase":"Succeeded","nodeName":"n2","currentOwners":[{"namespace":"ns","name":"web-2","uid":"uid-web-2"}]})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j", "phase"), "Running") << "it is bound, and not ready";
    Json made = cluster.objects.find("pods", "ns", "web-2")->document();
    base::object_at(made, {"status"})["conditions"] = JsonArray{JsonObject{{"type", "Ready"}, {"status", "True"}}};
    cluster.put("pods", made);
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j", "phase"), "Succeeded");
    const auto job = cluster.objects.find(kMigrationJobs, "", "j");
    EXPECT_EQ(base::find_string(job->document(), {"status", "podRef", "name"}), "web-2");
}

TEST_F(MigrationTest, TheReplacementMayComeWhileThePodIsOnItsWayOut) {
    pod("web", "job", "4-5", 9000, "n1", "Job");
    Json slow = cluster.objects.find("pods", "ns", "web")->document();
    base::object_at(slow, {"metadata"})["finalizers"] = JsonArray{"example.com/slow"};
    cluster.put("pods", slow);
    job("j", "web");
    ASSERT_TRUE(cluster.settle());
    say(R"({"phase":"Available","nodeName":"n2"})");
    ASSERT_TRUE(cluster.settle());
    ASSERT_TRUE(cluster.objects.find("pods", "ns", "web")->meta.deleted);
    say(R"({"phase":"Succeeded","nodeName":"n2","currentOwners":[{"namespace":"ns","name":"web-2"}]})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j", "phase"), "Running");
    cluster.objects.remove("pods", "ns", "web");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j", "phase"), "Succeeded");
}

TEST_F(MigrationTest, WhoTakesTheRoomBeforehandIsAnother) {
    pod("web", "rs", "4-5");
    job("j", "web");
    ASSERT_TRUE(cluster.settle());
    say(R"({"phase":"Succeeded","nodeName":"n2","currentOwners":[{"namespace":"ns","name":"other"}]})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j", "reason"), "ReservationTaken");
    EXPECT_TRUE(has_pod("web"));
}

TEST_F(MigrationTest, WhoHasNoOtherPlaceLeavesReservedCoresByEviction) {
    node("n1", "0-3");
    cluster.put_text(
        "pods", R"({"metadata":{"namespace":"ns","name":"bare","uid":"b","labels":{"koordinator.sh/qosClass":"LSR"},)"
                R"("annotations":{"scheduling.koordinator.sh/resource-status":"{\"cpuset\":\"0\"}"}},)"
                R"("spec":{"nodeName":"n1","containers":[{"name":"c"}]},"status":{"phase":"Running"}})");
    pod("daemon", "ds", "1", 9500, "n1", "DaemonSet");
    ASSERT_TRUE(cluster.settle());
    EXPECT_FALSE(has_pod("bare"));
    pass(std::chrono::minutes(2));
    ASSERT_TRUE(cluster.settle());
    EXPECT_FALSE(has_pod("daemon")) << "it is made again beside the reserved cores";
}

MigrationLimits limited(std::optional<int64_t> MigrationLimits::* which, int64_t most) {
    MigrationLimits out;
    out.*which = most;
    return out;
}

MigrationLimits resting(base::Duration window) {
    MigrationLimits out;
    out.window = window;
    return out;
}

class MigrationByNamespaceTest : public MigrationTest {
protected:
    MigrationByNamespaceTest() : MigrationTest(limited(&MigrationLimits::per_namespace, 1)) {}
};

TEST_F(MigrationByNamespaceTest, OneAfterTheOther) {
    for (const auto* name : {"a", "b"}) {
        pod(name, fmt::format("rs-{}", name), "4", 9000, fmt::format("n-{}", name));
        job(fmt::format("j-{}", name), name);
    }
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j-a", "phase"), "Running");
    EXPECT_EQ(said("j-b", "phase"), "");
    say(R"({"phase":"Failed"})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j-b", "phase"), "Running");
}

class MigrationGloballyTest : public MigrationTest {
protected:
    MigrationGloballyTest() : MigrationTest(limited(&MigrationLimits::globally, 1)) {}
};

TEST_F(MigrationGloballyTest, OneAfterTheOther) {
    pod("a", "rs-a", "4", 9000, "n1");
    pod("b", "rs-b", "4", 9000, "n2");
    job("j-a", "a");
    job("j-b", "b");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j-a", "phase"), "Running");
    EXPECT_EQ(said("j-b", "phase"), "");
}

class MigrationWindowTest : public MigrationTest {
protected:
    MigrationWindowTest() : MigrationTest(resting(std::chrono::minutes(5))) {}
};

TEST_F(MigrationWindowTest, AWorkloadRests) {
    pod("a", "rs", "4", 9000, "n1");
    pod("b", "rs", "4", 9000, "n2");
    job("j-a", "a", R"(,"mode":"EvictDirectly")");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j-a", "phase"), "Succeeded");
    job("j-b", "b", R"(,"mode":"EvictDirectly","ttl":"20m")");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j-b", "phase"), "") << "one of two pods in five minutes";
    pass(std::chrono::minutes(5));
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(said("j-b", "phase"), "Succeeded");
}

}  // namespace
}  // namespace berth::control
