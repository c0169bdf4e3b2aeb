#include "model/preemption_hold.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/json_view.h"
#include "model/reservation_rules.h"

namespace berth::model {
namespace {

Result<Pod> pod_of(const std::string& text) {
    base::JsonParser parser;
    return read_pod(*parser.parse(text));
}

Result<Reservation> room_of(const Pod& pod) {
    base::JsonParser parser;
    const std::string text = base::to_text(preemption_hold_for(pod, "n1"));
    return read_reservation(*parser.parse(text));
}

TEST(RoomTest, HoldsWhatThePodWouldHold) {
    const auto pod = pod_of(R"({"metadata":{"name":"p","namespace":"shop","uid":"u-1","labels":{"app":"web"}},"spec":{
        "schedulerName":"berth","priority":5,"tolerations":[{"key":"k","operator":"Exists","effect":"NoSchedule"}],
        "affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"host",
          "labelSelector":{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"x","operator":"DoesNotExist"}]},
          "namespaceSelector":{"matchLabels":{"team":"a"}}}]}},
        "volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"c"}}],
        "containers":[{"name":"a","ports":[{"containerPort":80,"hostPort":8080,"protocol":"UDP","hostIP":"10.0.0.1"}],
          "resources":{"requests":{"cpu":"1500m","memory":"3Gi","example.com/gpu":"2","hugepages-2Mi":"4Mi"},
                       "limits":{"example.com/gpu":"2","hugepages-2Mi":"4Mi"}}}]}})");
    ASSERT_TRUE(pod.ok()) << pod.error().message;
    const auto room = room_of(*pod);
    ASSERT_TRUE(room.ok()) << room.error().message;
    EXPECT_EQ(room->meta.name, "preemption-u-1");
    EXPECT_EQ(preemption_hold_owner(*room), "u-1");
    EXPECT_TRUE(room->pre_allocation && room->allocate_once && room->made_by_us());
    EXPECT_EQ(room->policy, AllocatePolicy::Restricted);
    EXPECT_EQ(room->spec->requests, pod->spec->requests);
    EXPECT_EQ(room->spec->ports, pod->spec->ports);
    EXPECT_EQ(room->spec->anti_affinity, pod->spec->anti_affinity);
    EXPECT_EQ(room->spec->tolerations, pod->spec->tolerations);
    EXPECT_EQ(room->spec->volumes, pod->spec->volumes);
    EXPECT_EQ(room->spec->ns, "shop");
    EXPECT_EQ(room->spec->labels.get("app"), "web");
    EXPECT_EQ(room->spec->node_name, "n1");
    EXPECT_TRUE(owned_by(*room, *pod));
    Pod other = *pod;
    other.meta.uid = "u-2";
    EXPECT_FALSE(owned_by(*room, other)) << "a later pod of the same name";
}

TEST(RoomTest, OtherReservationsAreNoRooms) {
    base::JsonParser parser;
    const auto plain = read_reservation(*parser.parse(
        R"({"metadata":{"name":"r","labels":{"berth.dev/made-for":"migration"}},"spec":{"owners":[{"object":{"uid":"u"}}],
        "template":{"spec":{"containers":[{"name":"a"}]}}}})"));
    ASSERT_TRUE(plain.ok());
    EXPECT_EQ(preemption_hold_owner(*plain), "");
}

}  // namespace
}  // namespace berth::model
