#include "model/kinds/kinds.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

TEST(Types, MembersOfAContainer) {
    const Type* container = types()->find("core.v1.Container");
    ASSERT_NE(container, nullptr);
    const Field* ports = container->find("ports");
    ASSERT_NE(ports, nullptr);
    EXPECT_EQ(ports->number, 6);
    EXPECT_EQ(ports->merge_key, "containerPort");
    EXPECT_EQ(ports->list, ListType::Map);
    EXPECT_EQ(ports->map_keys, (std::vector<std::string>{"containerPort", "protocol"}));
    EXPECT_EQ(container->by_number(6), ports);
    EXPECT_EQ(container->find("nothing"), nullptr);
}

TEST(Types, InlinedMembersStandInTheParent) {
    const Type* volume = types()->find("core.v1.Volume");
    ASSERT_NE(volume->find("emptyDir"), nullptr);
    EXPECT_EQ(volume->find("volumeSource"), nullptr);
    ASSERT_NE(volume->by_number(2), nullptr);
    EXPECT_TRUE(volume->by_number(2)->inlined);
}

TEST(Kinds, AreFoundByUrlAndByName) {
    const Kind* pods = kinds().find("", "v1", "pods");
    ASSERT_NE(pods, nullptr);
    EXPECT_EQ(pods->kind, "Pod");
    EXPECT_EQ(pods->list_kind, "PodList");
    EXPECT_EQ(pods->api_version(), "v1");
    EXPECT_TRUE(pods->has_status());
    EXPECT_EQ(pods->columns[0].format, "name");
    EXPECT_EQ(kinds().of("v1", "Pod"), pods);
    const Kind* reservation = kinds().of("scheduling.koordinator.sh/v1alpha1", "Reservation");
    ASSERT_NE(reservation, nullptr);
    EXPECT_FALSE(reservation->namespaced);
    EXPECT_EQ(kinds().of("apps/v1beta1", "Deployment"), nullptr);
}

TEST(Kinds, ACopyCanGrowAndShrink) {
    Kinds mine = kinds();
    Kind widget;
    widget.group = "example.com";
    widget.version = "v1";
    widget.kind = "Widget";
    widget.plural = "widgets";
    mine.add(widget);
    EXPECT_NE(mine.find("example.com", "v1", "widgets"), nullptr);
    EXPECT_EQ(kinds().find("example.com", "v1", "widgets"), nullptr);
    mine.remove("example.com", "v1", "widgets");
    EXPECT_EQ(mine.find("example.com", "v1", "widgets"), nullptr);
}

TEST(Kinds, FieldSelectorsReadTheObject) {
    const Kind& pods = *kinds().of("v1", "Pod");
    const Json pod{{"metadata", {{"name", "a"}}}, {"spec", {{"nodeName", "n1"}}}};
    EXPECT_EQ(selected_value(pod, *pods.selector_field("metadata.name")), "a");
    EXPECT_EQ(selected_value(pod, *pods.selector_field("spec.nodeName")), "n1");
    EXPECT_EQ(selected_value(pod, *pods.selector_field("spec.hostNetwork")), "false");
    EXPECT_EQ(pods.selector_field("spec.foo"), nullptr);
}

TEST(Types, EveryStructIsDescribed) {
    EXPECT_GT(types()->all().size(), 400U);
    for (const auto& type : types()->all()) {
        for (const auto& f : type->fields)
            EXPECT_EQ(f.type != nullptr, f.form == Form::Struct || f.form >= Form::SchemaOrBool);
    }
}

}  // namespace
}  // namespace berth::model
