// StatefulSets, DaemonSets, CronJobs and Services against a cluster that is nothing but objects. Pods become ready when
// the test says so, and time passes when it does.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "control/simulated.h"
#include "control/test_cluster.h"

namespace berth::control {
namespace {

using Names = std::vector<std::string>;

class WorkloadsTest : public testing::Test {
protected:
    WorkloadsTest() : cluster(reconcilers()) {
        for (const auto* name : {"node-0", "node-1", "node-2"}) {
            cluster.put("nodes", simulated_node({name, "4", "32Gi", {}}, cluster.now));
        }
        cluster.put_text("namespaces", R"({"metadata":{"name":"default"}})");
    }

    static Reconcilers reconcilers() {
        Reconcilers out;
        out.push_back(statefulset_reconciler());
        out.push_back(daemonset_reconciler());
        out.push_back(cronjob_reconciler());
        out.push_back(endpoints_reconciler());
        out.push_back(deployment_reconciler());
        return out;
    }

    Names names(const std::string& resource) const {
        Names out;
        for (const auto& object : cluster.objects.list(resource)) out.push_back(object->meta.name);
        return out;
    }
    Json document(const std::string& resource, const std::string& name) const {
        const auto object = cluster.objects.find(resource, "default", name);
        EXPECT_NE(object, nullptr) << resource << " " << name;
        return object ? object->document() : Json(JsonObject());
    }
    std::string text(const std::string& resource, const std::string& name,
                     std::initializer_list<std::string_view> path) const {
        return std::string(base::find_string(document(resource, name), path));
    }
    // Runs and is ready, on a node.
    void run(const std::string& pod, const std::string& node = "node-0") {
        Json next = document("pods", pod);
        base::object_at(next, {"spec"})["nodeName"] = node;
        base::object_at(next, {"status"})["phase"] = "Running";
        base::object_at(next, {"status"})["podIP"] = fmt::format("10.0.0.{}", ++addresses_);
        base::object_at(next, {"status"})["conditions"] = JsonArray{
            JsonObject{{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", model::time_text(cluster.now)}}};
        cluster.put("pods", next);
        ASSERT_TRUE(cluster.settle());
    }
    void edit(const std::string& resource, const std::string& name, std::initializer_list<std::string_view> path,
              std::string_view field, Json value) {
        Json next = document(resource, name);
        base::object_at(next, path)[field] = std::move(value);
        base::object_at(next, {"metadata"})["generation"] = ++generation_;
        cluster.put(resource, next);
        ASSERT_TRUE(cluster.settle());
    }
    void set_image(const std::string& resource, const std::string& name, const std::string& image) {
        edit(resource, name, {"spec", "template", "spec"}, "containers",
             JsonArray{JsonObject{{"name", "main"}, {"image", image}}});
    }
    void later(base::Duration by) {
        cluster.now = cluster.now + by;
        ASSERT_TRUE(cluster.settle());
    }

    Cluster cluster;
    int addresses_ = 0;
    int generation_ = 1;
};

constexpr std::string_view kStateful =
    R"({{"kind":"StatefulSet","metadata":{{"name":"db","namespace":"default","generation":1}},"spec":{{"replicas":3,
  "serviceName":"db","selector":{{"matchLabels":{{"app":"db"}}}},{}"volumeClaimTemplates":[{{"metadata":{{"name":"data"}},
  "spec":{{"accessModes":["ReadWriteOnce"]}}}}],"template":{{"metadata":{{"labels":{{"app":"db"}}}},
  "spec":{{"containers":[{{"name":"main","image":"v1"}}]}}}}}}}})";

