#include "fleet/hold_table.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "fleet/best_effort.h"

namespace berth::fleet {
namespace {

using std::chrono::seconds;

Amounts cpu(int64_t count) {
    return {{"cpu", Quantity::from_value(count)}};
}
HoldAsk ask(const std::string& lineage, int64_t count, uint64_t attempt = 1) {
    HoldAsk out;
    out.lineage = lineage;
    out.attempt = attempt;
    out.resources = cpu(count);
    return out;
}
Instant at(int64_t second) {
    return Instant{} + seconds(second);
}

struct HoldTableTest : testing::Test {
    HoldTable table{cpu(4), {}};
    HoldState state(const std::string& lineage, int64_t second) { return table.answer(lineage, at(second))->state; }
};

TEST_F(HoldTableTest, RetriesGetTheSameHold) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(table.reserve(ask("m", 2), at(i)).state, HoldState::Accepted);
    EXPECT_EQ(table.held(), cpu(2));
}

TEST_F(HoldTableTest, AMachineTakesThePlaceOfItsHoldOnAFullHost) {
    ASSERT_EQ(table.reserve(ask("m", 4), at(0)).state, HoldState::Accepted);
    ASSERT_TRUE(table.place({"m", 1, cpu(4)}, at(1)));
    EXPECT_EQ(table.used(), cpu(4));
    EXPECT_TRUE(table.held().empty());
    EXPECT_EQ(table.reserve(ask("m", 4), at(2)).state, HoldState::Bound);
}

TEST_F(HoldTableTest, AMachineThatIsPlacedTwiceIsOne) {
    ASSERT_TRUE(table.place({"a", 1, cpu(2)}, at(0)));
    ASSERT_TRUE(table.place({"a", 1, cpu(2)}, at(1)));
    EXPECT_EQ(table.used(), cpu(2));
    EXPECT_EQ(table.reserve(ask("a", 2, 2), at(2)).state, HoldState::Bound);
    EXPECT_EQ(table.held(), Amounts{});
}

TEST_F(HoldTableTest, AMachineWithoutAHoldStealsNone) {
    table.reserve(ask("m", 3), at(0));
    const auto placed = table.place({"by-hand", 1, cpu(2)}, at(1));
    ASSERT_FALSE(placed);
    EXPECT_EQ(placed.error().message, "machine by-hand: Contended room");
    EXPECT_TRUE(table.place({"small", 1, cpu(1)}, at(1)));
}

TEST_F(HoldTableTest, LeasesEndByThemselvesAndRenewalKeepsThem) {
    table.reserve(ask("gone", 2), at(0));
    table.reserve(ask("kept", 2), at(0));
    EXPECT_TRUE(table.renew("kept", at(20)));
    table.pass_time(at(30));
    EXPECT_EQ(state("gone", 30), HoldState::Lost);
    EXPECT_EQ(state("kept", 30), HoldState::Accepted);
    EXPECT_EQ(table.held(), cpu(2));
}

TEST_F(HoldTableTest, ACommittedHoldLastsLonger) {
    table.reserve(ask("m", 2), at(0));
    EXPECT_TRUE(table.confirm("m", 1, at(1)));
    table.pass_time(at(100));
    EXPECT_EQ(state("m", 100), HoldState::Accepted);
    table.pass_time(at(121));
    EXPECT_EQ(state("m", 121), HoldState::Lost);
}

TEST_F(HoldTableTest, SaysWhyNot) {
    EXPECT_EQ(table.reserve(ask("huge", 5), at(0)).reason, HoldReason::Unsatisfiable);
    HoldAsk tpu = ask("tpu", 1);
    tpu.resources["tpu"] = Quantity::from_value(1);
    EXPECT_EQ(table.reserve(tpu, at(0)).reason, HoldReason::Unsatisfiable);
    table.reserve(ask("hold", 2), at(0));
    EXPECT_EQ(table.reserve(ask("third", 3), at(0)).reason, HoldReason::Contended);
    ASSERT_TRUE(table.place({"hold", 1, cpu(2)}, at(1)));
    EXPECT_EQ(table.reserve(ask("fourth", 3), at(1)).reason, HoldReason::Insufficient);
}

TEST_F(HoldTableTest, RoomThatComesWakesAsManyAsFit) {
    ASSERT_TRUE(table.place({"all", 1, cpu(4)}, at(0)));
    table.reserve(ask("first", 3), at(1));
    table.reserve(ask("second", 3), at(2));
    ASSERT_TRUE(table.remove("all", at(3)));
    EXPECT_EQ(table.answer("first", at(3))->reason, HoldReason::Retry);
    EXPECT_EQ(table.answer("second", at(3))->reason, HoldReason::Insufficient);
    // The same attempt never goes back to Accepted; the next one is.
    EXPECT_EQ(table.reserve(ask("first", 3), at(4)).state, HoldState::Rejected);
    EXPECT_EQ(table.reserve(ask("first", 3, 2), at(4)).state, HoldState::Accepted);
}

TEST_F(HoldTableTest, WhatCouldNeverFitHearsThatItCould) {
    table.reserve(ask("first", 5), at(1));
    table.reserve(ask("second", 6), at(2));
    EXPECT_EQ(table.answer("second", at(2))->reason, HoldReason::Unsatisfiable);
    table.resize(cpu(6), at(3));
    // The room is promised to the first, which may never come for it.
    EXPECT_EQ(table.answer("first", at(3))->reason, HoldReason::Retry);
    EXPECT_EQ(table.answer("second", at(3))->reason, HoldReason::Retry);
    EXPECT_EQ(table.reserve(ask("first", 5, 2), at(4)).state, HoldState::Accepted);
    EXPECT_EQ(table.reserve(ask("second", 6, 2), at(4)).reason, HoldReason::Contended);
}

TEST_F(HoldTableTest, AnOlderAttemptIsFenced) {
    table.reserve(ask("m", 2, 2), at(0));
    EXPECT_EQ(table.reserve(ask("m", 2, 1), at(1)).reason, HoldReason::Fenced);
    EXPECT_FALSE(table.place({"m", 1, cpu(2)}, at(1)));
    EXPECT_TRUE(table.place({"m", 2, cpu(2)}, at(1)));
}

TEST_F(HoldTableTest, WhatWasDeletedDoesNotComeBackByALateRequest) {
    table.reserve(ask("m", 2), at(0));
    ASSERT_TRUE(table.place({"m", 1, cpu(2)}, at(1)));
    ASSERT_TRUE(table.remove("m", at(2)));
    EXPECT_FALSE(table.place({"m", 1, cpu(2)}, at(3)));
    EXPECT_EQ(table.reserve(ask("m", 2), at(3)).reason, HoldReason::Fenced);
    // Deleted before it arrived.
    EXPECT_FALSE(table.remove("n", at(4)));
    EXPECT_FALSE(table.place({"n", 1, cpu(1)}, at(5)));
    EXPECT_TRUE(table.used().empty());
}

TEST_F(HoldTableTest, AnAttemptThatLostItsHoldHasEnded) {
    table.reserve(ask("m", 2), at(0));
    table.pass_time(at(30));
    EXPECT_FALSE(table.place({"m", 1, cpu(2)}, at(31)));
    EXPECT_TRUE(table.place({"m", 2, cpu(2)}, at(31)));
}

TEST_F(HoldTableTest, AReleasedHoldIsNotTakenAgainByALateCopy) {
    table.reserve(ask("m", 2), at(0));
    ASSERT_TRUE(table.release("m", at(1)));
    EXPECT_EQ(table.reserve(ask("m", 2), at(2)).state, HoldState::Rejected);
    EXPECT_EQ(table.reserve(ask("m", 2, 2), at(3)).state, HoldState::Accepted);
}

TEST_F(HoldTableTest, ShrinkingLosesTheNewestHoldsAndNoMachine) {
    ASSERT_TRUE(table.place({"machine", 1, cpu(1)}, at(0)));
    table.reserve(ask("old", 1), at(1));
    table.reserve(ask("new", 2), at(2));
    EXPECT_EQ(table.resize(cpu(2), at(3)), std::vector<std::string>{"new"});
    EXPECT_EQ(table.used(), cpu(1));
    EXPECT_EQ(table.held(), cpu(1));
    table.reserve(ask("more", 1), at(4));
    table.resize(cpu(4), at(5));
    EXPECT_EQ(table.answer("more", at(5))->reason, HoldReason::Retry);
}

TEST_F(HoldTableTest, AHoldWithoutAMachineLastsForItsDuration) {
    HoldAsk forever = ask("hold-a", 1);
    HoldAsk hour = ask("hold-b", 1);
    hour.duration = seconds(3600);
    EXPECT_FALSE(table.reserve(forever, at(0)).lease);
    EXPECT_EQ(table.reserve(hour, at(0)).lease, seconds(3600));
    ASSERT_TRUE(table.renew("hold-b", at(1000)));
    EXPECT_EQ(table.answer("hold-b", at(1000))->lease, seconds(2600));
    table.pass_time(at(4000));
    EXPECT_EQ(state("hold-a", 4000), HoldState::Accepted);
    EXPECT_EQ(state("hold-b", 3600), HoldState::Lost);
}

// Any order of calls, repeated or late: never more than there is, counted anew from the rows.
TEST_F(HoldTableTest, AMachineGrowsOnlyWhereThereIsRoom) {
    ASSERT_TRUE(table.place({"m", 1, {{"cpu", Quantity::from_value(1)}}}, at(0)));
    const auto all = table.capacity().at("cpu").value();
    EXPECT_TRUE(table.change("m", cpu(all), at(1)));
    EXPECT_FALSE(table.change("m", cpu(all + 1), at(2)));
    EXPECT_EQ(table.used(), cpu(all));
    EXPECT_TRUE(table.change("m", cpu(1), at(3)));
    EXPECT_EQ(table.used(), cpu(1));
    EXPECT_FALSE(table.change("nobody", cpu(1), at(4)));
}

TEST(BestEffort, CountsMachinesOfAClassAndSaysWhatItIs) {
    const base::Instant now{};
    model::IriClassStatus small{"small", {}, 2};
    BestEffort ledger({small, {"uncounted", {}, 0}}, now);
    const auto of_class = [](const std::string& lineage, const std::string& name) {
        HoldAsk out;
        out.lineage = lineage;
        out.machine_class = name;
        return out;
    };
    EXPECT_EQ(ledger.hold(of_class("a", "small"), false, now).reason, HoldReason::BestEffort);
    EXPECT_EQ(ledger.hold(of_class("a", "small"), true, now).committed, true);
    ledger.place("b", 1, "small", now);
    EXPECT_EQ(ledger.hold(of_class("c", "small"), false, now).state, HoldState::Rejected);
    ledger.remove("b", now);
    EXPECT_EQ(ledger.hold(of_class("d", "small"), false, now).state, HoldState::Accepted);
    for (const char* lineage : {"e", "f", "g"})
        EXPECT_EQ(ledger.hold(of_class(lineage, "uncounted"), false, now).state, HoldState::Accepted);
}

TEST(HoldTableProperty, NeverMoreThanThereIs) {
    const uint64_t seed = base::seed_from_system();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    for (int history = 0; history < 200; ++history) {
        int64_t capacity = random.between(0, 8);
        HoldTable table(cpu(capacity), {});
        Instant now;
        std::map<std::string, HoldState> furthest;
        for (int step = 0; step < 120; ++step) {
            now = now + seconds(random.between(0, 25));
            // What is no longer remembered may be asked anew.
            table.pass_time(now);
            std::erase_if(furthest, [&](const auto& each) { return !table.holds().contains(each.first.substr(0, 1)); });
            const std::string lineage(1, static_cast<char>('a' + random.below(6)));
            const auto attempt = static_cast<uint64_t>(random.between(1, 3));
            const int64_t amount = random.between(1, 5);
            switch (random.below(8)) {
                case 0:
                case 1: {
                    const auto said = table.reserve(ask(lineage, amount, attempt), now);
                    if (said.reason == HoldReason::Fenced) break;
                    auto& known = furthest[lineage + std::to_string(attempt)];
                    EXPECT_FALSE(known == HoldState::Rejected && said.state == HoldState::Accepted);
                    known = said.state;
                    break;
                }
                case 2:
                    (void)table.renew(lineage, now);
                    break;
                case 3:
                    (void)table.confirm(lineage, attempt, now);
                    break;
                case 4:
                    table.release(lineage, now);
                    break;
                case 5:
                    (void)table.place({lineage, attempt, cpu(amount)}, now);
                    break;
                case 6:
                    table.remove(lineage, now);
                    break;
                default:
                    capacity = std::max(capacity, random.between(0, 8));
                    table.resize(cpu(capacity), now);
            }
            table.pass_time(now);
            Quantity sum;
            for (const auto& [name, hold] : table.holds()) {
                if (hold.state == HoldState::Accepted) sum += hold.ask.resources.at("cpu");
                EXPECT_FALSE(hold.state == HoldState::Accepted && table.machines().contains(name));
                EXPECT_FALSE(hold.state == HoldState::Accepted && hold.until && *hold.until <= now);
            }
            for (const auto& [name, machine] : table.machines()) sum += machine.amounts.at("cpu");
            ASSERT_LE(sum, Quantity::from_value(capacity));
        }
    }
}

}  // namespace
}  // namespace berth::fleet
