// The judge of random histories sees what it is there for.
#include "promises.h"

#include <gtest/gtest.h>

namespace berth::reservations {
namespace {

using Sentences = std::vector<std::string>;
constexpr ClaimWish kOnePod{model::AccessMode::ReadWriteOncePod};

class Promises : public testing::Test {
protected:
    Promises() {
        for (const char* node : {"n1", "n2"}) {
            stage.add_node(node, 16, 32);
            stage.limit_volumes(node, 2);
        }
        stage.add_claim("one", kOnePod);
        for (const char* name : {"a", "b", "c"}) stage.add_claim(name, {});
    }
    void reserve(const std::string& name, ReservationWish wish) {
        wish.node = "n1";
        stage.create(name, wish);
        ASSERT_TRUE(stage.place(name));
    }
    // The same, whether or not it fits.
    void force(const std::string& name, ReservationWish wish) {
        stage.create(name, wish);
        model::Reservation made = *stage.reservations.at(name);
        made.phase = model::ReservationPhase::Available;
        made.node = "n1";
        stage.reservations[name] = std::make_shared<const model::Reservation>(made);
    }
    Stage stage;
};

TEST_F(Promises, APortHasOneHolder) {
    reserve("r", {.owner = "web", .ports = {7001}, .once = false});
    stage.create_bound("w1", {.app = "web", .ports = {7001}}, "n1");
    stage.create_bound("elsewhere", {.app = "db", .ports = {7001}}, "n2");
    EXPECT_EQ(broken_promises(stage), Sentences{}) << "an owner, and another node";
    stage.create_bound("db", {.app = "db", .ports = {7001}}, "n1");
    EXPECT_EQ(broken_promises(stage), (Sentences{"pods db and w1 both have port 7001 of n1",
                                                 "pod db has port 7001 of n1 of reservation r, which is not its own"}));
    stage.delete_pod("db");
    force("s", {.owner = "web", .ports = {7001}});
    EXPECT_EQ(broken_promises(stage), Sentences{"reservations r and s both hold port 7001 of n1"});
}

TEST_F(Promises, AClaimForOnePodHasOneHolder) {
    reserve("r", {.owner = "web", .claims = {"one"}});
    stage.create_bound("w1", {.app = "web", .claims = {"one"}}, "n2");
    EXPECT_EQ(broken_promises(stage), Sentences{}) << "an owner, wherever it is";
    stage.create_bound("db", {.app = "db", .claims = {"one"}}, "gone");
    EXPECT_EQ(broken_promises(stage), (Sentences{"pods db and w1 both have claim one",
                                                 "pod db has claim one of reservation r, which is not its own"}));
}

TEST_F(Promises, ANodeTakesSoManyVolumes) {
    stage.create_bound("x", {.app = "x", .claims = {"a", "b"}}, "n1");
    EXPECT_EQ(broken_promises(stage), Sentences{});
    stage.create_bound("y", {.app = "y", .claims = {"b"}}, "n1");
    EXPECT_EQ(broken_promises(stage), Sentences{}) << "one volume is attached once";
    force("r", {.owner = "web", .claims = {"b", "c"}});
    EXPECT_EQ(broken_promises(stage), Sentences{"3 volumes are promised on n1, which takes 2"});
    stage.delete_reservation("r");
    stage.create_bound("z", {.app = "z", .claims = {"c"}}, "n1");
    ASSERT_FALSE(broken_promises(stage).empty());
    EXPECT_EQ(broken_promises(stage)[0], "pods attach 3 volumes to n1, which takes 2");
}

TEST_F(Promises, AnOwnerWithAnotherVolumeHasThePlaceOfTheReservedOne) {
    reserve("r", {.owner = "web", .cpu = 1, .once = false, .claims = {"a"}});
    stage.create("w1", {.app = "web", .cpu = 1, .claims = {"b"}});
    ASSERT_TRUE(stage.schedule("w1"));
    ASSERT_EQ(stage.reservation_of("w1"), "r");
    stage.create_bound("x", {.app = "x", .claims = {"c"}}, "n1");
    EXPECT_EQ(broken_promises(stage), Sentences{}) << "b and c; a's place is taken by b";
    stage.create_bound("y", {.app = "y", .claims = {"b"}}, "n1");
    EXPECT_EQ(broken_promises(stage), Sentences{"3 volumes are promised on n1, which takes 2"})
        << "b stays when the owner goes";
}

}  // namespace
}  // namespace berth::reservations
