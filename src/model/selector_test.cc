#include "model/selector.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/table_rows.h"
#include "model/field_selector.h"
#include "model/node_selector.h"
#include "model/taints.h"

namespace berth::model {
namespace {

Labels labels_from(const Json& object) {
    Labels labels;
    for (const auto& [key, value] : object.as_object()) labels.set(key, std::string_view(value.as_string()));
    return labels;
}

const std::vector<Labels>& label_sets() {
    static const auto sets = [] {
        std::vector<Labels> out;
        for (const auto& row : base::table_rows("selectors", "set"))
            out.push_back(labels_from(*base::parse_json(row[0])));
        return out;
    }();
    return sets;
}

template <class Matches>
std::string bits(Matches&& matches) {
    std::string out;
    for (size_t i = 0; i < label_sets().size(); ++i) out.push_back(matches(label_sets()[i], i) ? '1' : '0');
    return out;
}

std::vector<std::string> strings_at(const Json& object, std::string_view key) {
    std::vector<std::string> out;
    if (const auto* list = base::find(object, {key}); list && list->is_array()) {
        for (const auto& item : list->get_array()) out.emplace_back(std::string_view(item.as_string()));
    }
    return out;
}

template <class T>
std::vector<T> requirements_at(const Json& object, std::string_view key) {
    std::vector<T> out;
    if (const auto* list = base::find(object, {key})) {
        for (const auto& item : list->as_array()) {
            out.push_back({std::string(base::find_string(item, {"key"})),
                           std::string(base::find_string(item, {"operator"})), strings_at(item, "values")});
        }
    }
    return out;
}

TEST(Selector, AgreesWithApimachinery) {
    const auto rows = base::table_rows("selectors", "label");
    ASSERT_GE(rows.size(), 4000u);
    for (const auto& row : rows) {
        const auto ours = Selector::parse(row[0]);
        ASSERT_EQ(ours.ok(), row[1] != "!") << row[0];
        if (!ours) continue;
        EXPECT_EQ(ours->text(), row[1]) << row[0];
        EXPECT_EQ(bits([&](const Labels& labels, size_t) { return ours->matches(labels); }), row[2]) << row[0];
        EXPECT_EQ(*Selector::parse(ours->text()), *ours) << row[0];
    }
}

TEST(Selector, ObjectsAgreeWithApimachinery) {
    for (const auto& row : base::table_rows("selectors", "object")) {
        const Json json = *base::parse_json(row[0]);
        LabelSelector object;
        if (const auto* labels = base::find(json, {"matchLabels"})) object.match_labels = labels_from(*labels);
        object.match_expressions = requirements_at<LabelSelector::Expression>(json, "matchExpressions");
        const auto ours = to_selector(object);
        ASSERT_EQ(ours.ok(), row[1] != "!") << row[0];
        if (!ours) continue;
        EXPECT_EQ(ours->text(), row[1]) << row[0];
        EXPECT_EQ(bits([&](const Labels& labels, size_t) { return ours->matches(labels); }), row[2]) << row[0];
    }
}

TEST(Selector, FieldSelectorsAgreeWithApimachinery) {
    for (const auto& row : base::table_rows("selectors", "field")) {
        const auto ours = FieldSelector::parse(row[0]);
        ASSERT_EQ(ours.ok(), row[1] != "!") << row[0];
        if (!ours) continue;
        EXPECT_EQ(ours->text(), row[1]) << row[0];
        const auto matches = [&](const Labels& fields, size_t) {
            return ours->matches([&](std::string_view field) { return fields.get(field); });
        };
        EXPECT_EQ(bits(matches), row[2]) << row[0];
    }
}

TEST(Selector, NodeSelectorTermsAgreeWithComponentHelpers) {
    for (const auto& row : base::table_rows("selectors", "node")) {
        const Json json = *base::parse_json(row[0]);
        std::vector<NodeSelectorTerm> terms;
        if (json.is_array()) {
            for (const auto& term : json.get_array())
                terms.push_back({requirements_at<NodeSelectorRequirement>(term, "matchExpressions"),
                                 requirements_at<NodeSelectorRequirement>(term, "matchFields")});
        }
        const NodeSelector ours(terms);
        const auto matches = [&](const Labels& labels, size_t i) {
            return ours.matches(std::string("n") + static_cast<char>('0' + i), labels);
        };
        EXPECT_EQ(bits(matches), row[1]) << row[0];
        bool fault = false;
        for (const auto& term : ours.terms()) fault |= !term.fault().empty();
        EXPECT_EQ(fault ? "fault" : "understood", row[2]) << row[0];
    }
}

TEST(Selector, TolerationsAgreeWithKubernetes) {
    const auto rows = base::table_rows("selectors", "taint");
    ASSERT_GE(rows.size(), 1000u);
    for (const auto& row : rows) {
        const Taint taint{row[0], row[1], row[2]};
        const Toleration toleration{row[3], row[4], row[5], row[6], {}};
        EXPECT_EQ(tolerates(toleration, taint), row[7] == "1")
            << row[0] << " " << row[1] << " " << row[2] << " / " << row[3] << " " << row[4] << " " << row[5] << " "
            << row[6];
    }
}

// To apimachinery a text ends at NUL, so that "\0a=b" would select everything.
TEST(Selector, NulIsRefused) {
    EXPECT_FALSE(Selector::parse(std::string_view("\0a=b", 4)));
    EXPECT_FALSE(Selector::parse(std::string_view("a\0", 2)));
    EXPECT_FALSE(Selector::parse(std::string_view("a=b\0,c", 6)));
}

TEST(Selector, TheDoorLimitsItsSize) {
    std::string many = "a";
    for (int i = 1; i < 64; ++i) many += ",a";
    EXPECT_TRUE(Selector::parse(many, kDoorLimits));
    EXPECT_FALSE(Selector::parse(many + ",a", kDoorLimits));
    EXPECT_TRUE(Selector::parse(many + ",a"));
    std::string values = "a in (v0";
    for (int i = 1; i < 256; ++i) values += ",v" + std::to_string(i);
    EXPECT_TRUE(Selector::parse(values + ")", kDoorLimits));
    EXPECT_FALSE(Selector::parse(values + ",x)", kDoorLimits));
    LabelSelector object;
    for (int i = 0; i < 10000; ++i) object.match_expressions.push_back({"a", "Exists", {}});
    EXPECT_FALSE(to_selector(object, kDoorLimits));
    EXPECT_TRUE(to_selector(object));
    EXPECT_FALSE(FieldSelector::parse("a=" + std::string(64, ',') + "b=1,c=1", {1, 1}));
}

TEST(Selector, AbsentMatchesNothingEmptyEverything) {
    EXPECT_TRUE(to_selector(std::optional<LabelSelector>())->matches_nothing());
    EXPECT_FALSE(to_selector(std::optional<LabelSelector>())->matches({}));
    EXPECT_TRUE(to_selector(LabelSelector())->matches_everything());
}

TEST(Selector, ErrorsNameTheText) {
    EXPECT_EQ(Selector::parse("a in b").error().message, "selector: found 'b', expected '('");
    EXPECT_EQ(Selector::parse("a>b").error().message, "selector value \"b\" of \"a\" must be an integer");
}

}  // namespace
}  // namespace berth::model
