#include "cli/whatif.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/dump.h"

namespace berth::cli {
namespace {

constexpr base::Time kNow{1'794'780'000'000'000'000};

// `berth whatif -o json` of what the YAML says.
JsonObject answer(std::string_view yaml) {
    run::World world(kNow);
    const auto objects = read_objects(yaml);
    EXPECT_TRUE(objects) << objects.error().message;
    for (const auto& object : *objects) EXPECT_TRUE(world.put(object));
    auto answers = world.settle();
    return whatif_document({std::move(answers), world.holdings()}).as_object();
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
        for (const auto* key :
             {"kind", "namespace", "name", "scheduled", "node", "from", "reservation", "charges", "cpus", "numa",
              "feasible", "scores", "reservationScores", "rejected", "victims", "message", "error"}) {
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
              R"([{"name":"live","phase":"Available","node":"n1","allocatable":{"cpu":"4"},"allocated":{},)"
              R"("cpus":"","numa":[],"devices":{}},)"
              R"({"name":"unread","phase":"Pending","node":null,"allocatable":{},"allocated":{},"cpus":"","numa":[],)"
              R"("devices":{}}])");
}

// What would be an event or a condition in a cluster.
TEST(Whatif, SaysWhatItDoesNotTakeAsWritten) {
    run::World world(kNow);
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

std::vector<std::string> names(const JsonObject& said) {
    std::vector<std::string> out;
    for (const auto& result : said.at("results").as_array()) {
        const Json& node = result.at("node");
        out.push_back(fmt::format("{} {}", std::string_view(result.at("name").as_string()),
                                  node.is_null() ? "-" : std::string_view(node.as_string())));
    }
    return out;
}
using Names = std::vector<std::string>;

// Who was refused is asked again when somebody later has made it possible, as the scheduler does; it then stands where
// it got its place. Whoever is refused again keeps what was said first.
TEST(Whatif, TheRefusedAreAskedAgainWhenOthersMakeItPossible) {
    const auto said = answer(std::string(kNode) + R"(
kind: Pod
metadata: {name: follower, labels: {app: follower}}
spec:
  priority: 10
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: host, labelSelector: {matchLabels: {app: leader}}}
  containers: [{name: c}]
---
kind: Node
metadata: {name: n2, labels: {host: n2}}
status: {allocatable: {cpu: 8, memory: 16Gi, pods: 10}}
---
kind: Pod
metadata: {name: large}
spec: {priority: 5, containers: [{name: c, resources: {requests: {cpu: 9}}}]}
---
kind: Pod
metadata: {name: leader, labels: {app: leader}}
spec: {nodeSelector: {host: n2}, containers: [{name: c}]}
)");
    EXPECT_EQ(names(said), (Names{"large -", "leader n2", "follower n2"}));
    EXPECT_TRUE(said.at("results").at(2).at("message").is_null());
}

// The pod that it was claimed for is gone: nobody else would ever get it.
TEST(Whatif, AClaimOfAVanishedPodIsReleased) {
    const auto said = answer(std::string(kNode) + R"(
kind: Reservation
metadata: {name: r1, uid: u-r1}
spec:
  ttl: "0"
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: 6}}}]}}
status:
  phase: Available
  nodeName: n1
  allocatable: {cpu: 6}
  currentOwners: [{namespace: default, name: gone, uid: u-gone}]
---
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: c, resources: {requests: {cpu: 6}}}]}
)");
    EXPECT_EQ(names(said), Names{"web n1"});
    EXPECT_EQ(said.at("results").at(0).at("reservation"), Json("r1"));
    EXPECT_EQ(said.at("reservations").at(0).at("phase"), Json("Succeeded"));
}

