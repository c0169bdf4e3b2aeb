#include "model/names.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

using Check = Fault (*)(std::string_view);

struct Case {
    const char* what;
    Check check;
    std::vector<std::string> allowed;
    std::vector<std::string> refused;
};

TEST(Names, AllowedAndRefused) {
    const std::string a63(63, 'a');
    const std::string a64(64, 'a');
    const std::string long_path = a63 + "." + a63 + "." + a63 + "." + std::string(61, 'a');
    const Case cases[] = {
        {"label",
         dns1123_label_fault,
         {"a", "0", "a-b", "1-1", a63},
         {"", "-a", "a-", "A", "a_b", "a.b", a64, "a\n", "é"}},
        {"subdomain",
         dns1123_subdomain_fault,
         {"a", "a.b", "1.2", a64, long_path},
         {"", ".", "a.", ".a", "a..b", "a.-b", "A.b", long_path + "a"}},
        {"service", dns1035_label_fault, {"a", "a1", a63}, {"", "1a", "a-", a64, "a.b"}},
        {"qualified",
         qualified_name_fault,
         {"a", "A_b.c-d", "x.y/z", "1", a63, long_path + "/a"},
         {"", "/a", "a/", "a/b/c", "A/b", "-a", "a-", "_a", a64, "a b"}},
        {"value", label_value_fault, {"", "a", "A_b.c", "1", a63}, {"-", "a-", a64, "a b", "a/b"}},
        {"annotation", annotation_key_fault, {"a", "A/B", "Example.com/x"}, {"", "a/b/c", "_a"}},
        {"path", path_segment_fault, {"a", "system:x", "A b"}, {".", "..", "a/b", "a%2f"}},
        {"port",
         port_name_fault,
         {"http", "a1", "1a", "a-b"},
         {"", "1", "a--b", "-a", "a-", "HTTP", std::string(16, 'a')}},
    };
    for (const auto& [what, check, allowed, refused] : cases) {
        for (const auto& text : allowed) EXPECT_FALSE(check(text)) << what << " " << text << ": " << *check(text);
        for (const auto& text : refused) EXPECT_TRUE(check(text)) << what << " " << text;
    }
}

TEST(Labels, SortedAndUnique) {
    Labels labels{{"b", "1"}, {"a", "2"}, {"b", "3"}, {"c", "4"}, {"a", "5"}};
    EXPECT_EQ(labels.text(), "a=5,b=3,c=4");
    EXPECT_EQ(labels.get("b"), "3");
    EXPECT_EQ(labels.get("x"), "");
    EXPECT_TRUE(labels.erase("b"));
    EXPECT_FALSE(labels.erase("b"));
    labels.set("a", "9");
    labels.set("aa", "8");
    EXPECT_EQ(labels.text(), "a=9,aa=8,c=4");
    EXPECT_EQ(labels, (Labels{{"c", "4"}, {"aa", "8"}, {"a", "9"}}));
}

}  // namespace
}  // namespace berth::model
