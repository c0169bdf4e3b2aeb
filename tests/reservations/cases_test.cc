// What users of reservations elsewhere ran into, and what happens here: one test each.
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/json_view.h"
#include "model/reservation_status.h"
#include "sched/victims.h"
#include "stage.h"

namespace berth::reservations {
namespace {

using model::ReservationPhase;
using std::chrono::hours;
using std::chrono::minutes;

class Reservations : public testing::Test {
protected:
    Reservations() { stage.add_node("n1", 16, 32); }
    ReservationPhase phase(const std::string& name) { return stage.reservation(name).phase; }
    int64_t cpu(const std::string& node = "n1") { return stage.used(node, model::kCpu) / 1000; }
    base::Random random{7};
    Stage stage;
};

// koordinator #2731: nodes oversold when pods have no affinity
TEST_F(Reservations, StrangersNeverUseReservedRoom) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 8, .once = false});
    ASSERT_TRUE(stage.place("r"));
    stage.create("w1", PodWish{.app = "web", .cpu = 12});
    ASSERT_TRUE(stage.schedule("w1"));
    EXPECT_EQ(cpu(), 12) << "the excess over the reservation is ordinary use";
    stage.create("db", PodWish{.app = "db", .cpu = 5});
    EXPECT_FALSE(stage.schedule("db"));
}

// #1741
TEST_F(Reservations, AFailedBindGivesEverythingBack) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4});
    stage.place("r");
    stage.create("w1", PodWish{.app = "web", .cpu = 6});
    ASSERT_TRUE(stage.assume("w1"));
    stage.give_back("w1");
    EXPECT_EQ(cpu(), 4);
    EXPECT_TRUE(stage.reservation("r").current_owners.empty());
    EXPECT_TRUE(stage.schedule("w1"));
    EXPECT_EQ(stage.reservation_of("w1"), "r");
}

// #2673: the bind was reported failed and took effect later
TEST_F(Reservations, ABindThatTookEffectAfterAllIsCounted) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4});
    stage.place("r");
    stage.create("w1", PodWish{.app = "web", .cpu = 4});
    ASSERT_TRUE(stage.assume("w1"));
    model::Pod bound = stage.pods.at("w1");
    const auto link = model::allocated_text({"r", stage.reservation("r").meta.uid});
    stage.give_back("w1");
    bound.node = "n1";
    bound.meta.annotations.set(model::kReservationAllocated, link);
    stage.pods["w1"] = bound;
    stage.ledger.put(bound);
    stage.reconcile();
    EXPECT_EQ(phase("r"), ReservationPhase::Succeeded);
    EXPECT_EQ(cpu(), 4);
}

// #2921, #2416, #3059
TEST_F(Reservations, NothingLeaksWhenThingsAreDeletedInAnyOrder) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4, .once = false});
    stage.place("r");
    stage.create("w1", PodWish{.app = "web", .cpu = 4});
    ASSERT_TRUE(stage.assume("w1"));
    stage.delete_reservation("r");  // before the bind is done
    EXPECT_EQ(cpu(), 4);
    stage.bind("w1");
    EXPECT_EQ(cpu(), 4) << "an ordinary pod now";
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4, .once = false});
    stage.place("r");
    stage.reconcile();
    EXPECT_TRUE(stage.reservation("r").current_owners.empty()) << "the same name is another reservation";
    EXPECT_EQ(cpu(), 8);
    stage.delete_pod("w1");
    EXPECT_EQ(cpu(), 4);
    stage.create("w1", PodWish{.app = "web", .cpu = 4});
    ASSERT_TRUE(stage.assume("w1"));
    stage.delete_pod("w1");  // while it is being bound
    EXPECT_EQ(cpu(), 4);
    stage.delete_reservation("r");
    EXPECT_EQ(cpu(), 0);
}

