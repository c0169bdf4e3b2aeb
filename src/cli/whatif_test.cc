#include "cli/whatif.h"

#include <gtest/gtest.h>

#include "cli/dump.h"

namespace berth::cli {
namespace {

constexpr base::Time kNow{1'794'780'000'000'000'000};

// `berth whatif -o json` of what the YAML says.
JsonObject answer(std::string_view yaml) {
    World world(kNow);
    const auto objects = read_objects(yaml);
    EXPECT_TRUE(objects) << objects.error().message;
    for (const auto& object : *objects) EXPECT_TRUE(world.put(object));
    const auto outcomes = world.settle();
    return whatif_document(outcomes, world.holdings()).as_object();
}

constexpr std::string_view kNode = R"(
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 8, memory: 16Gi, pods: 10}}
---
)";

TEST(Whatif, AFlagThatDoesNotExistIsNamed) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(whatif({"--fil", "dump.yaml"}), 2);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("--fil"), std::string::npos);
}

TEST(Whatif, EveryKeyIsAlwaysThere) {
    const auto said = answer(std::string(kNode) + R"(
kind: Pod
metadata: {name: fits}
spec: {containers: [{name: c}]}
---
kind: Pod
metadata: {name: gated}
spec: {schedulingGates: [{name: later}], containers: [{name: c}]}
---
kind: Reservation
metadata: {name: bad}
spec: {ttl: abc, owners: [{object: {name: x}}], template: {spec: {containers: [{name: c}]}}}
)");
    ASSERT_EQ(said.at("results").as_array().size(), 3u);
    for (const auto& result : said.at("results").as_array()) {
        for (const auto* key : {"kind", "namespace", "name", "scheduled", "node", "reservation", "charges", "feasible",
                                "scores", "reservationScores", "rejected", "victims", "message", "error"}) {
            EXPECT_TRUE(result.as_object().contains(key)) << key;
        }
    }
}

// 4 cpu come from one, 8Gi from the other; neither is charged a zero.
TEST(Whatif, ChargesOfAJointDrawNameWhatIsDrawn) {
    const auto said = answer(std::string(kNode) + R"(
kind: Reservation
metadata: {name: a}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: 4}}}]}}
---
kind: Reservation
metadata: {name: b}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: c, resources: {requests: {memory: 8Gi}}}]}}
---
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: c, resources: {requests: {cpu: 4, memory: 8Gi}}}]}
)");
    EXPECT_EQ(base::to_text(said.at("results").at(2).at("charges")), R"({"a":{"cpu":"4"},"b":{"memory":"8Gi"}})");
}

// One that cannot be read is Pending; one that holds room keeps it, and its pod slot is not an amount.
TEST(Whatif, BrokenReservationsAreListedToo) {
    const auto said = answer(std::string(kNode) + R"(
kind: Reservation
metadata: {name: unread}
spec: {ttl: abc, owners: [{object: {name: x}}], template: {spec: {containers: [{name: c}]}}}
---
kind: Reservation
metadata: {name: live}
spec:
  ttl: abc
  owners: [{object: {name: x}}]
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: 4}}}]}}
status: {phase: Available, nodeName: n1, allocatable: {cpu: 4}}
)");
    EXPECT_EQ(base::to_text(said.at("reservations")),
              R"([{"name":"live","phase":"Available","node":"n1","allocatable":{"cpu":"4"},"allocated":{}},)"
              R"({"name":"unread","phase":"Pending","node":null,"allocatable":{},"allocated":{}}])");
}

// What would be an event or a condition in a cluster.
TEST(Whatif, SaysWhatItDoesNotTakeAsWritten) {
    World world(kNow);
    const auto objects = read_objects(R"(
kind: Node
metadata: {name: n1, annotations: {node.koordinator.sh/reservation: '{"resources":{"cpu":"-1"}}'}}
status: {allocatable: {cpu: 8, memory: 16Gi, pods: 10}}
---
kind: Pod
metadata: {name: odd, annotations: {scheduling.koordinator.sh/reservation-allocated: '{'}}
spec: {nodeName: n1, containers: [{name: c}]}
---
kind: Reservation
metadata: {name: both}
spec:
  ttl: 1h
  expires: "2036-01-01T00:00:00Z"
  owners: [{object: {name: x}}]
  template: {spec: {containers: [{name: c}]}}
)");
    for (const auto& object : *objects) ASSERT_TRUE(world.put(object));
    ASSERT_EQ(world.warnings().size(), 3u);
    EXPECT_TRUE(
        world.warnings()[0].starts_with("Node \"n1\": annotation \"node.koordinator.sh/reservation\": resources.cpu"));
    EXPECT_TRUE(world.warnings()[1].starts_with("Pod \"default/odd\": annotation"));
    EXPECT_TRUE(world.warnings()[2].starts_with("Reservation \"both\": spec.ttl and spec.expires"));
}

}  // namespace
}  // namespace berth::cli
