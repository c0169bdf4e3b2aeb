#include "base/yaml.h"

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/random.h"
#include "base/table_rows.h"

namespace berth::base {
namespace {

std::string text_of(std::string_view yaml) {
    const auto parsed = parse_yaml(yaml);
    if (!parsed) return "error: " + parsed.error().message;
    std::string out;
    for (const auto& document : *parsed) out += to_text(document) + "\n";
    return out;
}

// Every scalar, key, merge and refusal as sigs.k8s.io/yaml has it. An empty document is null there and none here.
TEST(Yaml, AgreesWithKubernetes) {
    const auto rows = table_rows("yaml", "yaml");
    ASSERT_GE(rows.size(), 400u);
    for (const auto& row : rows) {
        const auto ours = parse_yaml(row[0]);
        EXPECT_EQ(ours.ok(), row[1] != "!") << row[0] << (ours ? "" : ours.error().message);
        if (!ours || row[1] == "!") continue;
        const Json first = ours->empty() ? Json(nullptr) : ours->front();
        EXPECT_EQ(first, *parse_json(row[1])) << row[0] << " gave " << to_text(first);
    }
}

TEST(Yaml, ManyDocuments) {
    EXPECT_EQ(text_of("a: 1\n---\n---\n# nothing\n---\n- b\n...\n---\nc: d\n"), "{\"a\":1}\n[\"b\"]\n{\"c\":\"d\"}\n");
    EXPECT_EQ(text_of("  {\"a\": \"\\ud83d\\ude00\"}"), "{\"a\":\"\xf0\x9f\x98\x80\"}\n");
    EXPECT_EQ(text_of("{a: b}"), "{\"a\":\"b\"}\n");
    EXPECT_EQ(text_of(""), "");
    // What go-yaml v2 refuses and YAML 1.2 allows.
    EXPECT_EQ(text_of("%YAML 1.2\n---\na: b\n"), "{\"a\":\"b\"}\n");
    EXPECT_EQ(text_of("a: \"\\/\"\n"), "{\"a\":\"/\"}\n");
}

TEST(Yaml, ErrorsNameTheLine) {
    EXPECT_EQ(text_of("a: 1\nb: 2\na: 3\n"), "error: invalid YAML: line 3: duplicate key \"a\"");
    EXPECT_EQ(text_of("1: a\n\"1\": b\n"), "error: invalid YAML: line 2: duplicate key \"1\"");
    EXPECT_EQ(text_of("{\"a\":1,\"a\":2}"), "error: invalid YAML: line 1: duplicate key \"a\"");
    EXPECT_EQ(text_of("x:\n  y: .nan\n"), "error: invalid YAML: line 2: \".nan\" is not a number that JSON can carry");
    EXPECT_EQ(text_of("a: b\nc: *d\n"), "error: invalid YAML: line 2: unknown anchor \"d\"");
    EXPECT_EQ(text_of("a:\n - b\n - &x [*x]\n"), "error: invalid YAML: line 3: an anchor contains itself");
    EXPECT_EQ(text_of("a: b\n\tc: d\n").substr(0, 29), "error: invalid YAML: line 2: ");
    EXPECT_EQ(text_of("a: b\nc: \xff\n").substr(0, 29), "error: invalid YAML: line 2: ");
}

// go-yaml v2 lets a merge that comes later win; the specification says the mapping's own key.
TEST(Yaml, OwnKeysWinOverMergedOnes) {
    EXPECT_EQ(text_of("x: &x {k: 1, l: 2}\nz:\n  k: 0\n  <<: *x\n"),
              "{\"x\":{\"k\":1,\"l\":2},\"z\":{\"k\":0,\"l\":2}}\n");
}

TEST(Yaml, AliasBombsAreRefused) {
    std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 10; ++i) {
        const std::string previous = "*a" + std::to_string(i - 1);
        bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + previous;
        for (int k = 1; k < 10; ++k) bomb += ", " + previous;
        bomb += "]\n";
    }
    EXPECT_NE(text_of(bomb).find("aliases expand to more than is accepted"), std::string::npos);
    EXPECT_TRUE(parse_yaml("a: &a [1, 2]\nb: [*a, *a]\n", {1024, 6}));
    EXPECT_FALSE(parse_yaml("a: &a [1, 2]\nb: [*a, *a]\n", {1024, 5}));
    std::string merges = "m0: &m0 {k: v}\n";
    for (int i = 1; i < 40; ++i) {
        const std::string previous = "*m" + std::to_string(i - 1);
        merges +=
            "m" + std::to_string(i) + ": &m" + std::to_string(i) + " {<<: [" + previous + ", " + previous + "]}\n";
    }
    EXPECT_FALSE(parse_yaml(merges));
}

TEST(Yaml, SizeAndDepthAreLimited) {
    EXPECT_FALSE(parse_yaml("a: bcd\n", {5, 10}));
    const auto nested = [](size_t n) { return std::string(n, '[') + "y" + std::string(n, ']'); };
    EXPECT_TRUE(parse_yaml(nested(127)));
    EXPECT_FALSE(parse_yaml(nested(129)));
    EXPECT_FALSE(parse_yaml(std::string(100000, '[')));
    std::string deep = "a0: &a0 [" + nested(60) + "]\n";
    deep += "a1: &a1 " + std::string(70, '[') + "*a0" + std::string(70, ']') + "\n";
    EXPECT_FALSE(parse_yaml(deep));
}

TEST(Yaml, IsWrittenAsKubectlWritesIt) {
    const Json pod = *parse_json(R"({"kind":"Pod","metadata":{"name":"web","labels":{}},"spec":{"containers":[
        {"name":"a","command":["sleep","1"]},{"name":"b"}],"priority":5,"nodeName":null,"paused":true}})");
    EXPECT_EQ(yaml_text(pod),
              "kind: Pod\nmetadata:\n  name: web\n  labels: {}\nspec:\n  containers:\n  - name: a\n    command:\n"
              "    - sleep\n    - \"1\"\n  - name: b\n  priority: 5\n  nodeName: null\n  paused: true\n");
    EXPECT_EQ(yaml_text(Json("no")), "\"no\"\n");
    EXPECT_EQ(yaml_text(JsonObject{}), "{}\n");
}

