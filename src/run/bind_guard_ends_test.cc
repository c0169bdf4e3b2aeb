// The judge of the embedded server looks at the clock with every write: nobody is bound to what has ended, and what has
// ended takes no place.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "model/preemption_hold.h"
#include "model/times.h"
#include "run/guarded_store.h"

namespace berth::run {
namespace {

constexpr const char* kMinute = R"("allocateOnce":false,"ttl":"1m")";
constexpr const char* kHour = R"("allocateOnce":false,"ttl":"1h")";
constexpr const char* kPast = R"("allocateOnce":false,"expires":"2020-01-01T00:00:00Z")";

// Before the guard that reads it.
struct ManualTime {
    base::ManualClock clock_{base::Time{1'800'000'000'000'000'000}};
};

class BindGuardEndsTest : protected ManualTime, public GuardedStoreTest {
protected:
    BindGuardEndsTest() : GuardedStoreTest(R"({"cpu":"4","pods":"10"})", clock_) {
        EXPECT_TRUE(put(store::Op::Create, {"pods", "default", "web"}, pod("")));
    }

    static std::string pod(const std::string& node) {
        return fmt::format(
            R"({{"metadata":{{"name":"web","namespace":"default","uid":"web","labels":{{"app":"web"}},"annotations":)"
            R"({{"scheduling.koordinator.sh/reservation-allocated":"{{\"name\":\"r\",\"uid\":\"r\"}}"}}}},)"
            R"("spec":{{"nodeName":"{}","containers":[{{"name":"a","resources":{{"requests":{{"cpu":"1"}}}}}}]}}}})",
            node);
    }
    Status bind() { return put(store::Op::Update, {"pods", "default", "web"}, pod("n1")); }
    Status reserve(store::Op op, const std::string& phase, const std::string& life, int port = 0) {
        return put(
            op, {"scheduling.koordinator.sh/reservations", "", "r"},
            fmt::format(
                R"({{"metadata":{{"name":"r","uid":"r","creationTimestamp":"{0}"}},"spec":{{{1},)"
                R"("owners":[{{"labelSelector":{{"matchLabels":{{"app":"web"}}}}}}],"template":{{"spec":{{"containers":[)"
                R"({{"name":"a","ports":[{{"containerPort":80,"hostPort":{3}}}],"resources":{{"requests":{{"cpu":"2"}}}}}}]}}}}}},)"
                R"("status":{{"phase":"{2}","nodeName":"{4}","allocatable":{{"cpu":"2"}}}}}})",
                model::time_text(created_), life, phase, port, phase == "Pending" ? "" : "n1"));
    }

    const base::Time created_ = clock_.wall();
};

TEST_F(BindGuardEndsTest, NobodyIsBoundToWhatHasEnded) {
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", kMinute));
    ASSERT_TRUE(reserve(store::Op::Update, "Available", kMinute));
    clock_.advance(std::chrono::minutes(1));
    const auto refused = bind();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "reservation \"r\" on node \"n1\" is not there for pod \"default/web\"");
    ASSERT_TRUE(reserve(store::Op::Update, "Available", kHour));
    EXPECT_TRUE(bind()) << "it lives longer now";
}

TEST_F(BindGuardEndsTest, AJumpOfTheWallClockRefusesNobody) {
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", kMinute));
    ASSERT_TRUE(reserve(store::Op::Update, "Available", kMinute));
    clock_.jump_wall(std::chrono::hours(24));
    EXPECT_TRUE(bind());
}

TEST_F(BindGuardEndsTest, WhatHasEndedTakesNoPlace) {
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", kPast));
    for (const auto* phase : {"Available", "Waiting"}) {
        const auto refused = reserve(store::Op::Update, phase, kPast);
        ASSERT_FALSE(refused) << phase;
        EXPECT_EQ(refused.error().message, "the time of reservation \"r\" is over");
    }
    EXPECT_TRUE(reserve(store::Op::Update, "Failed", kPast));
}

// After a restart it is as old as the wall clock says.
TEST_F(BindGuardEndsTest, AfterARestartItKnowsWhatHasEnded) {
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", kMinute));
    ASSERT_TRUE(reserve(store::Op::Update, "Available", kMinute));
    clock_.jump_wall(std::chrono::hours(24));
    BindGuard fresh(*store_, BindRules(), clock_);
    store_->set_guard(&fresh);
    EXPECT_FALSE(bind());
    store_->set_guard(&guard_);
}

// A room waits for the pod that has its port; any other reservation does not.
TEST_F(BindGuardEndsTest, ARoomMayWaitForAPortThatAPodHas) {
    std::string holder = pod("n1");
    holder.replace(holder.find(R"("name":"a")"), 10, R"("name":"a","ports":[{"containerPort":80,"hostPort":8080}])");
    const size_t notes = holder.find("\"annotations\"");
    holder.replace(notes, holder.find("},\"spec\"") - notes, R"("annotations":{})");
    ASSERT_TRUE(put(store::Op::Update, {"pods", "default", "web"}, holder));
    const std::string plain = R"("ttl":"1h","allocateOnce":true)";
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", plain, 8080));
    EXPECT_FALSE(reserve(store::Op::Update, "Available", plain, 8080));
    EXPECT_FALSE(reserve(store::Op::Update, "Waiting", plain, 8080));
    model::Pod preemptor;
    preemptor.meta.ns = "default";
    preemptor.meta.name = preemptor.meta.uid = "urgent";
    auto spec = std::make_shared<model::PodSpec>();
    spec->ports.push_back({8080, model::Protocol::TCP, "0.0.0.0"});
    preemptor.spec = spec;
    const auto room = [&](store::Op op, const char* phase) {
        Json made = model::preemption_hold_for(preemptor, "n1");
        made.as_object()["metadata"].as_object()["uid"] = "room";
        made.as_object()["status"] = JsonObject{{"phase", phase}, {"nodeName", "n1"}};
        return put(op, {"scheduling.koordinator.sh/reservations", "", "room"}, base::to_text(made));
    };
    ASSERT_TRUE(room(store::Op::Create, "Pending"));
    EXPECT_FALSE(room(store::Op::Update, "Available"));
    EXPECT_TRUE(room(store::Op::Update, "Waiting"));
}

}  // namespace
}  // namespace berth::run
