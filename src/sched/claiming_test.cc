// Where bind and Succeeded are two writes, an allocateOnce reservation is claimed before its owner is bound.
#include "sched/claiming.h"

#include "model/allocated.h"
#include "model/reservation_status.h"
#include "sched/live_test.h"

namespace berth::sched {
namespace {

class ClaimingTest : public LiveTest {
protected:
    ClaimingTest() : LiveTest({.claims_first = true}) {
        node("n1", 4000);
        reserve({});
    }
    void reserve(std::vector<model::PodRef> owners) {
        model::Reservation made;
        made.meta.name = "r";
        made.meta.uid = "r";
        auto spec = std::make_shared<model::PodSpec>();
        spec->requests = model::Resources{{model::kCpu, 4000}, {model::kPods, 1}};
        made.spec = spec;
        model::ReservationOwner owner;
        owner.object.emplace().name = "w1";
        made.owners.push_back(owner);
        owner.object->name = "w2";
        made.owners.push_back(owner);
        made.allocate_once = true;
        static_cast<model::ReservationStatus&>(made) = model::placed(made, "n1", made.spec->requests, base::Time{});
        made.current_owners = std::move(owners);
        reserved(std::move(made));
    }
    const std::vector<model::PodRef>& owners() { return reservations_.at("r").current_owners; }
};

TEST_F(ClaimingTest, TheClaimIsStoredBeforeTheBind) {
    pending("w1", 4000, 0);
    step();
    ASSERT_EQ(told(), Lines{"claim r for w1"});
    done();
    EXPECT_EQ(owners(), (std::vector<model::PodRef>{{"default", "w1", "w1"}}));
    EXPECT_EQ(told(), Lines{"bind w1 to n1"});
    step();
    EXPECT_EQ(told(), Lines{}) << "a claim whose pod is being bound stays";
}

TEST_F(ClaimingTest, WhoeverComesSecondIsRefused) {
    pending("w1", 4000, 0);
    step();
    done();
    pending("w2", 4000, 0);
    step();
    EXPECT_EQ(told().back().substr(0, 9), "refuse w2");
}

TEST_F(ClaimingTest, ARefusedClaimGivesThePodBackAndBindsNothing) {
    pending("w1", 4000, 0);
    step();
    answer(Outcome::Refused);
    EXPECT_EQ(told(), Lines{});
    EXPECT_EQ(used("n1"), 4000) << "the reservation holds it, not the pod";
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told(), Lines{"claim r for w1"});
}

TEST_F(ClaimingTest, AnUnknownClaimIsReadBack) {
    pending("w1", 4000, 0);
    step();
    answer(Outcome::Unknown);
    EXPECT_EQ(told(), Lines{"read r"});
}

TEST_F(ClaimingTest, AClaimThatACrashLeftIsReleasedAndTakenAgain) {
    reserve({{"default", "w2", "w2"}});
    pending("w1", 4000, 0);
    step();
    const Lines lines = told();
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0].substr(0, 9), "refuse w1");
    EXPECT_EQ(lines[1], "release r");
    done();
    EXPECT_EQ(owners(), std::vector<model::PodRef>{});
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told(), Lines{"claim r for w1"});
}

TEST_F(ClaimingTest, WhoeverClaimedBeforeACrashClaimsAgain) {
    reserve({{"default", "w1", "w1"}});
    pending("w1", 4000, 0);
    step();
    EXPECT_EQ(told(), Lines{"claim r for w1"}) << "it is not released meanwhile";
    done();
    EXPECT_EQ(told(), Lines{"bind w1 to n1"});
}

TEST_F(ClaimingTest, AClaimOfABoundPodStays) {
    model::Pod& pod = make("w1", 4000, 0);
    pod.node = "n1";
    pod.meta.annotations.set(model::kReservationAllocated, model::allocated_text({"r", "r"}));
    put(pod);
    reserve({{"default", "w1", "w1"}});
    step();
    EXPECT_EQ(told(), Lines{});
}

// Controllers that begin now cannot know it any more.
TEST_F(ClaimingTest, AClaimWhosePodWasBoundAndHasGoneEndsTheReservation) {
    model::Pod& pod = make("w1", 4000, 0);
    pod.node = "n1";
    pod.meta.annotations.set(model::kReservationAllocated, model::allocated_text({"r", "r"}));
    put(pod);
    reserve({{"default", "w1", "w1"}});
    step();
    gone("w1");
    step();
    EXPECT_EQ(told(), Lines{"end r"}) << "it was used, also when its pod is gone";
    EXPECT_EQ(used("n1"), 4000) << "held until that is stored";
    done();
    EXPECT_EQ(used("n1"), 0);
    EXPECT_EQ(reservations_.at("r").phase, model::ReservationPhase::Succeeded);
    EXPECT_TRUE(model::is_unseen(reservations_.at("r"))) << "the controllers say it and do the rest";
    step();
    EXPECT_EQ(told(), Lines{});
}

// The same of one that was bound without a claim, by somebody else.
TEST_F(ClaimingTest, WhatSomebodyElseBoundEndsTheReservationToo) {
    model::Pod& pod = make("w1", 4000, 0);
    pod.node = "n1";
    pod.meta.annotations.set(model::kReservationAllocated, model::allocated_text({"r", "r"}));
    put(pod);
    step();
    gone("w1");
    step();
    EXPECT_EQ(told(), Lines{"end r"});
}

