#include "cli/explanation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/dump.h"
#include "cli/migrate.h"
#include "cli/reserve.h"

namespace berth::cli {
namespace {

run::World world_of(std::string_view yaml) {
    run::World world(base::Time{1'794'780'000'000'000'000});
    const auto objects = read_objects(yaml);
    EXPECT_TRUE(objects) << objects.error().message;
    for (const auto& object : *objects) EXPECT_TRUE(world.put(object));
    return world;
}

constexpr std::string_view kCluster = R"(
apiVersion: v1
kind: Node
metadata: {name: full, labels: {disk: ssd}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: small, labels: {disk: ssd}}
status: {allocatable: {cpu: "1", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: special}
spec: {unschedulable: true, taints: [{key: only, value: gpu, effect: NoSchedule}]}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: busy, uid: b}
spec: {nodeName: full, containers: [{name: c, resources: {requests: {cpu: 2500m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, uid: w, labels: {app: web}}
spec: {nodeSelector: {disk: ssd}, containers: [{name: c, resources: {requests: {cpu: "2"}}}]}
)";

TEST(Explain, SaysPerNodeWhyNotAndWhatWouldHelp) {
    run::World world = world_of(kCluster);
    const auto said = explain_pod(world, "default", "web");
    ASSERT_TRUE(said);
    EXPECT_EQ(said->state, "Pending");
    EXPECT_TRUE(said->summary.starts_with("0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."))
        << said->summary;
    ASSERT_EQ(said->nearest.size(), 3u);
    EXPECT_EQ(said->nearest[0].nodes.front(), "full");
    EXPECT_EQ(said->nearest[0].changes, std::vector<std::string>{"500m more cpu (wants 2, 1500m free)"});
    EXPECT_EQ(said->nearest[1].nodes.front(), "small");
    EXPECT_EQ(said->nearest[1].changes, std::vector<std::string>{"a smaller request: 2 cpu is more than the node's 1"});
    const std::vector<std::string> special{"kubectl uncordon special", "a toleration of only=gpu:NoSchedule",
                                           "the label disk=ssd"};
    EXPECT_EQ(said->nearest[2].changes, special);
    size_t left = 3;
    for (const auto& step : said->steps) {
        EXPECT_EQ(step.in, left);
        left = step.out;
    }
    EXPECT_EQ(left, 0u);
    EXPECT_EQ(said->nodes.at("special").size(), 3u);
    const std::string text = explanation_text(*said);
    EXPECT_NE(text.find("on full: 500m more cpu (wants 2, 1500m free)"), std::string::npos) << text;
}

TEST(Explain, SaysWhatIsHeldOutsideKubernetes) {
    run::World world = world_of(R"(
apiVersion: v1
kind: Node
metadata: {name: n1, annotations: {node.koordinator.sh/reservation: '{"resources":{"cpu":"4"}}'}}
status: {allocatable: {cpu: "16", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: large, uid: l}
spec: {containers: [{name: c, resources: {requests: {cpu: "14", memory: 16Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: there, uid: t}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: "10"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: late, uid: s}
spec: {containers: [{name: c, resources: {requests: {cpu: "6"}}}]}
)");
    const std::vector<std::string> too_large{
        "a smaller request: 14 cpu is more than the node's 12, 4 cpu held for processes outside Kubernetes",
        "a smaller request: 16Gi memory is more than the node's 8Gi"};
    EXPECT_EQ(explain_pod(world, "default", "large")->nearest.at(0).changes, too_large);
    EXPECT_EQ(explain_pod(world, "default", "late")->nearest.at(0).changes,
              std::vector<std::string>{"4 more cpu (wants 6, 2 free, 4 cpu held for processes outside Kubernetes)"});
}

TEST(Explain, TellsOfReservationsAndTheirOwners) {
    run::World world = world_of(std::string(kCluster) + R"(
---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {name: kept, uid: r}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
status: {phase: Available, nodeName: full, allocatable: {cpu: "1"}}
)");
    const auto pod = explain_pod(world, "default", "web");
    ASSERT_TRUE(pod);
    ASSERT_EQ(pod->matches.size(), 1u);
    EXPECT_EQ(pod->matches[0].state, "Available on full, {cpu: \"1\"} left");
    EXPECT_EQ(pod->nearest[0].changes, std::vector<std::string>{"500m more cpu (wants 2, 1500m free)"});
    const auto kept = explain_reservation(world, "kept");
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->state, "Available");
    ASSERT_EQ(kept->matches.size(), 1u);
    EXPECT_EQ(kept->matches[0].name, "default/web");
    EXPECT_EQ(kept->matches[0].state, "pending");
    EXPECT_FALSE(explain_reservation(world, "none"));
}

TEST(Explain, SaysWhyAReservationIsNotForItsOwner) {
    const auto state = [](const std::string& spec, const std::string& pods = "") {
        run::World world = world_of(fmt::format(R"({}
---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {{name: kept, uid: r}}
spec:
  owners: [{{labelSelector: {{matchLabels: {{app: web}}}}}}]
  template: {{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: "1"}}}}}}]}}}}
  {}
status: {{phase: Available, nodeName: full, allocatable: {{cpu: "1"}}}}
{})",
                                                kCluster, spec, pods));
        const auto pod = explain_pod(world, "default", "web");
        return pod->matches.at(0).state + " | " + explain_reservation(world, "kept")->summary;
    };
    const auto has = [](const std::string& text, std::string_view words) {
        return text.find(words) != std::string::npos;
    };
    EXPECT_TRUE(has(state("unschedulable: true"), "left; not for this pod: it is unschedulable | "));
    EXPECT_TRUE(has(state("unschedulable: true"), "left; nobody may draw from it: it is unschedulable;"));
    EXPECT_TRUE(has(state("taints: [{key: k, value: v, effect: NoSchedule}]"),
                    "not for this pod: its taint k=v:NoSchedule is not tolerated"));
    const std::string unreadable = state("", R"(---
apiVersion: v1
kind: Pod
metadata: {name: torn, annotations: {scheduling.koordinator.sh/reservation-allocated: "{"}}
spec: {nodeName: full, containers: [{name: c}]}
)");
    EXPECT_TRUE(has(unreadable,
                    "nobody may draw from it: full has a pod whose scheduling.koordinator.sh/reservation-allocated "
                    "cannot be read"))
        << unreadable;
}

