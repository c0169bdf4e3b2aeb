#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "control/pods.h"
#include "control/reconciler.h"
#include "control/simulated.h"
#include "control/test_cluster.h"
#include "model/times.h"

namespace berth::control {
namespace {

Reconcilers all() {
    const std::vector<std::string> namespaced{"pods",       "apps/replicasets", "apps/deployments",
                                              "batch/jobs", "serviceaccounts",  "configmaps"};
    Reconcilers out;
    out.push_back(replicaset_reconciler());
    out.push_back(deployment_reconciler());
    out.push_back(job_reconciler());
    out.push_back(disruption_reconciler());
    out.push_back(garbage_reconciler({"pods", "apps/replicasets", "apps/deployments", "batch/jobs"}));
    out.push_back(namespace_reconciler(namespaced));
    out.push_back(simulated_pods_reconciler());
    return out;
}

constexpr std::string_view kDeployment =
    R"({"kind":"Deployment","metadata":{"name":"web","namespace":"default","generation":1},
  "spec":{"replicas":4,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
  "spec":{"nodeName":"node-0","containers":[{"name":"a","image":"v1"}]}}}})";

class ControllersTest : public testing::Test {
protected:
    ControllersTest() : cluster(all()) {
        cluster.put("nodes", simulated_node({"node-0", "4", "32Gi", {}}, cluster.now));
        cluster.put_text("namespaces", R"({"metadata":{"name":"default"}})");
    }
    void set_image(const std::string& image) {
        Json document = cluster.objects.find("apps/deployments", "default", "web")->document();
        JsonObject container{{"name", "a"}, {"image", image}};
        base::object_at(document, {"spec", "template", "spec"})["containers"] = JsonArray{container};
        cluster.put("apps/deployments", document);
    }
    Cluster cluster;
};

TEST_F(ControllersTest, ADeploymentGetsItsPods) {
    cluster.put_text("apps/deployments", kDeployment);
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(cluster.objects.list("pods").size(), 4u);
    EXPECT_EQ(cluster.status("apps/deployments", "default", "web", "readyReplicas"), 4);
    EXPECT_EQ(cluster.status("apps/deployments", "default", "web", "updatedReplicas"), 4);
    const auto sets = cluster.objects.list("apps/replicasets");
    ASSERT_EQ(sets.size(), 1u);
    EXPECT_EQ(sets[0]->meta.annotations.get("deployment.kubernetes.io/revision"), "1");
}

