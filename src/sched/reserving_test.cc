// What reservations mean for the rounds of the scheduler: when one is tried, what a deleted one leaves, who has it when
// two want it at once, and who pays for it.
#include "sched/fast/decider.h"
#include "sched/live_test.h"
#include "sched/table_test.h"

namespace berth::sched {
namespace {

using std::chrono::seconds;

class ReservingTest : public LiveTest {
protected:
    ReservingTest() { node("n1", 4000); }

    static model::Reservation made(int64_t cpu_milli) { return reservation("r", cpu_milli, {"w1", "w2"}); }
    uint64_t tries() const { return scheduler_.counts().unschedulable.find("berth")->second; }
};

// Koordinator #530
TEST_F(ReservingTest, OneThatFitsNowhereIsNotTriedAgainAtOnce) {
    reserved(made(9000));
    step();
    EXPECT_EQ(tries(), 1u);
    done();
    step();
    EXPECT_EQ(tries(), 1u) << "that its own status has come changes nothing at once";
    later(seconds(10));
    step();
    const uint64_t settled = tries();
    for (int i = 0; i < 20; ++i) {
        later(seconds(10));
        step();
    }
    EXPECT_EQ(tries(), settled);
    node("n2", 16000);
    step();
    EXPECT_EQ(told(), Lines{"reserve r: Successfully reserved on n2"});
}

// Koordinator #2921
TEST_F(ReservingTest, OneThatIsDeletedWhileItIsPlacedLeavesNothing) {
    for (const auto outcome : {Outcome::Done, Outcome::Refused, Outcome::Unknown}) {
        reserved(made(3000));
        step();
        ASSERT_EQ(told(), Lines{"reserve r: Successfully reserved on n1"});
        EXPECT_EQ(used("n1"), 3000);
        reservation_gone("r");
        EXPECT_EQ(used("n1"), 0);
        for (const auto& plan : answered_) scheduler_.outcome(plan, outcome, now_);
        EXPECT_EQ(used("n1"), 0);
        EXPECT_TRUE(scheduler_.ledger().reservations().empty());
        later(seconds(20));
        step();
        EXPECT_EQ(told(), Lines{});
    }
}

// The server ends it with the first bind, which nobody has heard of yet.
TEST_F(ReservingTest, OfTwoOwnersInOneRoundOneHasIt) {
    model::Reservation once = made(2000);
    once.allocate_once = true;
    reserved_on("n1", once);
    pending("w1", 1000, 0);
    pending("w2", 1000, 0);
    step();
    ASSERT_EQ(plans_.size(), 2u);
    EXPECT_FALSE(std::get<BindPod>(plans_[0]).annotations.empty());
    EXPECT_TRUE(std::get<BindPod>(plans_[1]).annotations.empty()) << "it has the node's room";
    EXPECT_EQ(used("n1"), 3000);
}

// Koordinator #3032
TEST(Reserving, WhoMatchesNoReservationIsAskedAsIfThereWereNone) {
    TestTable table;
    table.put(node_yaml("n1") + R"(
---
kind: Reservation
metadata: {name: r}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
status: {phase: Available, nodeName: n1, allocatable: {cpu: "1"}}
---
kind: Pod
metadata: {name: db, namespace: default, labels: {app: db}}
spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
---
kind: Pod
metadata: {name: web, namespace: default, labels: {app: web}}
spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
)");
    fast::Decider decider(default_profile());
    EXPECT_NE(decider.choose(table.pod("db"), table.ledger), ledger::kNoRow);
    EXPECT_EQ(decider.counts().matching, 0u);
    EXPECT_NE(decider.choose(table.pod("web"), table.ledger), ledger::kNoRow);
    EXPECT_EQ(decider.counts().matching, 1u);
}

// By name alone, and as pods are placed by default.
Scheduler::Profiles two_profiles() {
    Profile by_name = default_profile();
    by_name.scorers.clear();
    return {{"a-first", std::move(by_name)}, {"berth", default_profile()}};
}

class TemplateProfileTest : public LiveTest {
protected:
    TemplateProfileTest() : LiveTest({}, two_profiles()) {
        node("n1", 4000);
        node("n2", 4000);
        bound("filler", 1000, 0, "n1");
    }
    static model::Reservation named(const std::string& name, const std::string& scheduler) {
        model::Reservation made = reservation(name, 1000, {"w1"});
        auto spec = std::make_shared<model::PodSpec>(*made.spec);
        spec->scheduler_name = scheduler;
        made.spec = std::move(spec);
        return made;
    }
};

TEST_F(TemplateProfileTest, AReservationIsPlacedByTheProfileThatItsTemplateNames) {
    reserved(named("r1", "berth"));
    step();
    EXPECT_EQ(told(), Lines{"reserve r1: Successfully reserved on n2"}) << "the emptier one";
    reserved(named("r2", "a-first"));
    step();
    EXPECT_EQ(told(), Lines{"reserve r2: Successfully reserved on n1"});
    reserved(named("r3", "somebody-else"));
    step();
    EXPECT_EQ(told(), Lines{"reserve r3: Successfully reserved on n1"}) << "by the first";
}

}  // namespace
}  // namespace berth::sched
