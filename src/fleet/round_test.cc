#include "fleet/round.h"

#include <gtest/gtest.h>

#include "base/test_cost.h"
#include "fleet/placing.h"

namespace berth::fleet {
namespace {

using model::HoldAnswer;
using model::HoldReason;
using model::HoldState;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Names = std::vector<std::string>;

base::Instant at(base::Duration since) {
    return base::Instant{} + since;
}
PoolEntry accepted(const std::string& name, int32_t score = 5) {
    return {name, {HoldState::Accepted, HoldReason::None, score, seconds(30), false}};
}
PoolEntry rejected(const std::string& name, HoldReason reason) {
    return {name, {HoldState::Rejected, reason}};
}

struct RoundTest : testing::Test {
    Asked asked;
    RoundMemory memory;
    std::vector<Pool> pools;
    ReplyTimes times;
    RoundRules rules;

    RoundTest() {
        asked.lineage = "m";
        for (const char* name : {"a", "b", "c", "d"}) pools.push_back({name, {}, {}, true});
    }
    Round look(base::Duration since = {}) { return next_round(asked, memory, pools, times, rules, at(since)); }
    void ask_wave() { asked.pools = *look().ask; }
};

TEST_F(RoundTest, AsksAWaveAndTheNextOneWhenAllHaveRefused) {
    const auto first = look();
    ASSERT_TRUE(first.ask);
    EXPECT_EQ(first.ask->size(), 3u);
    asked.pools = *first.ask;
    EXPECT_FALSE(look(milliseconds(1)).ask);
    asked.entries = {rejected(asked.pools[0], HoldReason::Insufficient)};
    EXPECT_FALSE(look(milliseconds(2)).ask);
    for (const auto& pool : {asked.pools[1], asked.pools[2]})
        asked.entries.push_back(rejected(pool, HoldReason::Insufficient));
    const auto second = look(milliseconds(2));
    ASSERT_TRUE(second.ask);
    EXPECT_EQ(second.ask->size(), 4u);
}

TEST_F(RoundTest, ChoosesTheBestScoreThenTheFirstNameAndLeavesTheOthersOut) {
    asked.pools = {"a", "b", "c"};
    asked.entries = {accepted("c", 7), accepted("b", 7), accepted("a", 3)};
    const auto round = look();
    EXPECT_TRUE(round.decided);
    EXPECT_EQ(round.pool, "b");
    EXPECT_EQ(round.ask, Names{"b"});
}

TEST_F(RoundTest, WaitsForTheWaveNoLongerThanRepliesTake) {
    asked.pools = {"a", "b"};
    asked.entries = {accepted("a")};
    EXPECT_FALSE(look().decided);
    EXPECT_EQ(look().next, at(milliseconds(250)));
    EXPECT_TRUE(look(milliseconds(250)).decided);
}

TEST_F(RoundTest, TaintsSelectorAndPinsSayWhoIsAsked) {
    pools = {{"a", {}, {{"gpu", "", "NoSchedule"}}, true}, {"b", {}, {}, true}, {"c", Labels{{"zone", "1"}}, {}, true}};
    asked.selector = Labels{{"zone", "1"}};
    EXPECT_EQ(look().ask, Names{"c"});
    asked.selector = {};
    asked.pinned = {"b"};
    EXPECT_EQ(look().ask, Names{"b"});
    asked.pinned = {"a"};
    EXPECT_FALSE(look().ask);
    asked.tolerations = {{"gpu", "Exists", "", "", {}}};
    EXPECT_EQ(look().ask, Names{"a"});
}

TEST_F(RoundTest, FoldsToTheMostHopefulReason) {
    pools.resize(3);
    asked.pools = {"a", "b", "c"};
    asked.entries = {rejected("a", HoldReason::Insufficient), rejected("b", HoldReason::Contended),
                     rejected("c", HoldReason::Unsatisfiable)};
    EXPECT_EQ(look().answer, (HoldAnswer{HoldState::Rejected, HoldReason::Contended}));
}

TEST_F(RoundTest, WhoGaveBackWhatItHeldCouldHaveItAgain) {
    asked.pools = {"a"};
    pools.resize(1);
    asked.entries = {{"a", {HoldState::Released}}};
    EXPECT_EQ(look().answer, (HoldAnswer{HoldState::Rejected, HoldReason::Contended}));
}

// Seed 20325 of the histories with lies: nobody else has so much at all, and it waited for ever.
TEST_F(RoundTest, WhoHadItCouldHaveItAgainWhateverOthersSay) {
    asked.pools = {"a", "b"};
    pools.resize(2);
    for (const auto state : {HoldState::Lost, HoldState::Released}) {
        asked.entries = {rejected("a", HoldReason::Unsatisfiable), {"b", {state}}};
        asked.origin = true;
        asked.told = {};
        EXPECT_EQ(look().answer, (HoldAnswer{HoldState::Rejected, HoldReason::Contended}));
        // Also when it was told upward before.
        asked.origin = false;
        asked.told = {HoldState::Rejected, HoldReason::Unsatisfiable};
        EXPECT_EQ(look().answer, (HoldAnswer{HoldState::Rejected, HoldReason::Contended}));
    }
}

TEST_F(RoundTest, SilenceIsNoRefusal) {
    pools.resize(2);
    asked.pools = {"a", "b"};
    asked.entries = {rejected("a", HoldReason::Unsatisfiable)};
    EXPECT_FALSE(look().decided);
    const auto late = look(seconds(2));
    EXPECT_TRUE(late.decided);
    EXPECT_EQ(late.answer.state, HoldState::NoReply);
}

TEST_F(RoundTest, WhoIsBelowOthersDecidesBeforeTheyStopWaiting) {
    EXPECT_EQ(time_below(asked, rules), seconds(4));
    asked.within = seconds(4);
    EXPECT_EQ(time_below(asked, rules), seconds(2));
    asked.within = seconds(1);
    EXPECT_EQ(time_below(asked, rules), milliseconds(500));
    asked.pools = {"a"};
    pools.resize(1);
    EXPECT_FALSE(look().decided);
    EXPECT_FALSE(look(milliseconds(900)).decided);
    EXPECT_TRUE(look(seconds(1)).decided);
    // One that has said that it asks others would have six seconds otherwise.
    asked.within = seconds(4);
    asked.entries = {{"a", {}}};
    EXPECT_FALSE(look(milliseconds(3900)).decided);
    EXPECT_TRUE(look(seconds(4)).decided);
}

TEST_F(RoundTest, ARefusalThatWasToldUpwardStaysAndARetryIsTold) {
    pools.resize(1);
    asked.origin = false;
    asked.told = {HoldState::Rejected, HoldReason::Insufficient};
    asked.pools = {"a"};
    asked.entries = {rejected("a", HoldReason::Insufficient)};
    EXPECT_EQ(look().answer.reason, HoldReason::Insufficient);
    pools.push_back({"new", {}, {}, true});
    EXPECT_EQ(look().answer, (HoldAnswer{HoldState::Rejected, HoldReason::Retry}));
    EXPECT_FALSE(look().ask);
}

TEST_F(RoundTest, WhatWasPromisedAndIsGoneIsLost) {
    asked.origin = false;
    asked.told = {HoldState::Accepted};
    asked.pools = {"a"};
    asked.entries = {{"a", {HoldState::Lost}}};
    EXPECT_EQ(look().answer.state, HoldState::Lost);
}

TEST_F(RoundTest, UpwardGoesWhatTheOnlyPoolSays) {
    asked.pools = {"a", "b"};
    asked.entries = {accepted("a"), accepted("b")};
    EXPECT_EQ(upward(asked), HoldAnswer{}) << "the losers hold it, still";
    asked.pools = {"b"};
    asked.entries[1].answer.committed = true;
    EXPECT_EQ(upward(asked), asked.entries[1].answer);
    asked.told = {HoldState::Rejected, HoldReason::Contended};
    EXPECT_EQ(upward(asked), asked.told) << "it was said";
    asked.told = {HoldState::Accepted};
    asked.entries[1].answer = {HoldState::Lost};
    EXPECT_EQ(upward(asked), asked.told) << "its scheduler says what that means";
}

TEST_F(RoundTest, WhatWasToldToBeLostStaysSo) {
    asked.origin = false;
    asked.told = {HoldState::Lost};
    asked.pools = {"a"};
    asked.commit = "a";
    asked.entries = {accepted("a")};
    EXPECT_EQ(look().answer.state, HoldState::Lost);
    asked.entries = {{"a", {HoldState::Bound}}};
    EXPECT_EQ(look().answer.state, HoldState::Bound);
}

TEST_F(RoundTest, AReservationWithoutAMachineIsHeldEverywhere) {
    asked.for_machine = false;
    asked.entries = {accepted("a"), accepted("b")};
    const auto round = look(seconds(3));
    EXPECT_EQ(round.answer.state, HoldState::Accepted);
    EXPECT_FALSE(round.ask);
}

TEST(ReplyTimes, NinetyFiveOfAHundred) {
    ReplyTimes times;
    EXPECT_EQ(times.p95(), milliseconds(250));
    for (int i = 1; i <= 100; ++i) times.add(milliseconds(i));
    EXPECT_EQ(times.p95(), milliseconds(96));
}

TEST(Backoff, DoublesUpToAMinute) {
    for (uint64_t failures = 1; failures < 20; ++failures) {
        const auto most =
            std::min<base::Duration>(seconds(1) * (1 << std::min<uint64_t>(failures - 1, 6)), seconds(60));
        EXPECT_LE(backoff(failures, "m"), most);
        EXPECT_GE(backoff(failures, "m"), most / 2);
    }
}

struct PlacingTest : testing::Test {
    using Do = Step::Do;
    Machine machine;
    Reservation reservation;
    Round round;
    PlacingMemory memory;

