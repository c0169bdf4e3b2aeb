#include "model/node_reservation.h"

#include <gtest/gtest.h>

#include "base/json_view.h"
#include "control/reservations.h"
#include "model/node.h"

namespace berth::control {
namespace {

model::Node node(std::string_view annotation, std::string_view applied = "", std::string_view complaint = "") {
    model::Node out;
    out.meta.name = "n1";
    out.meta.uid = "u1";
    out.meta.revision = 7;
    out.capacity = out.allocatable = {{model::kCpu, 8000}, {model::kMemory, 16 << 20}};
    if (!annotation.empty()) out.meta.annotations.set(model::kNodeReservation, annotation);
    if (!applied.empty()) out.meta.annotations.set(model::kReservationApplied, applied);
    out.complaint = complaint;
    return out;
}

TEST(NodeReservation, TheLastValidValueStandsBesideIt) {
    const auto writes = reconcile_node_reservation(node(R"({"resources":{"cpu":"2"}})"));
    ASSERT_EQ(writes.annotations.size(), 1u);
    EXPECT_EQ(writes.annotations[0].target.revision, 7u);
    EXPECT_TRUE(writes.conditions.empty());
    EXPECT_TRUE(writes.events.empty());
    const auto again = reconcile_node_reservation(node(R"({"resources":{"cpu":"2"}})", writes.annotations[0].value));
    EXPECT_TRUE(again.annotations.empty()) << "a write that was carried out leads to no further one";
    const auto gone = reconcile_node_reservation(node("", writes.annotations[0].value));
    ASSERT_EQ(gone.annotations.size(), 1u);
    EXPECT_EQ(gone.annotations[0].value, "");
}

TEST(NodeReservation, WhatCannotBeUsedIsToldOnce) {
    const auto bad = reconcile_node_reservation(node(R"({"resources":{"cpu":"-2"}})"));
    ASSERT_EQ(bad.conditions.size(), 1u);
    EXPECT_EQ(bad.conditions[0].type, "BerthReservationInvalid");
    EXPECT_NE(bad.conditions[0].message.find("-2"), std::string::npos) << bad.conditions[0].message;
    ASSERT_EQ(bad.events.size(), 1u);
    EXPECT_TRUE(bad.events[0].warning);
    const std::string told = bad.conditions[0].message;
    const auto again = reconcile_node_reservation(node(R"({"resources":{"cpu":"-2"}})", "", told));
    EXPECT_TRUE(again.conditions.empty());
    EXPECT_TRUE(again.events.empty());
    const auto mended = reconcile_node_reservation(node(R"({"resources":{"cpu":"2"}})", "", told));
    ASSERT_EQ(mended.conditions.size(), 1u);
    EXPECT_EQ(mended.conditions[0].message, "");
    EXPECT_TRUE(mended.events.empty());
}

TEST(NodeReservation, TheConditionIsReadFromTheNode) {
    base::JsonParser parser;
    const std::string text =
        R"({"metadata":{"name":"n1"},"status":{"conditions":[{"type":"Ready","status":"True","message":"fine"},)"
        R"({"type":"BerthReservationInvalid","status":"True","message":"no"}]}})";
    EXPECT_EQ(model::read_node(*parser.parse(text))->complaint, "no");
}

}  // namespace
}  // namespace berth::control