// #3152
TEST_F(Reservations, AnOldNameOnANewPodIsANewPod) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4, .once = false});
    stage.place("r");
    stage.create("w1", PodWish{.app = "web", .cpu = 2});
    stage.schedule("w1");
    const auto old_uid = stage.pods.at("w1").meta.uid;
    stage.create("w1", PodWish{.app = "web", .cpu = 3});  // deleted and recreated; the delete is seen late
    ASSERT_TRUE(stage.schedule("w1"));
    EXPECT_EQ(cpu(), 5);
    stage.ledger.remove_pod(old_uid);
    EXPECT_EQ(cpu(), 4);
    stage.reconcile();
    ASSERT_EQ(stage.reservation("r").current_owners.size(), 1u);
    EXPECT_EQ(stage.reservation("r").current_owners[0].uid, stage.pods.at("w1").meta.uid);
}

// #1187, #1405
TEST_F(Reservations, OutsidersGainNothingFromEvictingOwners) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 8, .once = false});
    stage.place("r");
    stage.create("w1", PodWish{.app = "web", .cpu = 8});
    stage.schedule("w1");
    stage.create("db", PodWish{.app = "db", .cpu = 12});
    stage.create("w2", PodWish{.app = "web", .cpu = 12});
    const auto victims_of = [&](const std::string& name) {
        model::Pod pod = stage.pods.at(name);
        auto important = std::make_shared<model::PodSpec>(*pod.spec);
        important->priority = 100;
        pod.spec = important;
        return sched::evictable(sched::ask_for(pod, stage.ledger), stage.ledger, stage.ledger.row_of("n1")).size();
    };
    EXPECT_EQ(victims_of("db"), 0u);
    EXPECT_EQ(victims_of("w2"), 1u);
    stage.clock.advance(hours(25));
    stage.reconcile();
    EXPECT_EQ(victims_of("db"), 1u) << "the protection ends with the reservation";
}

// #1247
TEST_F(Reservations, APortStaysWithWhoeverUsesIt) {
    stage.create("r", ReservationWish{.owner = "web", .ports = {7777}, .once = false, .ttl = minutes(1)});
    stage.place("r");
    stage.create("w1", PodWish{.app = "web", .ports = {7777}});
    ASSERT_TRUE(stage.schedule("w1"));
    stage.clock.advance(minutes(2));
    stage.reconcile();
    EXPECT_EQ(phase("r"), ReservationPhase::Failed);
    stage.create("db", PodWish{.app = "db", .ports = {7777}});
    EXPECT_FALSE(stage.schedule("db"));
    stage.delete_pod("w1");
    EXPECT_TRUE(stage.schedule("db"));
}

// #923
TEST_F(Reservations, AClaimForOnePodIsForOnePodOfItsReservation) {
    stage.add_claim("data", {model::AccessMode::ReadWriteOncePod});
    stage.create("r", ReservationWish{.owner = "web", .cpu = 1, .once = false, .claims = {"data"}});
    ASSERT_TRUE(stage.place("r"));
    stage.create("db", PodWish{.app = "db", .claims = {"data"}});
    EXPECT_FALSE(stage.schedule("db"));
    stage.create("w1", PodWish{.app = "web", .cpu = 1, .claims = {"data"}});
    EXPECT_TRUE(stage.schedule("w1"));
    stage.create("w2", PodWish{.app = "web", .cpu = 1, .claims = {"data"}});
    EXPECT_FALSE(stage.schedule("w2"));
}

// Nobody knows whether they still run there.
TEST_F(Reservations, AClaimIsHeldThoughTheNodeIsGone) {
    stage.add_node("n2", 16, 32);
    for (const char* name : {"one", "two"}) stage.add_claim(name, {model::AccessMode::ReadWriteOncePod});
    stage.create("r", ReservationWish{.owner = "web", .node = "n1", .claims = {"one"}});
    ASSERT_TRUE(stage.place("r"));
    stage.create_bound("x", PodWish{.app = "db", .claims = {"two"}}, "n1");
    stage.delete_node("n1");
    stage.create("y", PodWish{.app = "db", .claims = {"one"}});
    EXPECT_FALSE(stage.schedule("y"));
    stage.create("z", PodWish{.app = "db", .claims = {"two"}});
    EXPECT_FALSE(stage.schedule("z"));
    stage.restart(random);
    EXPECT_FALSE(stage.schedule("y"));
    EXPECT_FALSE(stage.schedule("z"));
    stage.reconcile();
    EXPECT_EQ(phase("r"), ReservationPhase::Failed);
    EXPECT_TRUE(stage.schedule("y"));
    stage.delete_pod("x");
    EXPECT_TRUE(stage.schedule("z"));
}