TEST_F(WorkloadsTest, AStatefulSetComesUpInOrderWithItsClaims) {
    cluster.put_text("apps/statefulsets", fmt::format(kStateful, ""));
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(names("pods"), Names{"db-0"}) << "the next one when this is ready";
    EXPECT_EQ(names("persistentvolumeclaims"), Names{"data-db-0"});
    EXPECT_EQ(text("pods", "db-0", {"spec", "hostname"}), "db-0");
    EXPECT_EQ(text("pods", "db-0", {"spec", "subdomain"}), "db");
    const Json pod = document("pods", "db-0");
    const Json& volume = base::find(pod, {"spec", "volumes"})->as_array().at(0);
    EXPECT_EQ(base::find_string(volume, {"persistentVolumeClaim", "claimName"}), "data-db-0");
    run("db-0");
    EXPECT_EQ(names("pods"), (Names{"db-0", "db-1"}));
    run("db-1");
    run("db-2");
    EXPECT_EQ(cluster.status("apps/statefulsets", "default", "db", "readyReplicas"), 3);
    edit("apps/statefulsets", "db", {"spec"}, "replicas", 1);
    EXPECT_EQ(names("pods"), Names{"db-0"}) << "the last first, each when the one before is gone";
    EXPECT_EQ(names("persistentvolumeclaims").size(), 3u) << "data stays";
}

TEST_F(WorkloadsTest, AParallelSetStartsAtOnce) {
    cluster.put_text("apps/statefulsets", fmt::format(kStateful, R"("podManagementPolicy":"Parallel",)"));
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(names("pods"), (Names{"db-0", "db-1", "db-2"}));
}

TEST_F(WorkloadsTest, AStatefulUpdateGoesFromTheLastDownToThePartition) {
    cluster.put_text(
        "apps/statefulsets",
        fmt::format(kStateful, R"("updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}},)"));
    ASSERT_TRUE(cluster.settle());
    for (const auto* pod : {"db-0", "db-1", "db-2"}) run(pod);
    const auto image = [&](const std::string& pod) {
        return text("pods", pod, {"metadata", "labels", "controller-revision-hash"});
    };
    const std::string before = image("db-0");
    set_image("apps/statefulsets", "db", "v2");
    EXPECT_EQ(image("db-1"), before);
    EXPECT_NE(image("db-2"), before) << "it was deleted and made anew";
    run("db-2");
    EXPECT_NE(image("db-1"), before);
    run("db-1");
    EXPECT_EQ(image("db-0"), before) << "below the partition";
    EXPECT_EQ(text("apps/statefulsets", "db", {"status", "currentRevision"}), before);
    edit("apps/statefulsets", "db", {"spec", "updateStrategy", "rollingUpdate"}, "partition", 0);
    run("db-0");
    EXPECT_NE(image("db-0"), before);
    EXPECT_EQ(text("apps/statefulsets", "db", {"status", "currentRevision"}), image("db-0"));
    EXPECT_EQ(names("apps/controllerrevisions").size(), 2u);
    set_image("apps/statefulsets", "db", "v1");
    EXPECT_EQ(names("apps/controllerrevisions").size(), 2u) << "the old template has its revision";
    EXPECT_EQ(integer_at(document("apps/controllerrevisions", before), {"revision"}, 0), 3);
}

// As many at a time as may be unavailable, whoever else is.
TEST_F(WorkloadsTest, AParallelSetIsUpdatedByAsManyAsMayBeUnavailable) {
    cluster.put_text(
        "apps/statefulsets",
        fmt::format(kStateful, R"("podManagementPolicy":"Parallel","updateStrategy":{"type":"RollingUpdate",
                         "rollingUpdate":{"maxUnavailable":2}},)"));
    ASSERT_TRUE(cluster.settle());
    edit("apps/statefulsets", "db", {"spec"}, "replicas", 5);
    const Names all{"db-0", "db-1", "db-2", "db-3", "db-4"};
    for (const auto& pod : all) run(pod);
    const auto old = text("pods", "db-0", {"metadata", "labels", "controller-revision-hash"});
    const auto updated = [&] {
        Names out;
        for (const auto& pod : all) {
            if (text("pods", pod, {"metadata", "labels", "controller-revision-hash"}) != old) out.push_back(pod);
        }
        return out;
    };
    set_image("apps/statefulsets", "db", "v2");
    EXPECT_EQ(updated(), (Names{"db-3", "db-4"}));
    run("db-4");
    EXPECT_EQ(updated(), (Names{"db-2", "db-3", "db-4"})) << "one is ready again, so one more may go";
    edit("pods", "db-0", {"status"}, "conditions", JsonArray{});
    EXPECT_EQ(updated(), (Names{"db-2", "db-3", "db-4"})) << "two are out, and so is an old one";
    run("db-3");
    EXPECT_EQ(updated(), (Names{"db-0", "db-2", "db-3", "db-4"})) << "the old one that is out anyway comes first";
    run("db-2");
    EXPECT_EQ(updated(), all);
}

