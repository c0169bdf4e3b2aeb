#include "cli/dump.h"

#include <gtest/gtest.h>

#include "run/world.h"

namespace berth::cli {
namespace {

std::vector<std::string> kinds(std::string_view text) {
    std::vector<std::string> out;
    const auto objects = read_objects(text);
    if (!objects) return {objects.error().message};
    for (const auto& object : *objects) {
        out.push_back(std::string(base::find_string(object, {"kind"})) + " " +
                      std::string(base::find_string(object, {"metadata", "name"})));
    }
    return out;
}

using Lines = std::vector<std::string>;

TEST(Dump, TakesListsDocumentsAndArraysApart) {
    EXPECT_EQ(kinds("---\n# nothing\n---\nkind: Pod\nmetadata: {name: a}\n---\nkind: Node\nmetadata: {name: b}\n"),
              (Lines{"Pod a", "Node b"}));
    EXPECT_EQ(kinds(R"({"kind":"List","items":[{"kind":"Pod","metadata":{"name":"a"}}]})"), Lines{"Pod a"});
    EXPECT_EQ(kinds(R"([{"kind":"Pod","metadata":{"name":"a"}}, null])"), Lines{"Pod a"});
    EXPECT_EQ(kinds("{\"kind\":\"Pod\"}\n {\"kind\":\"Node\"}\n"), (Lines{"Pod ", "Node "})) << "JSON after JSON";
    EXPECT_EQ(kinds("{kind: Pod}\n---\n{kind: Node}\n"), (Lines{"Pod ", "Node "})) << "YAML that begins like JSON";
    EXPECT_EQ(kinds("{\"kind\": \"Pod\""), Lines{"invalid JSON: incomplete JSON at byte 14"});
    EXPECT_EQ(kinds(""), Lines());
}

TEST(Dump, AnItemOfATypedListNeedsNoKind) {
    EXPECT_EQ(kinds("kind: PodList\napiVersion: v1\nitems: [{metadata: {name: a}}, {kind: Node, metadata: {name: b}}]"),
              (Lines{"Pod a", "Node b"}));
    EXPECT_EQ(kinds("kind: List\nitems: [{metadata: {name: a}}]"), Lines{" a"});
}

TEST(Dump, SaysWhatIsNoObject) {
    EXPECT_EQ(kinds("just text"), Lines{"\"just text\" is not an object"});
    EXPECT_EQ(read_object_file("/").error().message, "cannot read /: it is a folder");
}

Result<bool> put(std::string_view text) {
    run::World world(base::Time{});
    return world.put(read_objects(text)->front());
}

TEST(Dump, KindsAreToldApartByTheirGroup) {
    EXPECT_TRUE(*put("{apiVersion: scheduling.koordinator.sh/v1alpha1, kind: Reservation, metadata: {name: r}}"));
    EXPECT_FALSE(*put("{apiVersion: core.ironcore.dev/v1alpha1, kind: Reservation, metadata: {name: r}}"));
    EXPECT_FALSE(*put("{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: r}}"));
    EXPECT_TRUE(*put("{apiVersion: v1, kind: Service, metadata: {name: r}}"));
    EXPECT_TRUE(*put("{kind: StorageClass, metadata: {name: r}}")) << "without a group it is believed";
}

TEST(Dump, WhatHasNoNameIsTold) {
    EXPECT_EQ(put("kind: Node").error().message, "Node: metadata.name is missing");
    run::World world(base::Time{});
    EXPECT_TRUE(*world.put(read_objects("{kind: Pod, metadata: {generateName: p-}}")->front()));
    const auto outcomes = world.settle();
    ASSERT_EQ(outcomes.size(), 1u);
    EXPECT_EQ(outcomes[0].error, "Pod: metadata.name is missing");
}

}  // namespace
}  // namespace berth::cli
