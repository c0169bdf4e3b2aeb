// What is left when owners and reservations end, are deleted, or come back under the same name: nothing of the old one.
#include <gtest/gtest.h>

#include "stage.h"

namespace berth::reservations {
namespace {

class Ends : public testing::Test {
protected:
    Ends() { stage.add_node("n1", 16, 32); }
    int64_t cpu() { return stage.used("n1", model::kCpu) / 1000; }
    base::Random random{7};
    Stage stage;
};

// koordinator #2416
TEST_F(Ends, AFinalReservationThatIsDeletedLeavesItsOwnerAlone) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 6});
    ASSERT_TRUE(stage.place("r"));
    stage.create("w1", PodWish{.app = "web", .cpu = 4});
    ASSERT_TRUE(stage.schedule("w1"));
    stage.reconcile();
    EXPECT_EQ(cpu(), 4);
    stage.delete_reservation("r");
    EXPECT_EQ(cpu(), 4);
    EXPECT_TRUE(stage.ledger.reservations().empty());
    stage.delete_pod("w1");
    EXPECT_EQ(cpu(), 0);
}

// A final state that is never seen, because the deletion was quicker.
TEST_F(Ends, AReservationThatIsDeletedBeforeItsEndWasSeenLeavesItsOwnerAlone) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 6});
    ASSERT_TRUE(stage.place("r"));
    stage.create("w1", PodWish{.app = "web", .cpu = 4});
    ASSERT_TRUE(stage.schedule("w1"));
    EXPECT_EQ(cpu(), 6);
    stage.delete_reservation("r");
    EXPECT_EQ(cpu(), 4);
    EXPECT_TRUE(stage.ledger.reservations().empty());
}

TEST_F(Ends, AnOwnerThatTerminatesReturnsItsChargeOnceItIsGone) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4, .once = false});
    ASSERT_TRUE(stage.place("r"));
    stage.create("w1", PodWish{.app = "web", .cpu = 6});
    ASSERT_TRUE(stage.schedule("w1"));
    stage.pods.at("w1").meta.deleted = stage.clock.wall();
    stage.ledger.put(stage.pods.at("w1"));
    EXPECT_EQ(cpu(), 6) << "it still runs";
    stage.delete_pod("w1");
    EXPECT_EQ(cpu(), 4);
    stage.create("w2", PodWish{.app = "web", .cpu = 16});
    EXPECT_TRUE(stage.schedule("w2"));
    stage.pods.at("w2").phase = model::PodPhase::Failed;
    stage.ledger.put(stage.pods.at("w2"));
    EXPECT_EQ(cpu(), 4);
    stage.delete_pod("w2");
    EXPECT_EQ(cpu(), 4);
}

// koordinator #3152
TEST_F(Ends, ANamesakeDoesNotInheritAClaim) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4});
    ASSERT_TRUE(stage.place("r"));
    stage.create("w1", PodWish{.app = "web", .cpu = 4, .must_draw = true});
    ASSERT_TRUE(stage.assume("w1"));
    stage.restart(random);  // the claim is all that is left
    stage.create("w1", PodWish{.app = "web", .cpu = 4, .must_draw = true});
    EXPECT_FALSE(stage.schedule("w1"));
    stage.reconcile();
    EXPECT_TRUE(stage.schedule("w1"));
}

// koordinator #3152
TEST_F(Ends, ANewReservationOfAnOldNameHasNoOwners) {
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4, .once = false});
    ASSERT_TRUE(stage.place("r"));
    stage.create("w1", PodWish{.app = "web", .cpu = 4});
    ASSERT_TRUE(stage.schedule("w1"));
    stage.delete_reservation("r");
    stage.create("r", ReservationWish{.owner = "web", .cpu = 4, .once = false});
    ASSERT_TRUE(stage.place("r"));
    EXPECT_EQ(cpu(), 8);
    stage.restart(random);
    EXPECT_EQ(cpu(), 8);
    stage.reconcile();
    EXPECT_TRUE(stage.reservation("r").current_owners.empty());
    EXPECT_TRUE(stage.reservation("r").allocated.empty());
}

}  // namespace
}  // namespace berth::reservations