TEST_F(Reservations, PlacesToAttachAVolumeAreGivenByTheReservationThatIsDrawnFrom) {
    stage.limit_volumes("n1", 2);
    for (const char* name : {"a", "b", "c"}) stage.add_claim(name, {});
    stage.create("r", ReservationWish{.owner = "web", .cpu = 2, .once = false, .claims = {"a"}});
    ASSERT_TRUE(stage.place("r"));
    stage.create("x", PodWish{.app = "x", .claims = {"c"}});
    ASSERT_TRUE(stage.schedule("x"));
    stage.create("far", PodWish{.app = "web", .memory = 1, .claims = {"b"}});
    EXPECT_FALSE(stage.schedule("far")) << "it wants nothing of what the reservation has";
    stage.create("near", PodWish{.app = "web", .cpu = 1, .claims = {"b"}});
    EXPECT_TRUE(stage.schedule("near"));
    stage.create("shares", PodWish{.app = "x", .claims = {"b"}});
    EXPECT_FALSE(stage.schedule("shares")) << "the volume would stay when the owner goes";
    stage.create("w2", PodWish{.app = "web", .cpu = 1, .claims = {"b"}});
    EXPECT_TRUE(stage.schedule("w2")) << "another owner";
}

TEST_F(Reservations, AVolumeTakesThePlaceOfOneReservation) {
    stage.limit_volumes("n1", 2);
    for (const char* name : {"a", "b", "c"}) stage.add_claim(name, {});
    stage.create("r", ReservationWish{.owner = "web", .cpu = 2, .once = false, .claims = {"a"}});
    stage.create("s", ReservationWish{.owner = "web", .memory = 2, .once = false, .claims = {"b"}});
    stage.create("t", ReservationWish{.owner = "db", .cpu = 1, .claims = {"c"}});
    ASSERT_TRUE(stage.place("r") && stage.place("s"));
    stage.create("w1", PodWish{.app = "web", .cpu = 1, .claims = {"b"}});
    ASSERT_TRUE(stage.schedule("w1"));
    ASSERT_EQ(stage.reservation_of("w1"), "r");
    EXPECT_FALSE(stage.place("t")) << "b has the place that s holds for it, and r keeps its own";
}

// #468
TEST_F(Reservations, AfterARestartOwnersAreThoseThatAreBound) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 8, .once = false});
    stage.place("r");
    for (const char* name : {"w1", "w2"}) {
        stage.create(name, PodWish{.app = "web", .cpu = 3});
        ASSERT_TRUE(stage.schedule(name));
    }
    stage.reconcile();
    ASSERT_EQ(stage.reservation("r").current_owners.size(), 2u);
    stage.delete_pod("w1");  // nobody has written the status yet
    stage.restart(random);
    stage.reconcile();
    ASSERT_EQ(stage.reservation("r").current_owners.size(), 1u);
    EXPECT_EQ(stage.reservation("r").allocated.get(model::kCpu), 3000);
    EXPECT_EQ(cpu(), 8);
}