Json random_value(Random& random, int depth) {
    static const std::vector<std::string> kTexts{
        "",  "a",  "yes", "No", "0x1f", "1e3",  "a: b", "- a",  "#",         "a #b", "null", "~", "é",  "\n", "a\tb",
        "{", "*a", "&a",  "!",  "|",    "2026", "1:2",  "true", "a/b.c-d_e", " a ",  "\x01", "'", "\"", "@",  "="};
    const auto text = [&] { return kTexts[random.below(kTexts.size())]; };
    switch (random.below(depth > 0 ? 6 : 4)) {
        case 0:
            return Json(text());
        case 1:
            return Json(random.between(-1000, 1000));
        case 2:
            return random.chance(1, 2) ? Json(true) : Json(nullptr);
        case 3:
            return Json(0.5);
        case 4: {
            JsonArray out;
            for (uint64_t n = random.below(4); n > 0; --n) out.push_back(random_value(random, depth - 1));
            return out;
        }
        default: {
            JsonObject out;
            for (uint64_t n = random.below(4); n > 0; --n) out[text()] = random_value(random, depth - 1);
            return out;
        }
    }
}

TEST(Yaml, WhatWasWrittenIsReadBack) {
    for (uint64_t seed = 1; seed <= 3000; ++seed) {
        Random random(seed);
        const Json value(JsonObject{{"v", random_value(random, 4)}});
        const auto again = parse_yaml(yaml_text(value));
        ASSERT_TRUE(again) << "seed " << seed << ": " << again.error().message << "\n" << yaml_text(value);
        ASSERT_EQ(again->size(), 1u) << "seed " << seed;
        ASSERT_EQ(again->front(), value) << "seed " << seed << "\n" << yaml_text(value);
    }
}

TEST(Base64, RoundTrip) {
    std::string bytes;
    for (int i = 0; i < 300; ++i) {
        EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
        bytes.push_back(static_cast<char>(i * 7));
    }
    EXPECT_EQ(to_base64("any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw==");
    EXPECT_EQ(from_base64("YW5\n5\n"), "any");
    for (const auto* text : {"a", "ab", "abc", "====", "a===", "ab=c", "ab==cdef", "a b=", "YQ==YQ=="})
        EXPECT_FALSE(from_base64(text)) << text;
}

}  // namespace
}  // namespace berth::base
