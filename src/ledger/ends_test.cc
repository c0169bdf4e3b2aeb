#include "ledger/ends.h"

#include <gtest/gtest.h>

namespace berth::ledger {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using Indices = std::vector<ReservationIndex>;

class EndsTest : public testing::Test {
protected:
    EndsTest() { clock_.advance(hours(1)); }
    model::Reservation made(base::Duration ttl, base::Duration age = {}) const {
        model::Reservation out;
        out.meta.created = clock_.wall() + -age;
        out.ttl = ttl;
        return out;
    }
    Indices look() { return ends_.look(clock_.wall(), clock_.now()); }
    void later(base::Duration by) { clock_.advance(by); }

    base::ManualClock clock_{base::Time{1'800'000'000'000'000'000}};
    Ends ends_;
};

TEST_F(EndsTest, InTheOrderOfTheirEndsEachOnce) {
    EXPECT_FALSE(ends_.put(1, made(minutes(2))));
    EXPECT_FALSE(ends_.put(2, made(minutes(1))));
    EXPECT_FALSE(ends_.put(3, made(base::Duration::zero())));
    EXPECT_EQ(ends_.next(), std::nullopt) << "nobody has looked at the clock";
    EXPECT_EQ(look(), Indices{});
    EXPECT_EQ(ends_.next(), clock_.now() + minutes(1));
    later(hours(1));
    EXPECT_EQ(look(), (Indices{2, 1}));
    EXPECT_EQ(look(), Indices{});
    EXPECT_EQ(ends_.next(), std::nullopt);
}

TEST_F(EndsTest, WhatIsThereAtTheFirstLookIsAsOldAsTheWallClockSays) {
    ends_.put(1, made(hours(1), hours(2)));
    ends_.put(2, made(hours(1), minutes(59)));
    EXPECT_EQ(look(), Indices{1});
    later(minutes(1));
    EXPECT_EQ(look(), Indices{2});
}

// E.g. an object of a server whose clock did not jump with ours.
TEST_F(EndsTest, WhatComesLaterIsNoOlderThanTheTimeSinceTheLastLook) {
    look();
    later(seconds(1));
    ends_.put(1, made(hours(1), hours(24)));
    EXPECT_EQ(look(), Indices{});
    EXPECT_EQ(ends_.next(), clock_.now() + (hours(1) - seconds(1)));
}

TEST_F(EndsTest, AJumpOfTheWallClockEndsNothing) {
    ends_.put(1, made(hours(1)));
    look();
    clock_.jump_wall(hours(24));
    EXPECT_EQ(look(), Indices{});
    clock_.jump_wall(-hours(48));
    later(hours(1));
    EXPECT_EQ(look(), Indices{1});
}

TEST_F(EndsTest, OneThatExpiredBeforeItCameHasEndedAtOnce) {
    model::Reservation object = made(hours(1));
    object.expires = clock_.wall() + -seconds(1);
    EXPECT_TRUE(ends_.put(1, object));
    EXPECT_EQ(look(), Indices{1});
}

TEST_F(EndsTest, AnEditMovesTheEnd) {
    ends_.put(1, made(hours(1)));
    look();
    later(hours(2));
    EXPECT_EQ(look(), Indices{1});
    EXPECT_FALSE(ends_.put(1, made(hours(3), hours(2))));
    EXPECT_EQ(ends_.next(), clock_.now() + hours(1));
    EXPECT_TRUE(ends_.put(1, made(hours(2), hours(2))));
    EXPECT_EQ(ends_.next(), std::nullopt);
}

TEST_F(EndsTest, FinalOnesAndThoseThatAreGoneDoNotEnd) {
    model::Reservation object = made(hours(1));
    ends_.put(1, object);
    ends_.put(2, object);
    look();
    object.phase = model::ReservationPhase::Succeeded;
    EXPECT_FALSE(ends_.put(1, object));
    ends_.remove(2);
    later(hours(2));
    EXPECT_EQ(look(), Indices{});
    ends_.put(2, made(hours(1)));
    EXPECT_EQ(look(), Indices{}) << "another one under an old index is as young as it is";
}

}  // namespace
}  // namespace berth::ledger
