#include "link/spans.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace berth::link {
namespace {

using Members = std::vector<Member>;
using Elements = std::vector<std::string_view>;

TEST(Spans, CutAnObjectAtItsMembers) {
    EXPECT_EQ(members(R"( {"a" : 1 ,"b":"x,\"}","c":{"d":[1,{"e":"]"}]},"f":null} )"),
              Members({{"a", "1"}, {"b", R"("x,\"}")"}, {"c", R"({"d":[1,{"e":"]"}]})"}, {"f", "null"}}));
    EXPECT_EQ(members("{}"), Members());
    EXPECT_EQ(elements("[ 1 , [2,3],\"a\\\\\", {} ]"), Elements({"1", "[2,3]", "\"a\\\\\"", "{}"}));
    EXPECT_EQ(elements("[]"), Elements());
}

TEST(Spans, WhatStandsFirstIsFoundWithoutTheRest) {
    const auto from = from_member(R"({"a":{"m":0},"m": {"b":"x\\\"y","c":[3],"d":{"broken)", "m");
    EXPECT_EQ(from, R"({"b":"x\\\"y","c":[3],"d":{"broken)");
    Members found;
    take_members(*from, [&](std::string_view key, std::string_view value) {
        found.emplace_back(key, value);
        return true;
    });
    EXPECT_EQ(found, Members({{"b", R"("x\\\"y")"}, {"c", "[3]"}}));
    take_members(*from, [&](std::string_view key, std::string_view) {
        EXPECT_EQ(key, "b");
        return false;
    });
    EXPECT_EQ(from_member(R"({"a":{"m":1}})", "m"), std::nullopt);
    EXPECT_EQ(from_member(R"({"a":[1)", "m"), std::nullopt);
    EXPECT_EQ(from_member("[]", "m"), std::nullopt);
}

TEST(Spans, WhatIsBrokenOffIsNothing) {
    const std::string whole = R"({"a":{"b":["c",1,true]},"d":"e\""})";
    EXPECT_TRUE(members(whole));
    for (size_t cut = 0; cut < whole.size(); ++cut) EXPECT_FALSE(members(whole.substr(0, cut))) << cut;
    for (const auto* odd : {"", "[]", "1", "{a:1}", "{\"a\"}", "{\"a\" 1}", "{,}"}) EXPECT_FALSE(members(odd)) << odd;
    for (const auto* odd : {"", "{}", "[1", "[1,", "[\"]"}) EXPECT_FALSE(elements(odd)) << odd;
}

TEST(Spans, AnyBytesAreSafe) {
    constexpr uint64_t kSeed = 4711;
    base::Random random(kSeed);
    constexpr std::string_view kBytes = "{}[]\",:\\ a1\n";
    for (int i = 0; i < 20'000; ++i) {
        std::string text(random.below(40), ' ');
        for (char& c : text) c = kBytes[random.below(kBytes.size())];
        const auto found = members(text);
        if (!found) continue;
        for (const auto& [key, value] : *found) {
            EXPECT_GE(value.data(), text.data()) << "seed " << kSeed << ": " << text;
            EXPECT_LE(value.data() + value.size(), text.data() + text.size()) << "seed " << kSeed << ": " << text;
        }
    }
}

}  // namespace
}  // namespace berth::link