TEST_F(WorkloadsTest, AnOrderedSetIsUpdatedInBatches) {
    cluster.put_text("apps/statefulsets", fmt::format(kStateful, R"("updateStrategy":{"type":"RollingUpdate",
                         "rollingUpdate":{"maxUnavailable":"67%"}},)"));
    ASSERT_TRUE(cluster.settle());
    for (const auto* pod : {"db-0", "db-1", "db-2"}) run(pod);
    const auto old = text("pods", "db-0", {"metadata", "labels", "controller-revision-hash"});
    set_image("apps/statefulsets", "db", "v2");
    EXPECT_EQ(names("pods"), (Names{"db-0", "db-1"})) << "two of three went, and come back in order";
    EXPECT_NE(text("pods", "db-1", {"metadata", "labels", "controller-revision-hash"}), old);
    run("db-1");
    EXPECT_EQ(text("pods", "db-0", {"metadata", "labels", "controller-revision-hash"}), old);
    run("db-2");
    EXPECT_NE(text("pods", "db-0", {"metadata", "labels", "controller-revision-hash"}), old);
}

TEST_F(WorkloadsTest, OnDeleteWaitsForWhoeverDeletes) {
    cluster.put_text("apps/statefulsets", fmt::format(kStateful, R"("updateStrategy":{"type":"OnDelete"},)"));
    ASSERT_TRUE(cluster.settle());
    for (const auto* pod : {"db-0", "db-1", "db-2"}) run(pod);
    const std::string before = text("pods", "db-1", {"metadata", "labels", "controller-revision-hash"});
    set_image("apps/statefulsets", "db", "v2");
    EXPECT_EQ(text("pods", "db-2", {"metadata", "labels", "controller-revision-hash"}), before);
    cluster.objects.remove("pods", "default", "db-1");
    ASSERT_TRUE(cluster.settle());
    EXPECT_NE(text("pods", "db-1", {"metadata", "labels", "controller-revision-hash"}), before);
}

// Where claims go with the pods that are too many.
TEST_F(WorkloadsTest, ClaimsBelongToAPodBeforeItGoes) {
    cluster.put_text("apps/statefulsets", fmt::format(kStateful, R"("podManagementPolicy":"Parallel",
                         "persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete","whenDeleted":"Retain"},)"));
    ASSERT_TRUE(cluster.settle());
    const std::string uid = cluster.objects.find("pods", "default", "db-2")->meta.uid;
    edit("apps/statefulsets", "db", {"spec"}, "replicas", 2);
    EXPECT_EQ(names("pods"), (Names{"db-0", "db-1"}));
    const auto claim = cluster.objects.find("persistentvolumeclaims", "default", "data-db-2");
    ASSERT_EQ(claim->meta.owners.size(), 1u);
    EXPECT_EQ(claim->meta.owners[0].uid, uid) << "the garbage collector takes it";
    EXPECT_TRUE(cluster.objects.find("persistentvolumeclaims", "default", "data-db-1")->meta.owners.empty());
}