// #499
TEST_F(Reservations, SucceededIsNeverTurnedFailed) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 1, .ttl = minutes(1)});
    stage.place("r");
    stage.create("w1", PodWish{.app = "web", .cpu = 1});
    stage.schedule("w1");
    stage.clock.advance(minutes(5));  // the ttl passes before anybody wrote that it succeeded
    stage.reconcile();
    EXPECT_EQ(phase("r"), ReservationPhase::Succeeded);
    stage.clock.advance(minutes(5));
    stage.reconcile();
    EXPECT_EQ(phase("r"), ReservationPhase::Succeeded);
    stage.delete_pod("w1");
    stage.restart(random);
    stage.reconcile();
    EXPECT_EQ(phase("r"), ReservationPhase::Succeeded) << "what is stored says so, not what is remembered";
}

// Also where there is no amount to allocate: a port is all it holds.
TEST_F(Reservations, SuccessIsSaidOnceHoweverTheReservationEnded) {
    for (const bool in_one_transaction : {true, false}) {
        for (const int64_t cores : {0, 2}) {
            Stage fresh;
            fresh.add_node("n1", 16, 32);
            fresh.create("r", ReservationWish{.owner = "web", .cpu = cores, .ports = {7777}});
            ASSERT_TRUE(fresh.place("r"));
            fresh.create("w1", PodWish{.app = "web", .cpu = cores, .ports = {7777}});
            ASSERT_TRUE(fresh.assume("w1"));
            fresh.bind("w1", in_one_transaction);
            const auto events = fresh.reconcile();
            ASSERT_EQ(events.size(), 1u) << in_one_transaction << cores;
            EXPECT_EQ(events[0].reason, "Succeeded");
            EXPECT_EQ(fresh.reservation("r").current_owners.size(), 1u);
            fresh.restart(random);
            EXPECT_TRUE(fresh.reconcile().empty()) << "said once";
        }
    }
}

// #530: no hot loops
TEST_F(Reservations, NothingIsWrittenTwice) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 99});
    stage.place("r");
    stage.create("ok", ReservationWish{.owner = "web", .cpu = 2, .once = false});
    stage.place("ok");
    stage.reconcile();
    const auto before = stage.reservation("r").meta.revision + stage.reservation("ok").meta.revision;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(stage.reconcile().empty());
    EXPECT_EQ(stage.reservation("r").meta.revision + stage.reservation("ok").meta.revision, before);
}

// Seen in a peer after kill -9: unbound pods that already carried the link were honoured but not counted.
TEST_F(Reservations, ALinkOnAnUnboundPodMeansNothing) {
    stage.create("r",
                 ReservationWish{.owner = "web", .cpu = 4, .once = false, .policy = model::AllocatePolicy::Restricted});
    stage.place("r");
    for (const char* name : {"w1", "w2", "w3"}) {
        stage.create(name, PodWish{.app = "web", .cpu = 2});
        stage.pods.at(name).meta.annotations.set(model::kReservationAllocated,
                                                 model::allocated_text({"r", stage.reservation("r").meta.uid}));
    }
    stage.restart(random);
    EXPECT_TRUE(stage.schedule("w1"));
    EXPECT_TRUE(stage.schedule("w2"));
    EXPECT_FALSE(stage.schedule("w3"));
    EXPECT_NE(stage.diagnosis("w3").find("1 Reservation(s) Insufficient cpu"), std::string::npos);
    EXPECT_EQ(control::judge_links(stage.pods.at("w3")).size(), 1u);
}

TEST_F(Reservations, AnUnreadableLinkOnABoundPodClosesTheReservationsOfTheNode) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 8});
    stage.place("r");
    stage.create_bound("odd", PodWish{.app = "web", .cpu = 8}, "n1");
    model::Pod odd = stage.pods.at("odd");
    odd.meta.annotations.set(model::kReservationAllocated, "{");
    stage.ledger.put(odd);
    EXPECT_EQ(cpu(), 16) << "it never makes capacity look free";
    stage.create("w1", PodWish{.app = "web", .cpu = 4});
    EXPECT_FALSE(stage.schedule("w1"));
    EXPECT_NE(stage.diagnosis("w1").find("reservation-allocated"), std::string::npos);
    const auto said = control::judge_links(odd);
    ASSERT_EQ(said.size(), 2u) << "the pod says why, and so does the node";
    EXPECT_EQ(said[0].kind + " " + said[0].name + " " + said[0].reason, "Pod odd AnnotationUnreadable");
    EXPECT_EQ(said[1].kind + " " + said[1].name + " " + said[1].reason, "Node n1 ReservationsClosed");
    odd.meta.annotations.erase(model::kReservationAllocated);
    stage.ledger.put(odd);
    EXPECT_TRUE(stage.schedule("w1"));
}