    PlacingTest() {
        machine.lineage = "m";
        round.decided = true;
        round.pool = "a";
        round.answer = accepted("a").answer;
    }
    Step step(base::Duration since = {}) { return next_step(machine, &reservation, round, memory, at(since)); }
};

TEST_F(PlacingTest, ThePoolIsSetOnlyWhenItsHoldSaysThatItWaits) {
    EXPECT_EQ(next_step(machine, nullptr, {}, memory, {}).what, Do::Reserve);
    machine.finalized = true;
    EXPECT_EQ(step().what, Do::Nothing);
    machine.finalized = false;
    EXPECT_EQ(step().what, Do::Commit);
    reservation.asked.commit = "a";
    reservation.asked.entries = {accepted("a")};
    EXPECT_EQ(step().what, Do::Nothing);
    reservation.asked.entries[0].answer.committed = true;
    EXPECT_EQ(step().what, Do::SetPool);
    reservation.asked.entries[0].answer.lease = seconds(1);
    EXPECT_EQ(step().what, Do::Nothing);
}

TEST_F(PlacingTest, ABoundReservationIsCleanedUp) {
    machine.pool = "a";
    reservation.asked.commit = "a";
    reservation.asked.entries = {accepted("a")};
    EXPECT_EQ(step().what, Do::Nothing);
    round.answer.state = HoldState::Bound;
    EXPECT_EQ(step().what, Do::Release);
    reservation.brokered = true;
    EXPECT_EQ(step().what, Do::Nothing);
}

TEST_F(PlacingTest, APoolSetByHandNeedsNoReservation) {
    machine.pool = "b";
    EXPECT_EQ(step().what, Do::Release);
    EXPECT_EQ(next_step(machine, nullptr, {}, memory, {}).what, Do::Nothing);
}

TEST_F(PlacingTest, ARefusalIsTriedAgainUnlessItCouldNeverEndOtherwise) {
    round.answer = {HoldState::Rejected, HoldReason::Unsatisfiable};
    EXPECT_EQ(step(seconds(100)).what, Do::Nothing);
    EXPECT_FALSE(step(seconds(100)).next);
    round.answer.reason = HoldReason::Insufficient;
    const auto wait = step(seconds(100));
    EXPECT_EQ(wait.what, Do::Nothing);
    ASSERT_TRUE(wait.next);
    round.answer.reason = HoldReason::Retry;
    const auto woken = step(seconds(100));
    EXPECT_LT(*woken.next, *wait.next);
    EXPECT_EQ(next_step(machine, &reservation, round, memory, *woken.next).what, Do::NextAttempt);
}

TEST_F(PlacingTest, WhatIsLostBeforeItCameGoesElsewhere) {
    machine.pool = "a";
    reservation.asked.commit = "a";
    reservation.asked.entries = {{"a", {HoldState::Lost}}};
    round.answer = {HoldState::Lost};
    EXPECT_EQ(step().what, Do::Nothing);
    EXPECT_EQ(step(kHopMargin).what, Do::ClearPool);
    machine.state = "Running";
    EXPECT_EQ(step(kHopMargin).what, Do::Release);
}

TEST_F(PlacingTest, WhatASilentPoolHasNotTakenGoesElsewhereAfterItsLease) {
    machine.pool = "a";
    reservation.asked.commit = "a";
    reservation.asked.entries = {accepted("a")};
    memory.pool_silent = true;
    EXPECT_EQ(step().what, Do::Nothing);
    EXPECT_EQ(step(kCommittedLease).what, Do::Nothing);
    EXPECT_EQ(step(kCommittedLease + kHopMargin).what, Do::ClearPool);
    // Who may have brought it down is waited for.
    machine.finalized = true;
    EXPECT_EQ(step(kCommittedLease + kHopMargin).what, Do::Nothing);
    machine.finalized = false;
    reservation.brokered = machine.brokered = true;
    EXPECT_EQ(step(seconds(200)).what, Do::Nothing);
    EXPECT_EQ(step(seconds(200) + kCommittedLease + kHopMargin).what, Do::TellLost);
}

TEST_F(PlacingTest, ADeletedMachineTakesItsReservationAlong) {
    machine.meta.deleted = base::Time{1};
    EXPECT_EQ(step().what, Do::Release);
}

// Who writes a reservation may name thousands, of which there is none.
TEST_F(RoundTest, CostGrowsAsItsPoolsDo) {
    const auto cost = [&](size_t count) {
        asked.pools.clear();
        for (size_t i = 0; i < count; ++i) asked.pools.push_back("made-up-" + std::to_string(i));
        memory = {};
        look();
        return base::least_cost([&] { look(milliseconds(1)); });
    };
    EXPECT_LT(cost(8'000), 24 * cost(1'000));
}

}  // namespace
}  // namespace berth::fleet
