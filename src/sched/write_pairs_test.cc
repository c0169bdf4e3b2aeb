// Writes that depend on each other, before a server that judges nothing but its preconditions
// (docs/adr/0017-writes-that-depend.md).
#include "model/reservation_status.h"
#include "sched/live_test.h"

namespace berth::sched {
namespace {

class WritePairsTest : public LiveTest {
protected:
    WritePairsTest() : LiveTest({.claims_first = true}) { node("n1", 4000); }
    // Pending, for the pod w1.
    void reservation(bool once, bool waits = false) {
        model::Reservation made;
        made.meta.name = "r";
        made.meta.uid = "r";
        auto spec = std::make_shared<model::PodSpec>();
        spec->requests = model::Resources{{model::kCpu, 4000}, {model::kPods, 1}};
        spec->priority = 1000;
        made.spec = spec;
        made.owners.emplace_back().object.emplace().name = "w1";
        made.allocate_once = once;
        made.pre_allocation = waits;
        reserved(std::move(made));
    }
    void bound_now(const std::string& name) {
        model::Pod& pod = pods_.at(name);
        pod.node = "n1";
        put(pod);
    }
};

TEST_F(WritePairsTest, WhatIsOnlyAssumedIsNotClaimed) {
    reservation(true);
    pending("w1", 4000, 0);
    step();
    ASSERT_EQ(told(), Lines{"reserve r: Successfully reserved on n1"});
    done();
    step();
    EXPECT_EQ(told(), Lines{"claim r for w1"});
    done();
    EXPECT_EQ(told(), Lines{"bind w1 to n1"});
}

TEST_F(WritePairsTest, NorDrawnFrom) {
    reservation(false);
    pending("w1", 4000, 0);
    step();
    ASSERT_EQ(told(), Lines{"reserve r: Successfully reserved on n1"});
    done();
    step();
    EXPECT_EQ(told(), Lines{"bind w1 to n1"});
}

TEST_F(WritePairsTest, ARefusedPlacementGivesItsOwnersBack) {
    reservation(true);
    pending("w1", 4000, 0);
    step();
    answer(Outcome::Refused);
    step();
    EXPECT_EQ(told(), Lines{});
    EXPECT_EQ(used("n1"), 0);
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told(), Lines{"reserve r: Successfully reserved on n1"});
}

TEST_F(WritePairsTest, AClaimedReservationThatIsGoneBindsNobody) {
    reservation(true);
    pending("w1", 4000, 0);
    step();
    done();
    step();
    ASSERT_EQ(told(), Lines{"claim r for w1"});
    reservation_gone("r");
    reservations_.erase("r");
    std::vector<Plan> further;
    for (const auto& claim : answered_) further = scheduler_.outcome(claim, Outcome::Done, now_);
    EXPECT_TRUE(further.empty());
}

// It may have been refused because the pod is bound: by another, or by our own request that was taken for lost.
TEST_F(WritePairsTest, ARefusedBindGivesNothingBackBeforeThePodIsRead) {
    pending("w1", 4000, 0);
    step();
    ASSERT_EQ(told(), Lines{"bind w1 to n1"});
    answer(Outcome::Refused);
    EXPECT_EQ(used("n1"), 4000);
    ASSERT_EQ(told(), Lines{"read w1"});
    bound_now("w1");
    done();
    EXPECT_EQ(used("n1"), 4000);
    EXPECT_EQ(told(), Lines{});
}

TEST_F(WritePairsTest, ARefusedBindIsSaidWithTheServersReason) {
    pending("w1", 4000, 0);
    for (const Lines& said : {Lines{"refuse w1: binding to node n1 failed: no entry"}, Lines{}}) {
        step();
        ASSERT_EQ(told(), Lines{"bind w1 to n1"});
        const auto read = scheduler_.outcome(std::get<BindPod>(answered_.at(0)), Outcome::Refused, now_, "no entry");
        plans_ = scheduler_.outcome(read.at(0), Outcome::Done, now_);
        EXPECT_EQ(told(), said) << "the same is not said twice";
        done();
        EXPECT_EQ(used("n1"), 0);
        step();
        EXPECT_EQ(told(), Lines{}) << "it is tried again after backoff";
        later(std::chrono::seconds(20));
    }
}

// Its condition would come after the bind, and stay.
TEST_F(WritePairsTest, NothingIsDecidedWhileARefusalIsUnderWay) {
    bound("in-the-way", 4000, 0, "n1");
    pending("w1", 4000, 0);
    const auto refusal = scheduler_.step(now_, base::Time{}, 100);
    ASSERT_EQ(refusal.size(), 1u);
    gone("in-the-way");
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told(), Lines{});
    scheduler_.outcome(refusal[0], Outcome::Done, now_);
    step();
    EXPECT_EQ(told(), Lines{"bind w1 to n1"});
}

// The stored objects show an empty node.
TEST_F(WritePairsTest, AWaitingReservationIsNotOpenedWhileABindIsUnderWay) {
    pending("stranger", 4000, 2000);
    reservation(true, true);
    step();
    ASSERT_EQ(told(), (Lines{"bind stranger to n1", "reserve r: Successfully reserved on n1"}));
    const auto bind = std::get<BindPod>(answered_.at(0));
    answered_.erase(answered_.begin());
    done();
    step();
    EXPECT_EQ(told(), Lines{}) << "it waits for the stranger's end";
    const auto read = scheduler_.outcome(bind, Outcome::Refused, now_);
    gone("stranger");
    scheduler_.outcome(read.at(0), Outcome::Done, now_);
    step();
    EXPECT_EQ(told(), Lines{"open r"});
    done();
    EXPECT_EQ(reservations_.at("r").phase, model::ReservationPhase::Available);
    step();
    EXPECT_EQ(told(), Lines{});
}

// A guard found somebody there who has gone since, or the server had other reasons: the reservation is as it was.
TEST_F(WritePairsTest, AnOpeningThatIsRefusedIsTriedAgain) {
    bound("in-the-way", 4000, 0, "n1");
    reservation(true, true);
    step();
    ASSERT_EQ(told().size(), 1u);
    done();
    gone("in-the-way");
    step();
    ASSERT_EQ(told(), Lines{"open r"});
    EXPECT_TRUE(scheduler_.outcome(answered_.at(0), Outcome::Refused, now_).empty());
    step();
    EXPECT_EQ(told(), Lines{}) << "not at once";
    later(std::chrono::seconds(1));
    step();
    ASSERT_EQ(told(), Lines{"read r"});
    scheduler_.outcome(answered_.at(0), Outcome::Done, now_);
    step();
    EXPECT_EQ(told(), Lines{"open r"});
}

TEST_F(WritePairsTest, AReasonThatCannotBeWrittenDoesNotPlaceTwice) {
    bound("in-the-way", 4000, 0, "n1");
    reservation(true);
    step();
    ASSERT_EQ(told().size(), 1u);
    const auto reason = std::get<WriteReservation>(answered_.at(0));
    gone("in-the-way");
    later(std::chrono::seconds(20));
    step();
    ASSERT_EQ(told(), Lines{"reserve r: Successfully reserved on n1"});
    scheduler_.outcome(reason, Outcome::Refused, now_);
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told(), Lines{}) << "its placement is under way";
}

}  // namespace
}  // namespace berth::sched