TEST_F(Reservations, AForgedLinkCountsOnlyWhenUidNodeAndOwnersAgree) {
    stage.add_node("n2", 16, 32);
    stage.create("r", ReservationWish{.owner = "web", .cpu = 8, .once = false, .node = "n1"});
    stage.place("r");
    const auto link = model::allocated_text({"r", stage.reservation("r").meta.uid});
    const auto forge = [&](const std::string& name, const std::string& app, const std::string& node,
                           const std::string& text) {
        stage.create(name, PodWish{.app = app, .cpu = 4});
        stage.pods.at(name).meta.annotations.set(model::kReservationAllocated, text);
        stage.pods.at(name).node = node;
        stage.ledger.put(stage.pods.at(name));
    };
    forge("stranger", "db", "n1", link);
    EXPECT_EQ(cpu("n1"), 12);
    forge("elsewhere", "web", "n2", link);
    EXPECT_EQ(cpu("n2"), 4);
    forge("other-uid", "web", "n1", model::allocated_text({"r", "not-it"}));
    EXPECT_EQ(cpu("n1"), 16);
    forge("owner", "web", "n1", link);
    EXPECT_EQ(cpu("n1"), 16);
    stage.reconcile();
    ASSERT_EQ(stage.reservation("r").current_owners.size(), 1u);
    EXPECT_EQ(stage.reservation("r").current_owners[0].name, "owner");
}

TEST_F(Reservations, AJumpOfTheWallClockExpiresNothing) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4, .ttl = hours(1)});
    stage.place("r");
    stage.reconcile();
    stage.clock.jump_wall(hours(48));
    stage.reconcile();
    EXPECT_EQ(phase("r"), ReservationPhase::Available);
    stage.clock.jump_wall(hours(-96));
    stage.clock.advance(minutes(61));
    stage.reconcile();
    EXPECT_EQ(phase("r"), ReservationPhase::Failed);
}

TEST_F(Reservations, AtStartTheAgeIsTheWallClocks) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4, .ttl = hours(1)});
    stage.place("r");
    stage.clock.advance(hours(2));
    stage.restart(random);
    stage.reconcile();
    EXPECT_EQ(phase("r"), ReservationPhase::Failed);
    const auto* ready = model::find_condition(stage.reservation("r"), "Ready");
    EXPECT_EQ(ready->reason, "Expired");
    EXPECT_EQ(ready->status, "False");
}

TEST_F(Reservations, FinalOnesAreRemovedAfterAWhile) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4, .ttl = hours(1)});
    stage.place("r");
    stage.reconcile();
    stage.clock.advance(hours(2));
    stage.reconcile();
    stage.clock.advance(hours(23));
    stage.reconcile();
    EXPECT_TRUE(stage.reservations.contains("r"));
    stage.clock.advance(hours(2));
    stage.reconcile();
    EXPECT_FALSE(stage.reservations.contains("r"));
}

// Ready was False before as well, so that its transition tells nothing of when the reservation became final.
TEST_F(Reservations, OneThatFailedWhileItWaitedIsKeptAsLongAsOthers) {
    stage.create_bound("full", {.app = "other", .cpu = 16}, "n1");
    stage.create("r",
                 ReservationWish{.owner = "web", .cpu = 4, .pre_allocation = true, .ttl = hours(30), .node = "n1"});
    stage.place("r");
    ASSERT_EQ(phase("r"), ReservationPhase::Waiting);
    stage.reconcile();
    stage.clock.advance(hours(31));
    stage.reconcile();
    ASSERT_EQ(phase("r"), ReservationPhase::Failed);
    stage.restart(random);
    stage.reconcile();
    EXPECT_TRUE(stage.reservations.contains("r"));
    stage.clock.advance(hours(25));
    stage.restart(random);
    stage.reconcile();
    EXPECT_FALSE(stage.reservations.contains("r"));
}

