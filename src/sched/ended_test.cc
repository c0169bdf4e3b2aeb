// A reservation that has ended takes no place, and nobody draws from it, whether or not that has been written.
#include "sched/live_test.h"

namespace berth::sched {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class EndedTest : public LiveTest {
protected:
    explicit EndedTest(SchedulerOptions options = {}) : LiveTest(std::move(options)) {
        later(hours(1000));
        node("n1", 4000);
    }
    model::Reservation made(int64_t cpu_milli) const {
        model::Reservation made = reservation("r", cpu_milli, {"w1", "w2"});
        made.meta.created = wall_;
        made.ttl = hours(1);
        return made;
    }
    void draws_nothing_from_an_old_one(bool once) {
        model::Reservation old = made(3000);
        old.allocate_once = once;
        old.meta.created = wall_ + -hours(2);
        reserved_on("n1", old);
        pending("w1", 1000, 0);
        step();
        ASSERT_EQ(plans_.size(), 1u);
        EXPECT_FALSE(draws(0)) << "it has the node's own room";
        EXPECT_EQ(used("n1"), 4000) << "the reservation holds its room until its end is stored";
    }
    // Whether the plan at this place binds a pod that draws from something.
    bool draws(size_t at) const { return !std::get<BindPod>(plans_.at(at)).annotations.empty(); }
    // The one pod that waits is bound to what it draws from, but the server does not take it.
    void draws_and_is_refused() {
        step();
        ASSERT_EQ(plans_.size(), 1u);
        EXPECT_TRUE(draws(0));
        told();
        answer(Outcome::Refused);
        done();  // it was read, and is not bound
    }
};

TEST_F(EndedTest, OneThatExpiredBeforeItCameIsNotPlaced) {
    model::Reservation old = made(1000);
    old.expires = wall_ + -minutes(1);
    reserved(old);
    step();
    EXPECT_EQ(told(), Lines{});
    EXPECT_EQ(scheduler_.next_wake(), std::nullopt);
    EXPECT_EQ(used("n1"), 0);
}

// At the start, and while the scheduler runs.
TEST_F(EndedTest, OneWhoseTtlHasPassedIsNotPlaced) {
    model::Reservation old = made(9000);
    old.meta.created = wall_ + -hours(2);
    reserved(old);
    step();
    EXPECT_EQ(told(), Lines{});
    model::Reservation large = made(9000);
    large.meta.name = large.meta.uid = "large";
    reserved(large);
    step();
    EXPECT_EQ(told().size(), 1u) << "no room";
    done();
    later(hours(1));
    node("n2", 16000);
    step();
    EXPECT_EQ(told(), Lines{});
}

TEST_F(EndedTest, NobodyDrawsFromOneThatHasEnded) {
    draws_nothing_from_an_old_one(true);
}
TEST_F(EndedTest, NorFromAReusableOne) {
    draws_nothing_from_an_old_one(false);
}

TEST_F(EndedTest, FromThatMomentOn) {
    reserved_on("n1", made(4000));
    step();
    EXPECT_EQ(told(), Lines{});
    later(hours(1) - seconds(1));
    pending("w1", 1000, 0);
    draws_and_is_refused();
    later(seconds(1));
    step();
    ASSERT_EQ(plans_.size(), 1u);
    EXPECT_EQ(told()[0].substr(0, 9), "refuse w1");
}

TEST_F(EndedTest, AJumpOfTheWallClockEndsNothing) {
    reserved_on("n1", made(4000));
    step();
    wall_ = wall_ + hours(30);
    pending("w1", 1000, 0);
    draws_and_is_refused();
    wall_ = wall_ + -hours(90);
    later(hours(1));
    step();
    ASSERT_EQ(plans_.size(), 1u);
    EXPECT_EQ(told()[0].substr(0, 9), "refuse w1") << "nor keeps it for ever";
}

TEST_F(EndedTest, AnEditMovesTheEndEitherWay) {
    model::Reservation object = made(3000);
    reserved_on("n1", object);
    step();
    later(hours(1));
    step();
    object.ttl = hours(2);
    reserved_on("n1", object);
    pending("w1", 1000, 0);
    draws_and_is_refused();
    object.expires = wall_ + -minutes(1);
    reserved_on("n1", object);
    later(seconds(10));
    step();
    ASSERT_EQ(plans_.size(), 1u);
    EXPECT_FALSE(draws(0));
}

TEST_F(EndedTest, APendingOneThatLivesLongerIsTriedAtOnce) {
    model::Reservation object = made(3000);
    object.expires = wall_;
    reserved(object);
    step();
    EXPECT_EQ(told(), Lines{});
    object.expires = wall_ + minutes(5);
    reserved(object);
    step();
    EXPECT_EQ(told(), Lines{"reserve r: Successfully reserved on n1"});
}

// A Restricted reservation that is too small closes its node to its owners; its end opens it.
TEST_F(EndedTest, WhoWaitsOnAnEndIsWokenByIt) {
    model::Reservation small = made(1000);
    small.policy = model::AllocatePolicy::Restricted;
    reserved_on("n1", small);
    pending("w1", 2000, 0);
    step();
    EXPECT_EQ(told()[0].substr(0, 9), "refuse w1");
    ASSERT_TRUE(scheduler_.next_wake());
    EXPECT_LE(*scheduler_.next_wake(), now_ + minutes(5));
    later(minutes(58));
    step();
    told();
    EXPECT_EQ(scheduler_.next_wake(), now_ + minutes(2)) << "its end";
    later(minutes(2));
    step();
    EXPECT_EQ(told(), Lines{"bind w1 to n1"});
}

class EndedClaimTest : public EndedTest {
protected:
    EndedClaimTest() : EndedTest({.claims_first = true}) {}
};

TEST_F(EndedClaimTest, OneThatEndsBetweenItsClaimAndTheBindIsNotBoundTo) {
    reserved_on("n1", made(3000));
    pending("w1", 1000, 0);
    step();
    EXPECT_EQ(told(), Lines{"claim r for w1"});
    later(hours(1));
    // The clock is looked at with every round; the answer comes after one.
    const auto claim = answered_;
    step();
    told();
    answered_ = claim;
    done();
    EXPECT_EQ(told(), Lines{}) << "no bind";
    step();
    EXPECT_EQ(told(), Lines{"release r"});
}

}  // namespace
}  // namespace berth::sched
