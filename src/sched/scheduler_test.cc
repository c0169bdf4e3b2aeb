#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include "ledger/intake.h"

namespace berth::sched {
namespace {

std::shared_ptr<model::Node> node(const std::string& name, int64_t cpu_milli) {
    auto made = std::make_shared<model::Node>();
    made->meta.name = name;
    made->allocatable.set(model::kCpu, cpu_milli);
    made->allocatable.set(model::kMemory, int64_t{32} << 30);
    made->allocatable.set(model::kPods, 110);
    return made;
}

model::Pod pod(const std::string& name, int64_t cpu_milli, const std::string& uid = "") {
    model::Pod made;
    made.meta.ns = "default";
    made.meta.name = name;
    made.meta.uid = uid.empty() ? name + "-uid" : uid;
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = "default";
    spec->scheduler_name = "berth";
    spec->requests.set(model::kCpu, cpu_milli);
    spec->requests.set(model::kPods, 1);
    spec->scoring_cpu_milli = cpu_milli;
    made.spec = spec;
    return made;
}

class SchedulerTest : public testing::Test {
protected:
    SchedulerTest() : scheduler_({{"berth", default_profile()}}) { scheduler_.put(node("n1", 4000), now_); }
    void put(model::Pod pod) { scheduler_.put(std::make_shared<const model::Pod>(std::move(pod)), now_); }
    void gone(const std::string& uid) { scheduler_.remove(*ledger::kind_named("Pod"), ledger::uid_alone(uid), now_); }
    std::vector<Plan> step() { return scheduler_.step(now_, base::Time{}, 100); }
    int64_t used() const { return scheduler_.ledger().column(model::kCpu)->used[0]; }

    base::Instant now_{1};
    Scheduler scheduler_;
};

TEST_F(SchedulerTest, BindsAndHoldsUntilSeen) {
    put(pod("a", 3000));
    const auto plans = step();
    ASSERT_EQ(plans.size(), 1u);
    EXPECT_EQ(std::get<BindPod>(plans[0]).node, "n1");
    EXPECT_EQ(used(), 3000);
    scheduler_.outcome(plans[0], Outcome::Done, now_);
    auto bound = pod("a", 3000);
    bound.node = "n1";
    put(bound);
    put(bound);
    EXPECT_EQ(used(), 3000);
    EXPECT_TRUE(step().empty());
}

TEST_F(SchedulerTest, APodWithResourceClaimsWaitsAndSaysWhy) {
    auto wanting = pod("a", 1000);
    wanting.uses_resource_claims = true;
    put(wanting);
    put(pod("b", 1000));
    const auto plans = step();
    ASSERT_EQ(plans.size(), 2u);
    EXPECT_NE(std::get<RefusePod>(plans[0]).message.find("resourceClaims"), std::string::npos);
    EXPECT_EQ(std::get<BindPod>(plans[1]).name, "b");
}

TEST_F(SchedulerTest, ARefusedBindGivesBackAndTriesAgain) {
    put(pod("a", 3000));
    const auto plans = step();
    const auto reads = scheduler_.outcome(plans[0], Outcome::Refused, now_);
    EXPECT_EQ(used(), 3000) << "it may be bound";
    ASSERT_EQ(reads.size(), 1u);
    scheduler_.outcome(reads[0], Outcome::Done, now_);
    EXPECT_EQ(used(), 0);
    EXPECT_TRUE(step().empty());
    now_ = now_ + std::chrono::seconds(1);
    EXPECT_EQ(step().size(), 1u);
}

TEST_F(SchedulerTest, AnUnknownBindIsResolvedByReading) {
    put(pod("a", 3000));
    const auto bind = step();
    auto reads = scheduler_.outcome(bind[0], Outcome::Unknown, now_);
    ASSERT_EQ(reads.size(), 1u);
    EXPECT_EQ(used(), 3000) << "held while nobody knows";
    // It had taken effect.
    auto bound = pod("a", 3000);
    bound.node = "n1";
    put(bound);
    scheduler_.outcome(reads[0], Outcome::Done, now_);
    EXPECT_EQ(used(), 3000);

    // The next one had not.
    put(pod("b", 500));
    const auto second = step();
    reads = scheduler_.outcome(second[0], Outcome::Unknown, now_);
    put(pod("b", 500));
    scheduler_.outcome(reads[0], Outcome::Done, now_);
    EXPECT_EQ(used(), 3000);
}

TEST_F(SchedulerTest, RoomThatAppearsWakesAtOnce) {
    auto blocker = pod("blocker", 4000);
    blocker.node = "n1";
    put(blocker);
    put(pod("a", 2000));
    auto plans = step();
    ASSERT_EQ(plans.size(), 1u);
    EXPECT_EQ(std::get<RefusePod>(plans[0]).message,
              "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are "
              "available: 1 No preemption victims "
              "found for incoming pod.");
    scheduler_.outcome(plans[0], Outcome::Done, now_);
    now_ = now_ + std::chrono::seconds(30);
    gone("blocker-uid");
    plans = step();
    ASSERT_EQ(plans.size(), 1u);
    EXPECT_EQ(std::get<BindPod>(plans[0]).name, "a");
}

TEST_F(SchedulerTest, ANewPodWithAnOldNameIsANewPod) {
    auto old = pod("a", 3000, "first");
    old.node = "n1";
    put(old);
    put(pod("a", 500, "second"));
    EXPECT_EQ(step().size(), 1u);
    gone("first");
    EXPECT_EQ(used(), 500);
}

TEST_F(SchedulerTest, ForeignSchedulersPodsAreLeftAlone) {
    auto foreign = pod("a", 100);
    auto spec = std::make_shared<model::PodSpec>(*foreign.spec);
    spec->scheduler_name = "other";
    foreign.spec = spec;
    put(foreign);
    EXPECT_TRUE(step().empty());
    foreign.node = "n1";
    put(foreign);
    EXPECT_EQ(used(), 100);
}

// A round that costs much ends early, so that what was decided is carried out and what came meanwhile is heard.
TEST_F(SchedulerTest, ARoundIsBoundedByWhatItCosts) {
    for (int i = 2; i <= 100; ++i) scheduler_.put(node("n" + std::to_string(i), 4000), now_);
    for (int i = 0; i < 50; ++i) {
        model::Pod poison = pod("poison-" + std::to_string(i), 100);
        auto spec = std::make_shared<model::PodSpec>(*poison.spec);
        for (int j = 0; j < 1000; ++j) {
            model::SpreadConstraint constraint;
            constraint.topology_key = "absent-" + std::to_string(i) + "-" + std::to_string(j);
            spec->spread.push_back(constraint);
        }
        poison.spec = spec;
        put(poison);
    }
    step();
    EXPECT_GT(scheduler_.queue().sizes().active, 40U);
    put(pod("plain", 100));
    for (const auto& plan : step()) {
        if (const auto* bind = std::get_if<BindPod>(&plan)) {
            EXPECT_EQ(bind->name, "plain");
            return;
        }
    }
    FAIL() << "the plain pod waits for the others";
}

}  // namespace
}  // namespace berth::sched