TEST_F(Reservations, AClaimIsReleasedWhenItsPodWasNeverBound) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4});
    stage.place("r");
    stage.create("w1", PodWish{.app = "web", .cpu = 4});
    stage.create("w2", PodWish{.app = "web", .cpu = 4, .must_draw = true});
    ASSERT_TRUE(stage.assume("w1"));
    stage.reconcile();
    EXPECT_EQ(stage.reservation("r").current_owners.size(), 1u) << "it is being bound";
    stage.restart(random);  // killed between claim and bind
    EXPECT_FALSE(stage.schedule("w2"));
    stage.reconcile();
    EXPECT_TRUE(stage.schedule("w2"));
    stage.reconcile();
    EXPECT_EQ(phase("r"), ReservationPhase::Succeeded);
}

TEST_F(Reservations, AfterACrashAClaimOfABoundPodSucceeds) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4});
    stage.place("r");
    stage.create("w1", PodWish{.app = "web", .cpu = 2});
    stage.schedule("w1");
    stage.restart(random);
    EXPECT_EQ(cpu(), 4) << "the rest is free once Succeeded is stored, not before";
    stage.reconcile();
    EXPECT_EQ(phase("r"), ReservationPhase::Succeeded);
    EXPECT_EQ(cpu(), 2);
    EXPECT_EQ(stage.reservation("r").allocated.get(model::kCpu), 2000);
}

TEST_F(Reservations, ALostNodeFailsItsReservationsAndSaysWhich) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4});
    stage.place("r");
    stage.delete_node("n1");
    const auto events = stage.reconcile();
    EXPECT_EQ(phase("r"), ReservationPhase::Failed);
    ASSERT_EQ(events.size(), 1u);
    EXPECT_NE(events[0].message.find("n1"), std::string::npos);
    stage.add_node("n1", 16, 32);
    EXPECT_EQ(cpu(), 0);
}

TEST_F(Reservations, ATooFullNodeIsSaidOnceAndTakesNothing) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 8, .once = false});
    stage.place("r");
    stage.reconcile();
    stage.create_bound("static", PodWish{.app = "s", .cpu = 12}, "n1");
    EXPECT_EQ(stage.reconcile().size(), 1u);
    EXPECT_TRUE(stage.reconcile().empty());
    stage.create("w1", PodWish{.app = "web", .cpu = 8});
    EXPECT_FALSE(stage.schedule("w1"));
    stage.delete_pod("static");
    EXPECT_TRUE(stage.schedule("w1"));
}

TEST_F(Reservations, ABrokenLiveReservationKeepsItsRoomAndNobodyDraws) {
    const auto object = base::parse_json(R"({"metadata":{"name":"r","uid":"u"},"spec":{"ttl":"abc",
      "owners":[{"labelSelector":{"matchLabels":{"app":"web"}}}],
      "template":{"spec":{"containers":[{"resources":{"requests":{"cpu":"12"}}}]}}},
      "status":{"phase":"Available","nodeName":"n1","allocatable":{"cpu":"12"}}})");
    const std::string text = base::to_text(*object);
    base::JsonParser parser;
    auto broken = model::read_reservation(*parser.parse(text));
    ASSERT_TRUE(broken);
    stage.ledger.put(std::make_shared<const model::Reservation>(std::move(*broken)));
    stage.create("w1", PodWish{.app = "web", .cpu = 8});
    EXPECT_FALSE(stage.schedule("w1"));
    stage.create("w2", PodWish{.app = "web", .cpu = 4});
    EXPECT_TRUE(stage.schedule("w2"));
}

