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
    const std::vector<model::PodRef>& owners() { return preemption_holds_.at("r").current_owners; }
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
    gone("w1");
    step();
    EXPECT_EQ(told(), Lines{}) << "it was used, also when its pod is gone";
}

// After a restart, that is all there is to see of it.
TEST_F(ClaimingTest, AClaimOfAPodThatHasEndedStays) {
    model::Pod& pod = make("w1", 4000, 0);
    pod.node = "n1";
    pod.phase = model::PodPhase::Succeeded;
    pod.meta.annotations.set(model::kReservationAllocated, model::allocated_text({"r", "r"}));
    for (const bool pod_first : {true, false}) {
        if (pod_first) put(pod);
        reserve({{"default", "w1", "w1"}});
        if (!pod_first) put(pod);
        step();
        EXPECT_EQ(told(), Lines{});
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
