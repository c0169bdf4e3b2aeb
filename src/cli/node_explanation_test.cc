#include "cli/node_explanation.h"

#include <gtest/gtest.h>

#include "cli/dump.h"
#include "run/world.h"

namespace berth::cli {
namespace {

constexpr std::string_view kNode = R"(
apiVersion: v1
kind: Node
metadata: {name: n1, annotations: {node.koordinator.sh/reservation: '{"resources":{"cpu":"4"}}'}}
spec: {taints: [{key: only, value: gpu, effect: NoSchedule}]}
status: {allocatable: {cpu: "16", memory: 8Gi, pods: "10"}}
---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {name: kept, uid: r}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  allocateOnce: false
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: "4"}}}]}}
status: {phase: Available, nodeName: n1, allocatable: {cpu: "4"}}
---
apiVersion: v1
kind: Pod
metadata: {name: plain, uid: p}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: "5"}}}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: web
  uid: w
  labels: {app: web}
  annotations: {scheduling.koordinator.sh/reservation-allocated: '{"name":"kept","uid":"r"}'}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
)";

TEST(ExplainNode, SaysWhoHasWhat) {
    run::World world(base::Time{1'794'780'000'000'000'000});
    const auto objects = read_objects(kNode);
    ASSERT_TRUE(objects) << objects.error().message;
    for (const auto& object : *objects) ASSERT_TRUE(world.put(object));
    world.cluster().prepare();
    const auto node = explain_node(world.ledger(), "n1");
    ASSERT_TRUE(node) << node.error().message;
    EXPECT_EQ(node->state, "only pods that tolerate only=gpu:NoSchedule come to it");
    ASSERT_EQ(model::resource_name(node->amounts.at(0).resource), "cpu");
    const auto& cpu = node->amounts[0];
    EXPECT_EQ(cpu.allocatable, 16000);
    EXPECT_EQ(cpu.outside, 4000);
    EXPECT_EQ(cpu.pods, 5000);
    EXPECT_EQ(cpu.reserved, 4000);
    EXPECT_EQ(cpu.drawn, 1000);
    EXPECT_EQ(cpu.idle, 3000);
    EXPECT_EQ(cpu.free, 3000);
    ASSERT_EQ(node->pods.size(), 2u);
    EXPECT_EQ(node->pods[1].name, "default/web");
    EXPECT_EQ(node->pods[1].draws, "cpu=1 from kept");
    const std::string text = node_text(*node);
    EXPECT_NE(text.find("cpu        16            4              5      4          1       3      3"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("kept          Available   cpu=4      cpu=1   cpu=3   app=web"), std::string::npos) << text;
    EXPECT_EQ(explain_node(world.ledger(), "n2").error().message, "nodes \"n2\" not found");
}

}  // namespace
}  // namespace berth::cli
