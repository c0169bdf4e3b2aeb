// What the server makes of reservations as they are written.
#include <gtest/gtest.h>

#include "api/test_front.h"

namespace berth::api {
namespace {

const std::string kReservations = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";

std::string reservation(const std::string& name, const std::string& in_template = "") {
    return R"({"metadata":{"name":")" + name +
           R"("},"spec":{"owners":[{"controller":{"kind":"ReplicaSet","name":"web"}}],"template":{"spec":{)" +
           in_template + R"("containers":[{"name":"c"}]}}}})";
}

TEST(ReservationObjects, AReservationIsPendingFromTheBeginning) {
    TestFront t;
    const auto made = t.ask("POST", kReservations, reservation("r"));
    EXPECT_EQ(made.text({"status", "phase"}), "Pending") << made.raw.body;
    // As another client wrote it: nothing is put where nothing was said, or each apply would look like a change.
    const Json* owner = base::find(made.json, {"spec", "owners"});
    EXPECT_EQ(base::to_text(*owner), R"([{"controller":{"kind":"ReplicaSet","name":"web"}}])");
}

TEST(ReservationObjects, ATemplateSaysNothingThatNobodyWouldHeed) {
    TestFront t;
    t.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
          R"({"metadata":{"name":"calm"},"value":10,"preemptionPolicy":"Never"})");
    const auto gated = t.ask("POST", kReservations, reservation("gated", R"("schedulingGates":[{"name":"x/y"}],)"));
    EXPECT_EQ(gated.code, 422);
    EXPECT_NE(gated.text({"message"}).find("spec.template.spec.schedulingGates"), std::string::npos);
    const std::string other = R"("priorityClassName":"calm","preemptionPolicy":"PreemptLowerPriority",)";
    const auto torn = t.ask("POST", kReservations, reservation("torn", other));
    EXPECT_EQ(torn.code, 403);
    EXPECT_NE(torn.text({"message"}).find("computed Never"), std::string::npos) << torn.raw.body;
    const std::string same = R"("priorityClassName":"calm","preemptionPolicy":"Never",)";
    EXPECT_EQ(t.ask("POST", kReservations, reservation("same", same)).code, 201);
    EXPECT_EQ(t.ask("PUT", kReservations + "/same", reservation("same", other)).code, 403);
    t.ask("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/calm");
    EXPECT_EQ(t.ask("PUT", kReservations + "/same", reservation("same", same)).code, 200) << "what was decided stays";
}

// E.g. a port that is added while the reservation is placed may be held by another.
TEST(ReservationObjects, WhatAReservationHoldsDoesNotChange) {
    TestFront t;
    t.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", R"({"metadata":{"name":"high"},"value":1000})");
    const std::string other =
        R"({"spec":{"template":{"spec":{"containers":[{"name":"c","ports":[{"hostPort":80}]}]}}}})";
    const std::string classed = reservation("r", R"("priorityClassName":"high",)");
    t.ask("POST", kReservations, classed);
    EXPECT_EQ(t.ask("PATCH", kReservations + "/r", other, kMerge).code, 200) << "nothing is held yet";
    EXPECT_EQ(t.ask("PUT", kReservations + "/r", classed).code, 200);
    const auto user = t.peer;
    t.peer = {"berth-scheduler", {"berth:schedulers"}};
    t.ask("PATCH", kReservations + "/r/status", R"({"status":{"phase":"Available","nodeName":"n1"}})", kMerge);
    t.peer = user;
    const auto refused = t.ask("PATCH", kReservations + "/r", other, kMerge);
    EXPECT_EQ(refused.code, 422);
    EXPECT_EQ(refused.text({"message"}),
              "Reservation.scheduling.koordinator.sh \"r\" is invalid: spec.template: Forbidden: may not change while "
              "the reservation holds room on node n1; make another one and delete this");
    EXPECT_EQ(t.ask("PATCH", kReservations + "/r", R"({"spec":{"allocatePolicy":"Aligned"}})", kMerge).code, 422);
    EXPECT_EQ(t.ask("PATCH", kReservations + "/r", R"({"spec":{"ttl":"1h","unschedulable":true}})", kMerge).code, 200);
    EXPECT_EQ(t.ask("PUT", kReservations + "/r", classed).code, 200) << "the same once more";
}

}  // namespace
}  // namespace berth::api