// Of equals the oldest, then the first in the input; whatever their names.
TEST(Whatif, EqualsGoInTheOrderOfTheQueue) {
    const auto said = answer(std::string(kNode) + R"(
kind: Pod
metadata: {name: c, creationTimestamp: "2026-01-01T00:00:02Z"}
spec: {containers: [{name: c}]}
---
kind: Pod
metadata: {name: b, creationTimestamp: "2026-01-01T00:00:02Z"}
spec: {containers: [{name: c}]}
---
kind: Pod
metadata: {name: gated, creationTimestamp: "2026-01-01T00:00:01Z"}
spec: {schedulingGates: [{name: later}], containers: [{name: c}]}
---
kind: Pod
metadata: {name: a, creationTimestamp: "2026-01-01T00:00:03Z"}
spec: {containers: [{name: c}]}
)");
    EXPECT_EQ(names(said), (Names{"gated -", "c n1", "b n1", "a n1"}));
}

// A room that was made on the way is nobody's business.
TEST(Whatif, WhoeverPreemptsIsPlacedAndHasVictims) {
    const auto said = answer(std::string(kNode) + R"(
kind: Pod
metadata: {name: low}
spec: {nodeName: n1, priority: 1, containers: [{name: c, resources: {requests: {cpu: 6}}}]}
---
kind: Pod
metadata: {name: high}
spec: {priority: 100, containers: [{name: c, resources: {requests: {cpu: 6}}}]}
---
kind: Pod
metadata: {name: small}
spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}
)");
    EXPECT_EQ(names(said), (Names{"high n1", "small -"}));
    const Json& high = said.at("results").at(0);
    EXPECT_EQ(base::to_text(high.at("victims")), R"(["default/low"])");
    EXPECT_EQ(base::to_text(high.at("rejected")), R"({"n1":["Insufficient cpu"]})");
    EXPECT_TRUE(high.at("reservation").is_null());
    EXPECT_TRUE(high.at("message").is_null());
    EXPECT_EQ(base::to_text(high.at("charges")), "{}");
    EXPECT_EQ(base::to_text(said.at("reservations")), "[]");
}

// As the scheduler left them when the dump was taken: one room is held, one has lost its pod.
TEST(Whatif, RoomsThatAreInTheDumpAreTakenOver) {
    const auto room = [](const std::string& pod) {
        return fmt::format(R"(
kind: Reservation
metadata: {{name: berth-room-{0}, uid: r-{0}, labels: {{berth.dev/made-for: preemption}}}}
spec:
  allocateOnce: true
  allocatePolicy: Restricted
  preAllocation: true
  owners: [{{object: {{kind: Pod, uid: {0}}}}}]
  template: {{spec: {{nodeName: n1, schedulerName: berth, containers: [{{name: c, resources: {{requests: {{cpu: 6}}}}}}]}}}}
---)",
                           pod);
    };
    const auto said = answer(std::string(kNode) + room("u-high") + room("u-gone") + R"(
kind: Pod
metadata: {name: high, uid: u-high}
spec: {schedulerName: berth, priority: 100, containers: [{name: c, resources: {requests: {cpu: 6}}}]}
)");
    const auto placed = names(said);
    EXPECT_NE(std::find(placed.begin(), placed.end(), "high n1"), placed.end());
}

TEST(Whatif, SaysThatItPlacesPodsOfOtherSchedulers) {
    run::World world(kNow);
    const auto objects = read_objects(std::string(kNode) + R"(
kind: Pod
metadata: {name: a}
spec: {schedulerName: volcano, containers: [{name: c}]}
---
kind: Pod
metadata: {name: b}
spec: {schedulerName: default-scheduler, containers: [{name: c}]}
---
kind: Pod
metadata: {name: bound}
spec: {schedulerName: volcano, nodeName: n1, containers: [{name: c}]}
)");
    for (const auto& object : *objects) ASSERT_TRUE(world.put(object));
    EXPECT_EQ(world.warnings(),
              std::vector<std::string>{"1 pending pod(s) name the scheduler \"volcano\", which no profile here serves; "
                                       "they are placed by the profile \"berth\""});
    const auto answers = world.settle();
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_EQ(answers[0].node, "n1");
    EXPECT_EQ(answers[1].node, "n1");
}

}  // namespace
}  // namespace berth::cli