constexpr std::string_view kDaemons =
    R"({"kind":"DaemonSet","metadata":{"name":"agent","namespace":"default","generation":1},"spec":{
  "selector":{"matchLabels":{"app":"agent"}},"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1}},
  "template":{"metadata":{"labels":{"app":"agent"}},"spec":{"containers":[{"name":"main","image":"v1"}]}}}})";

class DaemonSetTest : public WorkloadsTest {
protected:
    // By the node that each was made for.
    std::map<std::string, std::string> daemons() const {
        std::map<std::string, std::string> out;
        for (const auto& pod : cluster.objects.list("pods")) {
            const Json* terms =
                base::find(pod->document(), {"spec", "affinity", "nodeAffinity",
                                             "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
            const Json& field = base::find(terms->as_array().at(0), {"matchFields"})->as_array().at(0);
            out[std::string(base::find(field, {"values"})->as_array().at(0).as_string())] = pod->meta.name;
        }
        return out;
    }
    void run_all() {
        for (const auto& [node, pod] : daemons()) {
            const auto found = cluster.objects.find("pods", "default", pod);
            if (found && found->node.empty()) run(pod, node);
        }
    }
};

TEST_F(DaemonSetTest, EachNodeThatTheTemplateAllowsHasItsPod) {
    Json tainted = simulated_node({"node-2", "4", "32Gi", {}}, cluster.now);
    base::object_at(tainted, {"spec"})["taints"] =
        JsonArray{JsonObject{{"key", "dedicated"}, {"value", "db"}, {"effect", "NoSchedule"}},
                  JsonObject{{"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}}};
    cluster.put("nodes", tainted);
    cluster.put_text("apps/daemonsets", kDaemons);
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(daemons().size(), 2u);
    EXPECT_FALSE(daemons().contains("node-2"));
    cluster.put("nodes", simulated_node({"node-3", "4", "32Gi", {}}, cluster.now));
    ASSERT_TRUE(cluster.settle());
    EXPECT_TRUE(daemons().contains("node-3")) << "a new node gets its pod";
    run_all();
    EXPECT_EQ(cluster.status("apps/daemonsets", "default", "agent", "numberReady"), 3);
    edit("apps/daemonsets", "agent", {"spec", "template", "spec"}, "nodeSelector",
         JsonObject{{"kubernetes.io/hostname", "node-1"}});
    EXPECT_EQ(daemons().size(), 1u);
    EXPECT_EQ(cluster.status("apps/daemonsets", "default", "agent", "desiredNumberScheduled"), 1);
}

TEST_F(DaemonSetTest, AnUpdateTakesOneAtATime) {
    cluster.put_text("apps/daemonsets", kDaemons);
    ASSERT_TRUE(cluster.settle());
    run_all();
    const auto before = daemons();
    set_image("apps/daemonsets", "agent", "v2");
    const auto changed = [&] {
        int count = 0;
        for (const auto& [node, pod] : daemons()) count += before.at(node) != pod;
        return count;
    };
    EXPECT_EQ(changed(), 1);
    run_all();
    EXPECT_EQ(changed(), 2);
    run_all();
    run_all();
    EXPECT_EQ(changed(), 3);
    EXPECT_EQ(cluster.status("apps/daemonsets", "default", "agent", "updatedNumberScheduled"), 3);
    EXPECT_EQ(names("apps/controllerrevisions").size(), 2u);
}

// A rollback writes the template as Go prints it: other order, spelled-out nothing.
TEST_F(WorkloadsTest, ARolledBackDeploymentFindsItsOldSetAndNumbersItAnew) {
    cluster.put_text("apps/deployments",
                     R"({"kind":"Deployment","metadata":{"name":"web","namespace":"default","generation":1,
        "annotations":{"kubernetes.io/change-cause":"first"}},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"web"}},
        "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"main","image":"v1"}]}}}})");
    ASSERT_TRUE(cluster.settle());
    const std::string old = names("apps/replicasets").at(0);
    EXPECT_EQ(text("apps/replicasets", old, {"metadata", "annotations", "kubernetes.io/change-cause"}), "first");
    set_image("apps/deployments", "web", "v2");
    ASSERT_EQ(names("apps/replicasets").size(), 2u);
    edit("apps/deployments", "web", {"spec"}, "template", *base::parse_json(R"({"spec":{"containers":[
        {"resources":{},"image":"v1","name":"main"}]},"metadata":{"creationTimestamp":null,"labels":{"app":"web"}}})"));
    EXPECT_EQ(names("apps/replicasets").size(), 2u);
    EXPECT_EQ(text("apps/replicasets", old, {"metadata", "annotations", "deployment.kubernetes.io/revision"}), "3");
    EXPECT_EQ(text("apps/replicasets", old, {"metadata", "annotations", "deployment.kubernetes.io/revision-history"}),
              "1");
    EXPECT_EQ(text("apps/deployments", "web", {"metadata", "annotations", "deployment.kubernetes.io/revision"}), "3");
}