// A peer samples a tenth of the nodes, and most owners miss their own reservation.
TEST_F(Reservations, EveryOwnerFindsItsOwnReservation) {
    constexpr int kNodes = 200;
    for (int i = 0; i < kNodes; ++i) {
        const std::string number = std::to_string(i);
        stage.add_node("m" + number, 8, 16);
        stage.create("r" + number, ReservationWish{.owner = "app" + number, .cpu = 4, .node = "m" + number});
        ASSERT_TRUE(stage.place("r" + number));
    }
    for (int i = 0; i < kNodes; ++i) {
        const std::string number = std::to_string(i);
        stage.create("p" + number, PodWish{.app = "app" + number, .cpu = 4});
        ASSERT_TRUE(stage.schedule("p" + number));
        EXPECT_EQ(stage.reservation_of("p" + number), "r" + number);
    }
}

TEST_F(Reservations, AJointDrawIsRecordedAndSurvivesARestart) {
    stage.create("a", ReservationWish{.owner = "web", .cpu = 4});
    stage.create("b", ReservationWish{.owner = "web", .memory = 10, .once = false});
    ASSERT_TRUE(stage.place("a") && stage.place("b"));
    stage.create_bound("base", PodWish{.app = "x", .cpu = 10, .memory = 22}, "n1");
    stage.create("w1", PodWish{.app = "web", .cpu = 6, .memory = 8});
    ASSERT_TRUE(stage.schedule("w1"));
    const auto links = model::read_links(stage.pods.at("w1").meta.annotations);
    ASSERT_TRUE(links && links->allocated);
    ASSERT_EQ(links->draws.size(), 1u);
    const auto check = [&] {
        stage.reconcile();
        EXPECT_EQ(phase("a"), ReservationPhase::Succeeded);
        EXPECT_EQ(phase("b"), ReservationPhase::Available);
        EXPECT_EQ(stage.reservation("b").allocated.get(model::kMemory), 8 * kGi);
        EXPECT_EQ(stage.reservation("a").allocated.get(model::kCpu), 4000);
        EXPECT_EQ(cpu(), 16);
        EXPECT_EQ(stage.used("n1", model::kMemory), 32 * kGi);
    };
    check();
    stage.restart(random);
    check();
}

TEST_F(Reservations, TheOneThatPlacesNeverPreemptsAndSaysWhy) {
    stage.create_bound("low", PodWish{.app = "x", .cpu = 14}, "n1");
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4});
    EXPECT_FALSE(stage.place("r"));
    const auto* scheduled = model::find_condition(stage.reservation("r"), "Scheduled");
    ASSERT_NE(scheduled, nullptr);
    EXPECT_EQ(scheduled->reason, "Unschedulable");
    EXPECT_EQ(scheduled->message, "0/1 nodes are available: 1 Insufficient cpu.");
}

TEST_F(Reservations, OfTenThousandReservationsAPodMeetsOnlyItsOwn) {
    for (int i = 0; i < 1000; ++i) {
        stage.create("r" + std::to_string(i), ReservationWish{.owner = "app" + std::to_string(i), .cpu = 1});
    }
    size_t met = 0;
    stage.create("r-mine", ReservationWish{.owner = "mine", .cpu = 1});
    ASSERT_TRUE(stage.place("r-mine"));
    ASSERT_TRUE(stage.place("r7"));
    stage.create("mine", PodWish{.app = "mine", .cpu = 1});
    stage.ledger.owner_index().candidates(model::identity_of(stage.pods.at("mine").meta), [&](auto) { ++met; });
    EXPECT_EQ(met, 1u);
    EXPECT_TRUE(sched::ask_for(stage.pods.at("mine"), stage.ledger).credits.size() == 1);
    stage.create("db", PodWish{.app = "db", .cpu = 1});
    EXPECT_TRUE(sched::ask_for(stage.pods.at("db"), stage.ledger).plain());
}

}  // namespace
}  // namespace berth::reservations