TEST_F(ControllersTest, APodWithANodeIsScheduledWhateverWasSaidBefore) {
    cluster.put_text("pods", R"({"metadata":{"name":"made","namespace":"default"},"spec":{"nodeName":"node-0",
      "containers":[{"name":"a","image":"b"}]},"status":{"phase":"Pending"}})");
    cluster.put_text("pods", R"({"metadata":{"name":"late","namespace":"default"},"spec":{"nodeName":"node-0",
      "containers":[{"name":"a","image":"b"}]},"status":{"phase":"Pending","conditions":[
      {"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}})");
    ASSERT_TRUE(cluster.settle());
    for (const auto* name : {"made", "late"}) {
        const auto pod = cluster.objects.find("pods", "default", name);
        const auto& conditions = base::find(pod->document(), {"status", "conditions"})->as_array();
        EXPECT_EQ(std::count_if(conditions.begin(), conditions.end(),
                                [](const Json& c) {
                                    return base::find_string(c, {"type"}) == "PodScheduled" &&
                                           base::find_string(c, {"status"}) == "True";
                                }),
                  1)
            << name << base::to_text(conditions);
    }
}

TEST_F(ControllersTest, ARollingUpdateReplacesEveryPodAndKeepsTheOldSet) {
    cluster.put_text("apps/deployments", kDeployment);
    ASSERT_TRUE(cluster.settle());
    set_image("v2");
    ASSERT_TRUE(cluster.settle());
    const auto pods = cluster.objects.list("pods");
    EXPECT_EQ(pods.size(), 4u);
    for (const auto& pod : pods) {
        EXPECT_EQ(base::find(pod->document(), {"spec", "containers"})->as_array()[0].at("image").as_string(), "v2");
    }
    EXPECT_EQ(cluster.objects.list("apps/replicasets").size(), 2u);
    set_image("v1");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(cluster.objects.list("apps/replicasets").size(), 2u) << "a rollback finds its old set again";
}

TEST_F(ControllersTest, ADeletedPodComesBackAndASmallerNumberTakesSomeAway) {
    cluster.put_text("apps/deployments", kDeployment);
    ASSERT_TRUE(cluster.settle());
    const auto victim = cluster.objects.list("pods")[0];
    cluster.objects.remove("pods", "default", victim->meta.name);
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(cluster.objects.list("pods").size(), 4u);
    Json document = cluster.objects.find("apps/deployments", "default", "web")->document();
    base::object_at(document, {"spec"})["replicas"] = 1;
    cluster.put("apps/deployments", document);
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(cluster.objects.list("pods").size(), 1u);
}

// As when its template names a node that is full.
TEST_F(ControllersTest, ASetWhosePodsFailAtOnceRestsLongerAndLonger) {
    cluster.put_text("apps/replicasets", R"({"kind":"ReplicaSet","metadata":{"name":"web","namespace":"default"},"spec":
      {"replicas":1,"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"a"}]}}}})");
    const auto fail_all = [&] {
        for (const auto& pod : cluster.objects.list("pods")) {
            Json document = pod->document();
            base::object_at(document, {"status"})["phase"] = "Failed";
            cluster.put("pods", document);
        }
    };
    std::vector<size_t> counts;
    for (int second = 0; second < 8; ++second) {
        ASSERT_TRUE(cluster.settle());
        fail_all();
        counts.push_back(cluster.objects.list("pods").size());
        cluster.now = cluster.now + std::chrono::seconds(1);
    }
    EXPECT_EQ(counts, (std::vector<size_t>{1, 2, 2, 3, 3, 3, 3, 4}));
}

TEST_F(ControllersTest, OwnedObjectsGoWithTheirOwner) {
    cluster.put_text("apps/deployments", kDeployment);
    ASSERT_TRUE(cluster.settle());
    cluster.objects.remove("apps/deployments", "default", "web");
    ASSERT_TRUE(cluster.settle());
    EXPECT_TRUE(cluster.objects.list("apps/replicasets").empty());
    EXPECT_TRUE(cluster.objects.list("pods").empty());
}

TEST_F(ControllersTest, AJobRunsToItsEnd) {
    cluster.put_text("batch/jobs",
                     R"({"kind":"Job","metadata":{"name":"sum","namespace":"default"},"spec":{"completions":3,
      "parallelism":2,"template":{"spec":{"nodeName":"node-0","restartPolicy":"Never","containers":[{"name":"a"}]}}}})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(cluster.status("batch/jobs", "default", "sum", "active"), 2);
    for (int i = 0; i < 3; ++i) {
        cluster.now = cluster.now + std::chrono::seconds(5);
        ASSERT_TRUE(cluster.settle());
    }
    EXPECT_EQ(cluster.status("batch/jobs", "default", "sum", "succeeded"), 3);
    EXPECT_EQ(cluster.objects.list("pods").size(), 3u);
    const auto job = cluster.objects.find("batch/jobs", "default", "sum");
    EXPECT_EQ(job->document().at_pointer("/status/conditions/0/type").as_string(), "Complete");
}

TEST_F(ControllersTest, ABudgetCountsHealthyPods) {
    cluster.put_text("apps/deployments", kDeployment);
    cluster.put_text("policy/poddisruptionbudgets", R"({"metadata":{"name":"web","namespace":"default"},
      "spec":{"maxUnavailable":"25%","selector":{"matchLabels":{"app":"web"}}}})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(cluster.status("policy/poddisruptionbudgets", "default", "web", "expectedPods"), 4);
    EXPECT_EQ(cluster.status("policy/poddisruptionbudgets", "default", "web", "desiredHealthy"), 3);
    EXPECT_EQ(cluster.status("policy/poddisruptionbudgets", "default", "web", "disruptionsAllowed"), 1);
}

TEST_F(ControllersTest, ADeletedNamespaceTakesItsContentsAlong) {
    cluster.put_text("namespaces", R"({"metadata":{"name":"team"},"spec":{"finalizers":["kubernetes"]}})");
    cluster.put_text("configmaps", R"({"metadata":{"name":"c","namespace":"team"}})");
    cluster.put_text("configmaps", R"({"metadata":{"name":"c","namespace":"default"}})");
    cluster.put_text(
        "namespaces",
        R"({"metadata":{"name":"team","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"finalizers":["kubernetes"]}})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(cluster.objects.find("namespaces", "", "team"), nullptr);
    EXPECT_EQ(cluster.objects.find("configmaps", "team", "c"), nullptr);
    EXPECT_NE(cluster.objects.find("configmaps", "default", "c"), nullptr);
}

TEST(Scaled, PercentagesRoundAsAsked) {
    {
        const Json value = *base::parse_json("\"25%\"");
        EXPECT_EQ(scaled(&value, 10, true, 0), 3);
    }
    {
        const Json value = *base::parse_json("\"25%\"");
        EXPECT_EQ(scaled(&value, 10, false, 0), 2);
    }
    {
        const Json value = *base::parse_json("7");
        EXPECT_EQ(scaled(&value, 10, false, 0), 7);
    }
    EXPECT_EQ(scaled(nullptr, 10, false, 1), 1);
}

}  // namespace
}  // namespace berth::control