class CronJobTest : public WorkloadsTest {
protected:
    void make(std::string_view more) {
        cluster.put_text("batch/cronjobs",
                         fmt::format(R"({{"kind":"CronJob","metadata":{{"name":"tick","namespace":"default"}},"spec":{{
            "schedule":"*/5 * * * *",{}"jobTemplate":{{"spec":{{"template":{{"spec":{{"containers":[]}}}}}}}}}}}})",
                                     more));
        ASSERT_TRUE(cluster.settle());
    }
    void finish(const std::string& job, std::string_view how = "Complete") {
        Json next = document("batch/jobs", job);
        base::object_at(next, {"status"})["completionTime"] = model::time_text(cluster.now);
        base::object_at(next, {"status"})["conditions"] = JsonArray{JsonObject{{"type", how}, {"status", "True"}}};
        cluster.put("batch/jobs", next);
        ASSERT_TRUE(cluster.settle());
    }
    // The job of so many minutes after the beginning.
    std::string at(int64_t minutes) const { return fmt::format("tick-{}", begin_ + minutes); }
    int64_t begin_ = cluster.now.nanos / 60'000'000'000;
};

TEST_F(CronJobTest, MakesAJobAtEachTime) {
    make("");
    EXPECT_TRUE(names("batch/jobs").empty());
    later(std::chrono::minutes(4));
    EXPECT_TRUE(names("batch/jobs").empty());
    later(std::chrono::minutes(1));
    EXPECT_EQ(names("batch/jobs"), Names{at(5)});
    EXPECT_EQ(text("batch/cronjobs", "tick", {"status", "lastScheduleTime"}), "2026-01-01T00:05:00Z");
    later(std::chrono::minutes(5));
    EXPECT_EQ(names("batch/jobs"), (Names{at(5), at(10)})) << "they may run beside each other";
}

TEST_F(CronJobTest, ForbidWaitsAndReplaceTakesTheOldOneAway) {
    make(R"("concurrencyPolicy":"Forbid",)");
    later(std::chrono::minutes(5));
    later(std::chrono::minutes(6));
    EXPECT_EQ(names("batch/jobs"), Names{at(5)});
    EXPECT_EQ(cluster.told, (Names{"SuccessfulCreate", "JobAlreadyActive"})) << "once";
    later(std::chrono::minutes(1));
    EXPECT_EQ(cluster.told.size(), 2u);
    finish(at(5));
    EXPECT_EQ(names("batch/jobs"), (Names{at(5), at(10)})) << "when the first has ended, the time that it missed";
    edit("batch/cronjobs", "tick", {"spec"}, "concurrencyPolicy", "Replace");
    later(std::chrono::minutes(5));
    EXPECT_EQ(names("batch/jobs"), (Names{at(5), at(15)}));
}

