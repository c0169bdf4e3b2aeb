#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "cli/dump.h"
#include "cli/explanation.h"

namespace berth::cli {
namespace {

// A node n1 with 4 cpu, what is on it, and the pod "ask": what would have to change, joined.
std::string advice(const std::string& ask, const std::string& others = "", const std::string& node = "") {
    run::World world(base::Time{1'794'780'000'000'000'000});
    const auto objects = read_objects(fmt::format(R"(
apiVersion: v1
kind: Node
metadata: {{name: n1, labels: {{kubernetes.io/hostname: n1, zone: a}}}}
spec: {{{}}}
status: {{allocatable: {{cpu: "4", memory: 8Gi, pods: "10"}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: ask, uid: ask, labels: {{app: web}}}}
spec: {{{}}}
{}
)",
                                                  node, ask, others));
    EXPECT_TRUE(objects) << objects.error().message;
    for (const auto& object : *objects) EXPECT_TRUE(world.put(object));
    const auto said = explain_pod(world, "default", "ask");
    EXPECT_TRUE(said) << said.error().message;
    if (said->nearest.size() != 1) return fmt::format("{} groups: {}", said->nearest.size(), said->summary);
    return fmt::format("{}", fmt::join(said->nearest[0].changes, " | "));
}

std::string placed(const std::string& name, const std::string& spec, const std::string& labels = "{}") {
    return fmt::format(R"(
---
apiVersion: v1
kind: Pod
metadata: {{name: {}, uid: {}, labels: {}}}
spec: {{nodeName: n1, {}}}
)",
                       name, name, labels, spec);
}

constexpr const char* kPort = "containers: [{name: c, ports: [{hostPort: 80, containerPort: 80}]}]";

TEST(Advice, NamesThePortAndWhoHasIt) {
    EXPECT_EQ(advice(kPort, placed("front", kPort)), "host port 80 (default/front has it)");
}

TEST(Advice, NamesTheRuleAndWhomItSpeaksOf) {
    const auto affinity = [](const std::string& kind, const std::string& key) {
        return fmt::format(
            "containers: [{{name: c}}], affinity: {{{}: {{requiredDuringSchedulingIgnoredDuringExecution: "
            "[{{labelSelector: {{matchLabels: {{app: web}}}}, topologyKey: {}}}]}}}}",
            kind, key);
    };
    EXPECT_EQ(advice(affinity("podAntiAffinity", "kubernetes.io/hostname"),
                     placed("front", "containers: [{name: c}]", "{app: web}")),
              "none of the pods with app=web on it, as its podAntiAffinity wants (default/front is there)");
    EXPECT_EQ(advice("containers: [{name: c}]", placed("hermit", affinity("podAntiAffinity", "zone"), "{app: db}")),
              "nobody in zone=a whose podAntiAffinity keeps pods with app=web away (default/hermit does)");
    EXPECT_EQ(
        advice("containers: [{name: c}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
               "[{labelSelector: {matchLabels: {app: db}}, topologyKey: zone}]}}"),
        "one of the pods with app=db in zone=a, as its podAffinity wants");
}

TEST(Advice, NamesTheSpreadRule) {
    const auto spread = [](const std::string& key) {
        return fmt::format(
            "containers: [{{name: c}}], topologySpreadConstraints: [{{maxSkew: 1, topologyKey: {}, whenUnsatisfiable: "
            "DoNotSchedule, minDomains: 2, labelSelector: {{matchLabels: {{app: web}}}}}}]",
            key);
    };
    EXPECT_EQ(advice(spread("zone"), placed("front", "containers: [{name: c}]", "{app: web}")),
              "fewer pods with app=web in zone=a: 1 are there, and its spread has maxSkew 1");
    EXPECT_EQ(advice(spread("rack")), "the label rack, by which its pods with app=web are spread");
}

TEST(Advice, NamesTheLabelsThatAnAffinityAsksFor) {
    EXPECT_EQ(
        advice("containers: [{name: c}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
               "{nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}, {key: disk, operator: "
               "In, values: [ssd, nvme]}]}, {matchExpressions: [{key: gpu, operator: Exists}]}]}}}"),
        "the label disk in (ssd, nvme), or the label gpu");
}

TEST(Advice, NamesTheClaimAndItsVolume) {
    EXPECT_EQ(advice("containers: [{name: c}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]", R"(
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, uid: data, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {accessModes: [ReadWriteOnce], volumeName: disk, storageClassName: slow, resources: {requests: {storage: 1Gi}}}
status: {phase: Bound}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk, uid: disk}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  storageClassName: slow
  claimRef: {name: data, namespace: default, uid: data}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [b]}]}]}}
  csi: {driver: d, volumeHandle: h}
