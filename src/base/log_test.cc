#include "base/log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "base/json.h"

namespace berth::base {
namespace {

class Log : public testing::Test {
protected:
    void use(LogLevel level, LogFormat format) {
        set_log({level, format, [this](std::string_view line) { lines_ += line; }, &clock_});
    }
    void TearDown() override { set_log({}); }

    ManualClock clock_{Time{1'794'780'001'000'002'999}};
    std::string lines_;
};

TEST_F(Log, TextLooksLikeKlog) {
    use(LogLevel::Info, LogFormat::Text);
    log_debug("not shown");
    const int line = __LINE__ + 1;
    log_info("Bound pod", {{"pod", "default/web-1"}, {"attempt", 3}, {"cached", true}});
    log_error("Cannot write", {{"error", bad_request("x \"y\"\nz")}});
    const auto head = [&](char letter, int at) {
        return fmt::format("{}1115 22:00:01.000002 {:7} log_test.cc:{}] ", letter, ::getpid(), at);
    };
    EXPECT_EQ(lines_, head('I', line) + "\"Bound pod\" pod=\"default/web-1\" attempt=3 cached=true\n" +
                          head('E', line + 1) + "\"Cannot write\" error=\"x \\\"y\\\"\\nz\"\n");
}

TEST_F(Log, JsonLinesParse) {
    use(LogLevel::Warning, LogFormat::JsonLines);
    log_info("not shown");
    log_warning("Odd \xff text\n", {{"pod", std::string("a\"b")}, {"count", uint64_t{7}}, {"ok", false}});
    const auto line = parse_json(lines_);
    ASSERT_TRUE(line) << lines_;
    EXPECT_EQ(find_string(*line, {"level"}), "warning");
    EXPECT_EQ(find_string(*line, {"msg"}), "Odd ? text\n");
    EXPECT_EQ(find_string(*line, {"pod"}), "a\"b");
    EXPECT_EQ(line->at("count").as_int64(), 7);
    EXPECT_FALSE(line->at("ok").as_bool());
    EXPECT_NE(lines_.find("\"ts\":1794780001.000002,"), std::string::npos);
}

TEST_F(Log, LinesOfThreadsStayWhole) {
    use(LogLevel::Info, LogFormat::JsonLines);
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([t] {
                for (int i = 0; i < 200; ++i) log_info("line", {{"thread", t}, {"i", i}});
            });
        }
    }
    size_t count = 0;
    for (size_t start = 0; start < lines_.size(); ++count) {
        const size_t end = lines_.find('\n', start);
        ASSERT_TRUE(parse_json(std::string_view(lines_).substr(start, end - start)));
        start = end + 1;
    }
    EXPECT_EQ(count, 800u);
}

TEST_F(Log, NamesOfLevels) {
    EXPECT_EQ(*parse_log_level("warning"), LogLevel::Warning);
    EXPECT_FALSE(parse_log_level("loud"));
    EXPECT_EQ(*parse_log_format("json"), LogFormat::JsonLines);
    EXPECT_FALSE(parse_log_format("xml"));
    use(LogLevel::Off, LogFormat::Text);
    log_error("not shown");
    EXPECT_EQ(lines_, "");
}

}  // namespace
}  // namespace berth::base
