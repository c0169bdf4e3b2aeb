// Preemption by the live scheduler: events by hand, plans out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sched/live_test.h"

namespace berth::sched {
namespace {

class PreemptingTest : public LiveTest {
protected:
    PreemptingTest() : LiveTest({.holds_rooms = false}) { node("n1", 4000); }
};

// Node of 4 cpu with 1 (priority 1), 1 (2) and 2 (3); a pod of 2 and priority 10: the two small ones go.
TEST_F(PreemptingTest, TheFewestGoAndThePodIsNominated) {
    bound("a", 1000, 1, "n1");
    bound("b", 1000, 2, "n1");
    bound("c", 2000, 3, "n1");
    pending("p", 2000, 10);
    step();
    EXPECT_EQ(told(),
              (Lines{"refuse p -> n1: 0/1 nodes are available: 1 Insufficient cpu.", "mark b for p", "mark a for p"}));
    done();
    EXPECT_EQ(told(), (Lines{"delete b for p", "delete a for p"}));
    done();
    terminating("a");
    terminating("b");
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told(), Lines{}) << "nothing happened that could help";
    gone("a");
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told(), Lines{"refuse p: 0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
                            "preemption: not eligible due to a "
                            "terminating pod on the nominated node."});
    gone("b");
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told(), Lines{"bind p to n1"});
    EXPECT_EQ(used("n1"), 4000);
}

TEST_F(PreemptingTest, NobodyElseGoesWhileTheEvictionsAreUnderWay) {
    bound("a", 4000, 1, "n1");
    pending("p", 2000, 10);
    step();
    EXPECT_EQ(told().size(), 2u);
    node("n2", 1000);  // wakes it, and does not help
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told(), Lines{"refuse p: 0/2 nodes are available: 2 Insufficient cpu."});
}

TEST_F(PreemptingTest, AnEvictionThatFailsIsTriedAgain) {
    bound("a", 4000, 1, "n1");
    pending("p", 2000, 10);
    step();
    told();
    done();  // marked
    EXPECT_EQ(told(), Lines{"delete a for p"});
    answer(Outcome::Unknown);
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told(), (Lines{"refuse p -> n1: 0/1 nodes are available: 1 Insufficient cpu.", "mark a for p"}));
}

// The room that is being made for p is not for a pod of p's priority, but is for a more important one.
TEST_F(PreemptingTest, OthersYieldToWhoIsNominated) {
    bound("a", 3000, 1, "n1");
    pending("p", 3000, 10);
    step();
    told();
    done();
    done();
    told();
    gone("a");
    pending("equal", 2000, 10);
    pending("small", 1000, 10);
    pending("urgent", 3000, 20);
    step();
    EXPECT_EQ(told(), (Lines{"bind urgent to n1",
                             "refuse equal: 0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
                             "preemption: 0/1 nodes are "
                             "available: 1 No preemption victims found for incoming pod.",
                             "refuse small: 0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
                             "preemption: 0/1 nodes are "
                             "available: 1 No preemption victims found for incoming pod."}));
}

TEST_F(PreemptingTest, TheFastWayYieldsOnlyWhereItMust) {
    node("n2", 4000);
    bound("a", 4000, 1, "n1");
    bound("b", 1000, 100, "n2");
    bound("c", 2500, 100, "n2");
    pending("p", 3000, 10);
    step();
    EXPECT_EQ(told().size(), 2u);
    done();
    done();
    told();
    gone("a");
    pending("x", 500, 0);
    pending("y", 500, 0);
    pending("z", 500, 0);
    step();
    EXPECT_EQ(told(), (Lines{"bind x to n1", "bind y to n1", "bind z to n2"})) << "n1 keeps 3 of 4 cpu for p";
}

TEST_F(PreemptingTest, WhoIsLessImportantLosesItsNomination) {
    bound("a", 4000, 1, "n1");
    pending("p", 4000, 10);
    step();
    told();
    done();
    done();
    told();
    pending("urgent", 4000, 20);
    step();
    EXPECT_EQ(told(), (Lines{"refuse urgent -> n1: 0/1 nodes are available: 1 Insufficient cpu.", "mark a for urgent",
                             "clear p"}));
    done();
    done();
    told();
    gone("a");
    later(std::chrono::seconds(20));
    step(1);
    EXPECT_EQ(told(), Lines{"bind urgent to n1"});
}

TEST_F(PreemptingTest, ANominationThatCannotHelpEnds) {
    bound("a", 4000, 1, "n1");
    pending("p", 4000, 10);
    step();
    told();
    done();
    done();
    told();
    gone("a");
    bound("strong", 4000, 100, "n1");
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told(), Lines{"refuse p -> : 0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
                            "preemption: 0/1 nodes are "
                            "available: 1 No preemption victims found for incoming pod."});
    gone("strong");
    pending("equal", 4000, 10);
    step();
    EXPECT_EQ(told(), Lines{"bind equal to n1"});
}

TEST_F(PreemptingTest, NominationsAreReadFromStoredPodsAtTheStart) {
    pending("other", 1000, 10);
    pending("p", 4000, 10, "n1");
    step(1);
    EXPECT_EQ(told().at(0).substr(0, 12), "refuse other");
    pending("p", 4000, 10, "");  // somebody took it back
    later(std::chrono::seconds(20));
    step(1);
    EXPECT_EQ(told(), Lines{"bind other to n1"});
}

TEST_F(PreemptingTest, ANominatedPodGoesThereWhateverTheScores) {
    node("n0", 64000);
    pending("p", 4000, 10, "n1");
    step();
    EXPECT_EQ(told(), Lines{"bind p to n1"});
    answer(Outcome::Refused);
    done();
    pending("other", 1000, 10);
    step();
    EXPECT_EQ(told(), Lines{"bind other to n0"});
}

TEST_F(PreemptingTest, NeverMeansNever) {
    bound("a", 4000, 1, "n1");
    pending("p", 2000, 10, "", true);
    step();
    EXPECT_EQ(told(), Lines{"refuse p: 0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
                            "preemption: not eligible due to "
                            "preemptionPolicy=Never."});
}

TEST_F(PreemptingTest, ARefusalThatWasNotWrittenIsWrittenAgain) {
    bound("a", 4000, 100, "n1");
    pending("p", 2000, 10);
    step();
    EXPECT_EQ(told().size(), 1u);
    answer(Outcome::Unknown);
    node("n2", 100);
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told().size(), 1u);
    done();
    node("n2", 200);
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told().size(), 0u);
}

}  // namespace
}  // namespace berth::sched