// The pod's labels were changed between its claim and its bind.
TEST_F(ClaimingTest, AClaimOfAPodThatIsBoundAndNoOwnerIsReleased) {
    pending("w1", 4000, 0);
    step();
    ASSERT_EQ(told(), Lines{"claim r for w1"});
    done();
    ASSERT_EQ(told(), Lines{"bind w1 to n1"});
    step();
    ASSERT_EQ(told(), Lines{}) << "it is being bound";
    model::Pod& pod = pods_.at("w1");
    pod.node = "n1";
    put(pod);  // its annotations name nothing
    step();
    EXPECT_EQ(told(), Lines{"release r"});
}

TEST_F(ClaimingTest, APodThatIsNoOwnerAnyMoreIsNotBoundWithItsClaim) {
    model::Reservation labelled = reservations_.at("r");
    labelled.owners = {{}};
    labelled.owners.front().labels = Selector::parse("app=web").value();
    reserved(std::move(labelled));
    const auto relabel = [this](const char* app) {
        model::Pod& pod = pods_.at("w1");
        pod.meta.labels.set("app", app);
        auto spec = std::make_shared<model::PodSpec>(*pod.spec);
        spec->labels = pod.meta.labels;
        pod.spec = spec;
        put(pod);
    };
    make("w1", 4000, 0);
    relabel("web");
    step();
    ASSERT_EQ(told(), Lines{"claim r for w1"});
    relabel("other");
    done();
    EXPECT_EQ(told(), Lines{}) << "bound, it would not be charged to r, and stand beside it";
    later(std::chrono::seconds(20));
    step();
    const Lines lines = told();
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0].substr(0, 9), "refuse w1");
    EXPECT_EQ(lines[1], "release r");
}

TEST_F(ClaimingTest, AReleaseThatWasNotAnsweredIsTriedAgain) {
    reserve({{"default", "w2", "w2"}});
    step();
    ASSERT_EQ(told(), Lines{"release r"});
    scheduler_.outcome(answered_.front(), Outcome::Unknown, now_);
    scheduler_.outcome(ReadBack{ReadBack::What::Reservation, "r", "", "r"}, Outcome::Done, now_);
    step();
    EXPECT_EQ(told(), Lines{"release r"}) << "it is read, and as it was";
}

// Whoever changed it may have left the claim; or the server had other reasons.
TEST_F(ClaimingTest, AReleaseThatWasRefusedIsLookedAtAgain) {
    reserve({{"default", "w2", "w2"}});
    step();
    ASSERT_EQ(told(), Lines{"release r"});
    EXPECT_TRUE(scheduler_.outcome(answered_.front(), Outcome::Refused, now_).empty());
    step();
    EXPECT_EQ(told(), Lines{}) << "not at once";
    later(std::chrono::seconds(1));
    step();
    ASSERT_EQ(told(), Lines{"read r"});
    scheduler_.outcome(answered_.front(), Outcome::Done, now_);
    step();
    EXPECT_EQ(told(), Lines{"release r"});
}

// After a restart, that is all there is to see of it.
TEST_F(ClaimingTest, AClaimOfAPodThatHasEndedEndsTheReservation) {
    model::Pod& pod = make("w1", 4000, 0);
    pod.node = "n1";
    pod.phase = model::PodPhase::Succeeded;
    pod.meta.annotations.set(model::kReservationAllocated, model::allocated_text({"r", "r"}));
    for (const bool pod_first : {true, false}) {
        if (pod_first) put(pod);
        reserve({{"default", "w1", "w1"}});
        if (!pod_first) put(pod);
        step();
        EXPECT_EQ(told(), Lines{"end r"});
        EXPECT_EQ(used("n1"), 4000) << "held until Succeeded is stored";
        reservation_gone("r");
        gone("w1");
    }
}

// A Binding can only overwrite, and what it leaves on a bound pod would count.
TEST_F(ClaimingTest, LinksThatStoodThereBeforeAreEmptied) {
    model::Pod& pod = make("stranger", 0, 0);
    pod.meta.annotations.set(model::kReservationAllocated, model::allocated_text({"r", "r"}));
    pod.meta.annotations.set(model::kReservationDraws, "[");
    put(pod);
    step();
    ASSERT_EQ(plans_.size(), 1u);
    const auto& bind = std::get<BindPod>(plans_.front());
    const model::Labels written(bind.annotations);
    ASSERT_TRUE(written.has(model::kReservationAllocated) && written.has(model::kReservationDraws));
    EXPECT_TRUE(model::read_links(written)->empty());
}

TEST_F(ClaimingTest, ThePodsEndReleasesTheClaim) {
    pending("w1", 4000, 0);
    step();
    done();
    (void)told();
    gone("w1");
    step();
    EXPECT_EQ(told(), Lines{"release r"});
}

TEST_F(ClaimingTest, AnAnswerToAnEarlierTryBindsNothing) {
    pending("w1", 4000, 0);
    step();
    const auto early = std::get<ClaimReservation>(plans_.at(0));
    answer(Outcome::Refused);
    later(std::chrono::seconds(20));
    step();
    EXPECT_TRUE(scheduler_.outcome(early, Outcome::Done, now_).empty());
}

}  // namespace
}  // namespace berth::sched
