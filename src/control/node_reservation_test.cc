#include "model/node_reservation.h"

#include <gtest/gtest.h>

#include "base/json_view.h"
#include "control/reservations.h"
#include "model/node.h"
#include "model/times.h"

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

const base::Time kNow = *model::parse_time("2026-01-01T00:00:00Z");

std::string applied_by(const Write& write) {
    const Json* value = base::find(write.body, {"metadata", "annotations", model::kReservationApplied});
    return value && value->is_string() ? std::string(value->as_string()) : "";
}

TEST(NodeReservation, TheLastValidValueStandsBesideIt) {
    const auto write = reconcile_node_reservation(node(R"({"resources":{"cpu":"2"}})"), kNow);
    ASSERT_TRUE(write);
    EXPECT_EQ(write->uid, "u1");
    EXPECT_EQ(write->revision, 7u) << "of what was looked at, and of nothing later";
    EXPECT_FALSE(write->event);
    const auto again = reconcile_node_reservation(node(R"({"resources":{"cpu":"2"}})", applied_by(*write)), kNow);
    EXPECT_FALSE(again) << "a write that was carried out leads to no further one";
    const auto gone = reconcile_node_reservation(node("", applied_by(*write)), kNow);
    ASSERT_TRUE(gone);
    EXPECT_EQ(*base::find(gone->body, {"metadata", "annotations", model::kReservationApplied}), Json(nullptr));
}

TEST(NodeReservation, WhatCannotBeUsedIsToldOnce) {
    const auto complaint_in = [](const Write& write) {
        const Json& condition = base::find(write.body, {"status", "conditions"})->as_array().at(0);
        EXPECT_EQ(base::find_string(condition, {"type"}), "BerthReservationInvalid");
        return std::string(base::find_string(condition, {"message"}));
    };
    const auto bad = reconcile_node_reservation(node(R"({"resources":{"cpu":"-2"}})"), kNow);
    ASSERT_TRUE(bad);
    EXPECT_EQ(bad->revision, 7u);
    EXPECT_EQ(bad->verb, Write::Verb::StrategicPatch) << "the other conditions stay";
    const std::string told = complaint_in(*bad);
    EXPECT_NE(told.find("-2"), std::string::npos) << told;
    ASSERT_TRUE(bad->event);
    EXPECT_TRUE(bad->event->warning);
    EXPECT_FALSE(reconcile_node_reservation(node(R"({"resources":{"cpu":"-2"}})", "", told), kNow));
    const std::string good = R"({"resources":{"cpu":"2"}})";
    const auto first = reconcile_node_reservation(node(good, "", told), kNow);
    ASSERT_TRUE(first);
    const auto mended = reconcile_node_reservation(node(good, applied_by(*first), told), kNow);
    ASSERT_TRUE(mended) << "one write at a time";
    EXPECT_EQ(complaint_in(*mended), "");
    EXPECT_FALSE(mended->event);
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
