#include "model/cron.h"

#include <gtest/gtest.h>

#include "model/times.h"

namespace berth::model {
namespace {

std::string next(std::string_view schedule, std::string_view after, std::string_view place = "UTC") {
    const auto parsed = CronSchedule::parse(schedule);
    const auto zone = base::TimeZone::find(place);
    EXPECT_TRUE(parsed.ok()) << schedule;
    EXPECT_TRUE(zone) << place;
    if (!parsed || !zone) return "";
    const auto found = parsed->next(*parse_time(after), *zone);
    return found ? time_text(*found) : "never";
}

TEST(Cron, FieldsSayWhichTimes) {
    EXPECT_EQ(next("*/15 * * * *", "2026-01-01T00:00:00Z"), "2026-01-01T00:15:00Z");
    EXPECT_EQ(next("*/15 * * * *", "2026-01-01T00:14:59Z"), "2026-01-01T00:15:00Z");
    EXPECT_EQ(next("5/20 3,4 * * *", "2026-01-01T03:45:00Z"), "2026-01-01T04:05:00Z");
    EXPECT_EQ(next("0 9 * * mon-FRI", "2026-01-02T09:00:00Z"), "2026-01-05T09:00:00Z") << "after a Friday, Monday";
    EXPECT_EQ(next("0 0 31 * *", "2026-01-31T00:00:00Z"), "2026-03-31T00:00:00Z");
    EXPECT_EQ(next("0 0 29 feb ?", "2026-01-01T00:00:00Z"), "2028-02-29T00:00:00Z");
    EXPECT_EQ(next("0 0 30 2 *", "2026-01-01T00:00:00Z"), "never");
}

TEST(Cron, ADayOfTheMonthAndOneOfTheWeekAreEachEnough) {
    EXPECT_EQ(next("0 0 13 * 5", "2026-01-01T00:00:00Z"), "2026-01-02T00:00:00Z") << "a Friday";
    EXPECT_EQ(next("0 0 13 * 5", "2026-01-09T00:00:00Z"), "2026-01-13T00:00:00Z") << "a Tuesday, the 13th";
}

TEST(Cron, WordsStandForFields) {
    EXPECT_EQ(next("@hourly", "2026-01-01T00:10:00Z"), "2026-01-01T01:00:00Z");
    EXPECT_EQ(next("@weekly", "2026-01-01T00:10:00Z"), "2026-01-04T00:00:00Z");
    EXPECT_EQ(next("@every 1h30m", "2026-01-01T00:10:00Z"), "2026-01-01T01:40:00Z");
}

// In Berlin 2026 clocks go from 2:00 to 3:00 on 29 March, and from 3:00 back to 2:00 on 25 October.
TEST(Cron, ClocksOfAPlace) {
    EXPECT_EQ(next("0 9 * * *", "2026-01-01T00:00:00Z", "Europe/Berlin"), "2026-01-01T08:00:00Z");
    EXPECT_EQ(next("0 9 * * *", "2026-07-01T00:00:00Z", "Europe/Berlin"), "2026-07-01T07:00:00Z");
    EXPECT_EQ(next("30 2 * * *", "2026-03-29T00:00:00Z", "Europe/Berlin"), "2026-03-30T00:30:00Z")
        << "no half past two";
    EXPECT_EQ(next("*/30 * * * *", "2026-10-25T00:30:00Z", "Europe/Berlin"), "2026-10-25T01:00:00Z")
        << "every half hour";
    EXPECT_EQ(next("0 0 * * *", "2026-01-01T12:00:00Z", "Asia/Kolkata"), "2026-01-01T18:30:00Z");
}

TEST(Cron, WhatIsNoScheduleOrPlace) {
    for (const auto* text :
         {"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7",
          "5-1 * * * *", "*/0 * * * *", "a * * * *", "1-2-3 * * * *", "@never", "@every x"}) {
        EXPECT_FALSE(CronSchedule::parse(text).ok()) << text;
    }
    for (const auto* name : {"", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "file:x", "Local"}) {
        EXPECT_FALSE(base::TimeZone::find(name)) << name;
    }
}

}  // namespace
}  // namespace berth::model
