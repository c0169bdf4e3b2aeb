#include "model/times.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/table_rows.h"

namespace berth::model {
namespace {

TEST(Times, AgreeWithGo) {
    const auto rows = base::table_rows("times", "time");
    ASSERT_GE(rows.size(), 1000u);
    for (const auto& row : rows) {
        const auto ours = parse_time(row[0]);
        ASSERT_EQ(ours.ok(), row[1] != "!") << row[0];
        if (!ours) continue;
        EXPECT_EQ(std::to_string(ours->nanos), row[1]) << row[0];
        EXPECT_EQ(time_text(*ours), row[2]) << row[0];
        EXPECT_EQ(micro_time_text(*ours), row[3]) << row[0];
    }
}

TEST(Durations, AgreeWithGo) {
    const auto rows = base::table_rows("times", "duration");
    ASSERT_GE(rows.size(), 1500u);
    for (const auto& row : rows) {
        const auto ours = parse_duration(row[0]);
        ASSERT_EQ(ours.ok(), row[1] != "!") << row[0];
        if (!ours) continue;
        EXPECT_EQ(std::to_string(ours->count()), row[1]) << row[0];
        EXPECT_EQ(duration_text(*ours), row[2]) << row[0];
    }
}

// Go's time.Parse takes these; no API server writes them.
TEST(Times, LooseFormsAreRefused) {
    for (const auto* text : {"2026-01-01T1:02:03Z", "2026-01-01T01:02:03,5Z", "2026-01-01T01:02:03+24:00"})
        EXPECT_FALSE(parse_time(text)) << text;
}

TEST(Times, NeverStaysLaterThanEverything) {
    const auto never = *parse_time("9999-12-31T23:59:59Z");
    EXPECT_EQ(never.nanos, std::numeric_limits<int64_t>::max());
    EXPECT_EQ(never + base::Duration(1), never);
    EXPECT_GT(never - base::Time{-5}, base::Duration(0));
}

}  // namespace
}  // namespace berth::model
