#include "base/json.h"

#include <gtest/gtest.h>

#include "base/json_view.h"

namespace berth::base {
namespace {

std::string round_trip(std::string_view text) {
    auto parsed = parse_json(text);
    return parsed ? to_text(*parsed) : "error: " + parsed.error().message;
}

TEST(Json, RoundTripKeepsOrderAndNumbers) {
    EXPECT_EQ(round_trip(R"({"z":1,"a":[true,null,-5,18446744073709551615],"s":"a\"\\\nü\u0001"})"),
              R"({"z":1,"a":[true,null,-5,18446744073709551615],"s":"a\"\\\nü\u0001"})");
    EXPECT_EQ(round_trip("[0.5,1.0,1e30,100000.0]"), "[0.5,1,1e+30,100000]");
}

// Every character at every place of texts up to three words long.
TEST(Json, WhatMustBeEscapedIs) {
    std::string nothing;
    append_quoted({}, nothing);
    EXPECT_EQ(nothing, R"("")");
    for (size_t size = 0; size <= 24; ++size) {
        for (size_t place = 0; place < size; ++place) {
            for (int c = 0; c < 256; ++c) {
                std::string text(size, 'x');
                text[place] = static_cast<char>(c);
                std::string quoted;
                append_quoted(text, quoted);
                const bool must = c < 0x20 || c == '"' || c == '\\';
                ASSERT_EQ(must, quoted != '"' + text + '"') << size << " " << place << " " << c;
                if (must) {
                    ASSERT_EQ(parse_json(quoted).value().as_string(), text);
                }
            }
        }
    }
}

TEST(Json, DoublesKeepTheirLastDigit) {
    EXPECT_EQ(round_trip("[123456789.12345679,500e30,0.3,1e22,5e-324,1e-999,-0.0]"),
              "[123456789.12345679,5e+32,0.3,1e+22,5e-324,0,0]");
    for (const auto* text : {"1e999", "-1e999", "1.8e308", "[1e99999]"}) EXPECT_FALSE(parse_json(text)) << text;
}

TEST(Json, RefusesWhatCouldBeReadInTwoWays) {
    for (const auto* text : {R"({"a":1,"a":2})", R"({"x":{"uid":"1","uid":"2"}})", "[1] 2", "{", "", "NaN", "[1,]",
                             "\"\xff\"", "\"\\ud800\"", "{\"a\":\"\xc0\xaf\"}", "{'a':1}"}) {
        EXPECT_FALSE(parse_json(text)) << text;
    }
    EXPECT_EQ(round_trip(R"({"a":{"b":1},"c":{"b":1}})"), R"({"a":{"b":1},"c":{"b":1}})");
}

TEST(Json, DepthIsLimited) {
    const auto nested = [](size_t n) { return std::string(n, '[') + std::string(n, ']'); };
    EXPECT_TRUE(parse_json(nested(128)));
    EXPECT_FALSE(parse_json(nested(129)));
    EXPECT_FALSE(parse_json(std::string(100000, '[')));
    JsonParser parser;
    EXPECT_TRUE(parser.parse(nested(128)));
    EXPECT_FALSE(parser.parse(nested(130)));
    EXPECT_FALSE(parser.parse(nested(200)));
    EXPECT_FALSE(parser.parse("\"\xff\""));
}

TEST(Json, WhatTheDoorAcceptsCanBeDecoded) {
    JsonParser parser;
    for (const auto* text :
         {"100000000000000000000", "-9223372036854775809", "1e20", "-9.5e18", "18446744073709551616"}) {
        const auto value = parse_json(text);
        ASSERT_TRUE(value);
        EXPECT_TRUE(parser.parse(to_text(*value))) << to_text(*value);
        const auto view = parser.parse(text);
        ASSERT_TRUE(view) << text;
        EXPECT_EQ(double(*view), value->as_double());
    }
}

TEST(Json, Paths) {
    Json value = *parse_json(R"({"metadata":{"name":"x","labels":{"a":"b"}}})");
    EXPECT_EQ(find_string(value, {"metadata", "labels", "a"}), "b");
    EXPECT_EQ(find_string(value, {"metadata", "labels", "a", "c"}), "");
    object_at(value, {"spec", "deep"})["k"] = 1;
    EXPECT_EQ(to_text(*find(value, {"spec"})), R"({"deep":{"k":1}})");
}

TEST(JsonView, NothingIsNoJson) {
    JsonParser parser;
    EXPECT_FALSE(parser.parse(std::string_view()));
    EXPECT_FALSE(parser.parse(" "));
}

}  // namespace
}  // namespace berth::base