TEST(Explain, SaysWhatIsLeftOfAReservation) {
    run::World world = world_of(std::string(kCluster) + R"(
---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {name: kept, uid: r, annotations: {node.koordinator.sh/reservation: '{"resources":{"cpu":"1"}}'}}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  allocateOnce: false
  template: {spec: {containers: [{name: c, ports: [{hostPort: 80}, {hostPort: 81}], resources: {requests: {cpu: "2"}}}]}}
status: {phase: Available, nodeName: full, allocatable: {cpu: "2"}}
---
apiVersion: v1
kind: Pod
metadata:
  name: came
  uid: came
  labels: {app: web}
  annotations: {scheduling.koordinator.sh/reservation-allocated: '{"name":"kept","uid":"r"}'}
spec: {nodeName: full, containers: [{name: c, ports: [{hostPort: 80}], resources: {requests: {cpu: "1"}}}]}
)");
    EXPECT_EQ(explain_pod(world, "default", "web")->matches.at(0).state,
              "Available on full, port 81 left ({cpu: \"1\"} held back)");
}

// How its node compares with the others now.
TEST(Explain, ABoundPodIsWhereASchedulerWouldPutItOrNot) {
    constexpr std::string_view kNodes = R"(
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
status: {allocatable: {cpu: "8", memory: 16Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {nodeName: NODE, containers: [{name: c, resources: {requests: {cpu: "2", memory: 1Gi}}}]}
)";
    const auto on = [&](std::string_view node, std::string_view more) {
        std::string text(kNodes);
        text.replace(text.find("NODE"), 4, node);
        run::World world = world_of(text + std::string(more));
        return explain_pod(world, "default", "web")->summary;
    };
    EXPECT_EQ(on("n2", ""), "it is bound to n2; of 2 nodes that would do none is better");
    EXPECT_TRUE(on("n1", "").starts_with("it is bound to n1; of 2 nodes that would do n2 would be chosen now ("))
        << on("n1", "");
    EXPECT_EQ(on("n1", R"(
---
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {unschedulable: true}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
)"),
              "it is bound to n1; if it came again it could not go there: node(s) were unschedulable");
    EXPECT_EQ(on("gone", ""), "it is bound to gone, a node that does not exist");
}

TEST(Explain, ABoundPodAndOneThatFits) {
    run::World world = world_of(kCluster);
    const auto bound = explain_pod(world, "default", "busy");
    EXPECT_EQ(bound->summary, "it is bound to full; no other node would do");
    EXPECT_EQ(bound->nodes.at("special").size(), 2u);
    EXPECT_EQ(explain_pod(world, "default", "busy")->summary, bound->summary) << "nothing was changed by the question";
    EXPECT_EQ(explanation_text(*bound).find("It would go"), std::string::npos);
    world.remove("Pod", "default", "busy");
    const auto fits = explain_pod(world, "default", "web");
    EXPECT_EQ(fits->node, "full");
    EXPECT_EQ(fits->scores.size(), 1u);
    EXPECT_TRUE(fits->nearest.empty());
    run::World used = world_of(std::string(kCluster) + R"(
---
apiVersion: v1
kind: Pod
metadata:
  name: came
  annotations: {scheduling.koordinator.sh/reservation-allocated: '{"name":"kept","uid":"r"}'}
spec: {nodeName: full, containers: [{name: c}]}
)");
    const std::string drew = explain_pod(used, "default", "came")->summary;
    EXPECT_TRUE(drew.starts_with("it is bound to full, in the room that kept held for it; of 2 nodes")) << drew;
    const auto none = explain_pod(world, "default", "nobody");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().message, "pods \"nobody\" not found in namespace \"default\"");
}

