#include "model/reservation_rules.h"

#include <gtest/gtest.h>

#include "model/reservation_status.h"

namespace berth::model {
namespace {

Pod pod_named(const std::string& name) {
    Pod made;
    made.meta.ns = "default";
    made.meta.name = name;
    made.meta.uid = "uid-" + name;
    return made;
}

TEST(ReservationRules, AnyOwnerClauseIsEnoughAndAClauseMeansAllItSays) {
    Reservation reservation;
    EXPECT_FALSE(owned_by(reservation, pod_named("a")));
    reservation.owners.emplace_back().object.emplace().name = "a";
    reservation.owners.emplace_back().object.emplace().name = "b";
    EXPECT_TRUE(owned_by(reservation, pod_named("a")));
    EXPECT_TRUE(owned_by(reservation, pod_named("b")));
    EXPECT_FALSE(owned_by(reservation, pod_named("c")));
    reservation.owners[0].object->uid = "uid-of-an-earlier-one";
    EXPECT_FALSE(owned_by(reservation, pod_named("a")));
}

TEST(ReservationRules, AClaimIsOfOneThatIsUsedOnceAndHoldsRoom) {
    Reservation reservation;
    reservation.phase = ReservationPhase::Available;
    EXPECT_FALSE(is_claimed(reservation));
    reservation.current_owners = {{"default", "a", "uid-a"}};
    EXPECT_TRUE(is_claimed(reservation));
    EXPECT_TRUE(claimed_by(reservation, "uid-a"));
    EXPECT_FALSE(claimed_by_another(reservation, "uid-a"));
    EXPECT_TRUE(claimed_by_another(reservation, "uid-b"));
    reservation.phase = ReservationPhase::Succeeded;
    EXPECT_FALSE(is_claimed(reservation)) << "these are its owners";
    reservation.phase = ReservationPhase::Available;
    reservation.allocate_once = false;
    EXPECT_FALSE(is_claimed(reservation)) << "these are its owners";
    EXPECT_FALSE(claimed_by_another(reservation, "uid-b"));
}

TEST(ReservationRules, OfSeveralReasonsThatCloseItTheFirstIsTold) {
    Reservation reservation;
    EXPECT_EQ(closed_by_object(reservation), Closed::No);
    reservation.fault = "unreadable";
    EXPECT_EQ(closed_by_object(reservation), Closed::Unreadable);
    reservation.unschedulable = true;
    EXPECT_EQ(closed_by_object(reservation), Closed::Unschedulable);
    reservation.meta.deleted = base::Time{1};
    EXPECT_EQ(closed_by_object(reservation), Closed::Deleted);

    EXPECT_EQ(why_closed({.available = true}), Closed::No);
    EXPECT_EQ(why_closed({.available = true, .taken = true}), Closed::Taken);
    EXPECT_EQ(why_closed({.available = true, .used_up = true, .taken = true}), Closed::UsedUp);
    HoldFacts facts{.by_object = Closed::Unschedulable, .available = true, .used_up = true};
    EXPECT_EQ(why_closed(facts), Closed::Unschedulable);
    facts.ended = true;
    EXPECT_EQ(why_closed(facts), Closed::Ended);
    facts.by_object = Closed::Deleted;
    EXPECT_EQ(why_closed(facts), Closed::Deleted);
    facts.available = false;
    EXPECT_EQ(why_closed(facts), Closed::NotAvailable);
}

TEST(ReservationRules, AFinalOneDoesNotEndAgain) {
    Reservation reservation;
    reservation.meta.created = {1000};
    EXPECT_TRUE(end_of(reservation));
    reservation.phase = ReservationPhase::Failed;
    EXPECT_FALSE(end_of(reservation));
}

// The message is for people: whoever words it otherwise changes nothing.
TEST(ReservationRules, AnEndThatNobodySawIsToldByItsReason) {
    ReservationStatus ended = ended_by_bind({}, {1});
    EXPECT_TRUE(is_unseen(ended));
    ended.conditions[0].message = "in other words";
    EXPECT_TRUE(is_unseen(ended));
    EXPECT_FALSE(is_unseen(succeeded(ended, {2})));
    EXPECT_FALSE(is_unseen({}));
}

}  // namespace
}  // namespace berth::model