TEST_F(CronJobTest, KeepsAsManyOldJobsAsItShould) {
    make(R"("successfulJobsHistoryLimit":1,"failedJobsHistoryLimit":0,)");
    later(std::chrono::minutes(5));
    finish(at(5));
    later(std::chrono::minutes(5));
    finish(at(10), "Failed");
    EXPECT_EQ(names("batch/jobs"), Names{at(5)});
    later(std::chrono::minutes(5));
    finish(at(15));
    EXPECT_EQ(names("batch/jobs"), Names{at(15)});
    EXPECT_EQ(text("batch/cronjobs", "tick", {"status", "lastSuccessfulTime"}), "2026-01-01T00:15:00Z");
}

TEST_F(CronJobTest, WhatWasSuspendedOrIsTooLateDoesNotRun) {
    make(R"("suspend":true,"startingDeadlineSeconds":60,)");
    later(std::chrono::minutes(7));
    EXPECT_TRUE(names("batch/jobs").empty());
    edit("batch/cronjobs", "tick", {"spec"}, "suspend", false);
    EXPECT_TRUE(names("batch/jobs").empty()) << "two minutes late, and one was allowed";
    EXPECT_EQ(cluster.told, Names{"MissSchedule"});
    EXPECT_EQ(text("batch/cronjobs", "tick", {"metadata", "annotations", "berth.dev/last-told-schedule-time"}),
              "2026-01-01T00:05:00Z");
    later(std::chrono::hours(24 * 365));
    EXPECT_EQ(names("batch/jobs").size(), 0u) << "seven minutes past the hour";
    EXPECT_EQ(cluster.told, (Names{"MissSchedule", "MissSchedule"})) << "not for each of a year";
    later(std::chrono::minutes(3));
    EXPECT_EQ(names("batch/jobs").size(), 1u);
    EXPECT_EQ(cluster.told.back(), "SuccessfulCreate");
}

TEST_F(WorkloadsTest, AServiceLeadsToItsReadyPods) {
    cluster.put_text("services", R"({"kind":"Service","metadata":{"name":"web","namespace":"default"},"spec":{
        "selector":{"app":"web"},"ports":[{"name":"http","port":80,"targetPort":"www","protocol":"TCP"}]}})");
    for (const auto* name : {"web-1", "web-2", "other"}) {
        cluster.put_text("pods", fmt::format(R"({{"kind":"Pod","metadata":{{"name":"{0}","namespace":"default",
            "labels":{{"app":"{1}"}}}},"spec":{{"containers":[{{"name":"main","ports":[{{"name":"www",
            "containerPort":8080}}]}}]}}}})",
                                             name, std::string_view(name).substr(0, 3)));
    }
    ASSERT_TRUE(cluster.settle());
    for (const auto* name : {"web-1", "web-2", "other"}) run(name);
    ASSERT_EQ(names("discovery.k8s.io/endpointslices").size(), 1u);
    const auto slice = [&] {
        return document("discovery.k8s.io/endpointslices", names("discovery.k8s.io/endpointslices").at(0));
    };
    EXPECT_EQ(slice().at("endpoints").as_array().size(), 2u);
    EXPECT_EQ(integer_at(slice().at("ports").as_array().at(0), {"port"}, 0), 8080);
    const auto addresses = [&](std::string_view list) {
        const Json endpoints = document("endpoints", "web");
        const Json& subset = endpoints.at("subsets").as_array().at(0);
        const Json* found = base::find(subset, {list});
        return found ? found->as_array().size() : 0;
    };
    EXPECT_EQ(addresses("addresses"), 2u);
    edit("pods", "web-2", {"status"}, "conditions", JsonArray());
    EXPECT_EQ(addresses("addresses"), 1u);
    EXPECT_EQ(addresses("notReadyAddresses"), 1u);
    cluster.objects.remove("services", "default", "web");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(names("endpoints"), Names{});
}

}  // namespace
}  // namespace berth::control