TEST(Explain, ABindThatTheServerRefused) {
    run::World world = world_of(std::string(kCluster) + R"(
---
apiVersion: v1
kind: Pod
metadata: {name: small, uid: s}
spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
status:
  conditions:
  - {type: PodScheduled, status: "False", reason: SchedulerError, message: "binding to node full failed: no entry"}
)");
    EXPECT_EQ(explain_pod(world, "default", "small")->summary,
              "it fits, and the scheduler tried in vain: binding to node full failed: no entry");
}

// Before any server is asked.
TEST(Reserve, WrongFlagsAreWrongUsage) {
    EXPECT_EQ(reserve({"r"}), 2) << "nothing to reserve";
    EXPECT_EQ(reserve({"r", "-r", "cpu=1"}), 2) << "for nobody";
    EXPECT_EQ(reserve({"r", "-r", "cpu=much", "--owner", "a=b"}), 2);
    EXPECT_EQ(reserve({"r", "-r", "cpu=1", "--owner", "a=b", "--per-node", "--node", "n1"}), 2);
    EXPECT_EQ(reserve({"r", "-r", "cpu=1", "--owner", "a=b", "--per-node", "--count", "2"}), 2);
    EXPECT_EQ(reserve({"r", "-r", "cpu=1", "--owner", "a=b", "--nodes", "pool=a"}), 2) << "of one per node";
}

TEST(Reserve, OnePerNodeOrSeveral) {
    ReserveFlags flags;
    flags.name = "batch";
    flags.resources = {"cpu=2", "memory=4Gi"};
    flags.owner_labels = {"job=night"};
    flags.ttl = "1h";
    const auto each = reservations_for(flags, {"n1", "n2"});
    ASSERT_TRUE(each);
    ASSERT_EQ(each->size(), 2u);
    EXPECT_EQ(base::find_string((*each)[1], {"metadata", "name"}), "batch-n2");
    EXPECT_EQ(base::find_string((*each)[1], {"spec", "template", "spec", "nodeName"}), "n2");
    flags.count = 3;
    EXPECT_EQ(reservations_for(flags, {})->size(), 3u);
    flags.resources = {"cpu=many"};
    EXPECT_NE(reservations_for(flags, {}).error().message.find("--resource cpu"), std::string::npos);
    flags.resources = {"cpu=1"};
    flags.owner_controller = "Deployment/default/web";
    EXPECT_NE(reservations_for(flags, {}).error().message.find("belong to its ReplicaSets"), std::string::npos);
    flags.owner_controller = "replicaset/default/web";
    EXPECT_NE(reservations_for(flags, {}).error().message.find("as in ReplicaSet"), std::string::npos);
    flags.owner_controller.clear();
    flags.owner_labels.clear();
    EXPECT_EQ(reservations_for(flags, {}).error().message,
              "for whom? Give --owner KEY=VALUE, --owner-pod or --owner-controller");
}

Json pod_of(std::string_view yaml) {
    return read_objects(yaml)->front();
}

TEST(Migrate, ReservesElsewhereForTheController) {
    const auto made = migration_of(pod_of(R"(
apiVersion: v1
kind: Pod
metadata:
  {name: web-1, namespace: shop, uid: 0123-45678, labels: {app: web},
   ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: rs, controller: true}]}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
)"),
                                   {60, true});
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(base::find_string(*made, {"metadata", "name"}), "migrate-web-1-45678");
    EXPECT_EQ(base::find(*made, {"spec", "template", "spec", "nodeName"}), nullptr);
    EXPECT_EQ(base::find_string(*made, {"spec", "template", "metadata", "namespace"}), "shop")
        << "its claims are there";
    EXPECT_EQ(*base::find(*made, {"spec", "preAllocation"}), Json(true));
    const Json& owner = base::find(*made, {"spec", "owners"})->as_array().front();
    EXPECT_EQ(base::find_string(owner, {"controller", "namespace"}), "shop");
    EXPECT_EQ(base::find_string(owner, {"controller", "uid"}), "rs");
    const Json& terms = *base::find(*made, {"spec", "template", "spec", "affinity", "nodeAffinity",
                                            "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
    EXPECT_EQ(base::to_text(terms),
              R"([{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n1"]}]}])");
}

TEST(Migrate, RefusesWhatNobodyWouldRecreate) {
    const auto refused = [](std::string_view more, std::string_view spec = "{nodeName: n1}") {
        return migration_of(
                   pod_of(fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: p{}}}\nspec: {}\n", more, spec)),
                   {})
            .error()
            .message;
    };
    EXPECT_EQ(refused(""), "pod \"p\" has no controller: nothing would recreate it");
    EXPECT_EQ(refused("", "{}"), "pod \"p\" is not bound to a node: there is nothing to move");
    EXPECT_EQ(refused(", ownerReferences: [{kind: DaemonSet, name: d, controller: true}]"),
              "pod \"p\" belongs to its node: its DaemonSet would bring it back there");
    EXPECT_EQ(refused(", deletionTimestamp: \"2026-01-01T00:00:00Z\""), "pod \"p\" is being deleted already");
}

}  // namespace
}  // namespace berth::cli