status: {phase: Bound}
)"),
              "volume disk of claim data within its reach");
}

TEST(Advice, NamesTheOwnersOfWhatIsKeptIdle) {
    EXPECT_EQ(advice("containers: [{name: c, resources: {requests: {cpu: \"2\"}}}]", R"(
---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {name: kept, uid: r}
spec:
  owners: [{labelSelector: {matchLabels: {app: db}}}]
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: "3"}}}]}}
status: {phase: Available, nodeName: n1, allocatable: {cpu: "3"}}
)"),
              "1 more cpu (wants 2, 1 free; 3 is kept by reservation kept for app=db)");
}

TEST(Advice, KnowsWhoIsOnTheWayOut) {
    const std::string leaving = R"(
---
apiVersion: v1
kind: Pod
metadata: {name: old, uid: old, deletionTimestamp: "2026-11-16T00:00:00Z"}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: "3"}}}]}
)";
    const std::string ask = "containers: [{name: c, resources: {requests: {cpu: \"2\"}}}]";
    EXPECT_EQ(advice(ask, leaving), "1 more cpu (wants 2, 1 free; 3 comes free when default/old has gone)");
    run::World world(base::Time{1'794'780'000'000'000'000});
    const auto objects = read_objects(R"(
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: ask, uid: ask}
spec: {priority: 10, containers: [{name: c, resources: {requests: {cpu: "2"}}}]}
status: {nominatedNodeName: n1}
)" + leaving);
    for (const auto& object : objects.value()) EXPECT_TRUE(world.put(object));
    const auto said = explain_pod(world, "default", "ask");
    EXPECT_EQ(said->leaving, std::vector<std::string>{"default/old"});
    EXPECT_TRUE(said->victims.empty());
    EXPECT_TRUE(said->summary.starts_with("it waits for n1 until default/old has gone; now 0/1 nodes are available"))
        << said->summary;
}

// As a large cluster is read: by what is the same.
TEST(Advice, EqualNodesAreOneAnswer) {
    run::World world(base::Time{1'794'780'000'000'000'000});
    std::string yaml = R"(
apiVersion: v1
kind: Pod
metadata: {name: ask, uid: ask}
spec: {containers: [{name: c, resources: {requests: {cpu: "2"}}}]}
)";
    for (int i = 0; i < 17; ++i) {
        yaml += fmt::format(R"(---
apiVersion: v1
kind: Node
metadata: {{name: n{:02}}}
spec: {{unschedulable: {}}}
status: {{allocatable: {{cpu: "{}", pods: "10"}}}}
)",
                            i, i < 2, i < 2 ? 4 : 1);
    }
    const auto objects = read_objects(yaml);
    ASSERT_TRUE(objects) << objects.error().message;
    for (const auto& object : *objects) EXPECT_TRUE(world.put(object));
    const auto said = explain_pod(world, "default", "ask");
    ASSERT_TRUE(said);
    ASSERT_EQ(said->nearest.size(), 2u);
    EXPECT_EQ(said->nearest[0].changes, std::vector<std::string>{"kubectl uncordon n00 n01"});
    EXPECT_EQ(said->nearest[1].nodes.size(), 15u);
    const std::string text = explanation_text(*said);
    EXPECT_NE(
        text.find("on each of 15 nodes: n02, n03, n04, ...: a smaller request: 2 cpu is more than the node's 1\n"),
        std::string::npos)
        << text;
    EXPECT_NE(text.find("15 nodes: n02, n03, n04, ...   -       Insufficient cpu\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace berth::cli
