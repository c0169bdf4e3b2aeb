#include "run/webhook_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run/scripted_server.h"
#include "sched/plugins/registry.h"

namespace berth::run {
namespace {

using namespace std::chrono_literals;

std::string pod(const std::string& name, const std::string& node = "") {
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid"}},"spec":{{"nodeName":"{1}",)"
        R"("containers":[{{"name":"a","resources":{{"requests":{{"cpu":"1"}}}}}}]}}}})",
        name, node);
}

std::string pod_of(const std::string& name, const std::string& cpu, uint64_t revision,
                   const std::string& scheduler = "default-scheduler") {
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid","resourceVersion":"{2}"}},"spec":{{)"
        R"("nodeName":"n1","schedulerName":"{3}","containers":[{{"name":"a","resources":{{"requests":{{"cpu":"{1}"}}}}}}]}}}})",
        name, cpu, revision, scheduler);
}

std::string pod_with_gpu(const std::string& name, const std::string& scheduler) {
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid"}},"spec":{{"schedulerName":"{1}",)"
        R"("containers":[{{"name":"a","resources":{{"requests":{{"example.com/gpu":"1"}}}}}}]}}}})",
        name, scheduler);
}

std::string pod_with_claim(const std::string& name, const std::string& node = "") {
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid"}},"spec":{{"nodeName":"{1}",)"
        R"("volumes":[{{"name":"v","persistentVolumeClaim":{{"claimName":"one"}}}}],"containers":[{{"name":"a"}}]}}}})",
        name, node);
}

// A node of 4.5 cpus of which a reservation holds 3 and a pod 0.5, and two pods of 1 that wait. It has no gpus.
class WebhookDriverTest : public testing::Test {
protected:
    WebhookDriverTest() {
        script_->has("nodes", R"({"metadata":{"name":"n1","uid":"n1-uid"},)"
                              R"("status":{"allocatable":{"cpu":"4500m","memory":"8Gi","pods":"10"}}})");
        script_->has("reservations",
                     R"({"metadata":{"name":"r","uid":"r-uid"},"spec":{"owners":[{"labelSelector":{"matchLabels":)"
                     R"({"app":"web"}}}],"template":{"spec":{"containers":[{"name":"a","resources":{"requests":)"
                     R"({"cpu":"3"}}}]}}},"status":{"phase":"Available","nodeName":"n1","allocatable":{"cpu":"3"}}})");
        script_->has("pods", pod("a"));
        script_->has("pods", pod("b"));
        script_->has("pods", pod_of("small", "500m", 1));
        script_->has("pods", pod_with_gpu("extended", "extended"));
        script_->has("pods", pod_with_gpu("plain", "default-scheduler"));
        script_->has("pods", pod_with_claim("first"));
        script_->has("pods", pod_with_claim("second"));
        script_->has("persistentvolumeclaims", R"({"metadata":{"name":"one","namespace":"default","uid":"one-uid"},)"
                                               R"("spec":{"accessModes":["ReadWriteOncePod"]}})");
        WebhookDriver::Doors doors{script_->server(), [] {}, [](base::Duration) { return ServingKeys{}; },
                                   [](const ServingKeys&) { return Status(); }, [] {}};
        sched::Profile ignoring;
        ignoring.filters = {sched::plugins::fit_filter({{*model::intern_resource("example.com/gpu")}, {}})};
        driver_ = std::make_unique<WebhookDriver>(
            std::move(doors),
            WebhookOptions{.host = "127.0.0.1", .port = 1, .rules = BindRules({{"extended", ignoring}})});
        later(1s);
        script_->take("PATCH", "/apis/admissionregistration.k8s.io/", {200, "{}", 0});
    }
    ~WebhookDriverTest() override { script_->answer_all({200, "{}", 0}); }

    void later(base::Duration by) {
        clock_.advance(by);
        driver_->turn(moment(clock_));
    }
    bool allowed(const std::string& name) {
        return asked(fmt::format(R"({{"metadata":{{"name":"{}"}},"target":{{"kind":"Node","name":"n1"}}}})", name));
    }
    bool resizes(const std::string& before, const std::string& after, const std::string& more = "") {
        return asked(fmt::format(R"({},"oldObject":{},"subResource":"resize"{})", after, before, more));
    }
    bool asked(const std::string& object) {
        std::optional<std::pair<int, std::string>> answered;
        driver_->ask(fmt::format(R"({{"request":{{"uid":"u","namespace":"default","object":{}}}}})", object),
                     [&](int code, std::string body) { answered.emplace(code, std::move(body)); });
        EXPECT_TRUE(turn_until(*driver_, clock_, [&] { return answered.has_value(); }));
        EXPECT_EQ(answered->first, 200);
        return answered->second.find(R"("allowed":true)") != std::string::npos;
    }

    std::shared_ptr<Script> script_ = std::make_shared<Script>();
    base::ManualClock clock_;
    std::unique_ptr<WebhookDriver> driver_;
};

TEST_F(WebhookDriverTest, RoomOfABindingThatWasNeverMadeIsGivenBackByAReadOfThePod) {
    EXPECT_TRUE(allowed("a"));
    EXPECT_FALSE(allowed("b")) << "its room was just given away";
    later(66s);
    script_->take("GET", "/api/v1/namespaces/default/pods/a", {500, "", 0});
    EXPECT_FALSE(allowed("b")) << "no answer says nothing";
    later(6s);
    script_->take("GET", "/api/v1/namespaces/default/pods/a", {200, pod("a"), 2});
    EXPECT_TRUE(allowed("b"));
    EXPECT_FALSE(allowed("a"));
}

TEST_F(WebhookDriverTest, RoomOfABindingThatWasMadeIsKept) {
    EXPECT_TRUE(allowed("a"));
    later(66s);
    script_->take("GET", "/api/v1/namespaces/default/pods/a", {200, pod("a", "n1"), 2});
    EXPECT_FALSE(allowed("b"));
    later(66s);
    EXPECT_FALSE(allowed("b"));
}

TEST_F(WebhookDriverTest, APodThatIsGoneLeavesItsRoom) {
    EXPECT_TRUE(allowed("a"));
    EXPECT_FALSE(allowed("b"));
    later(66s);
    script_->take("GET", "/api/v1/namespaces/default/pods/a", {404, "{}", 0});
    EXPECT_TRUE(allowed("b"));
}

TEST_F(WebhookDriverTest, AClaimForOnePodIsGivenOnce) {
    EXPECT_TRUE(allowed("first"));
    EXPECT_FALSE(allowed("second"));
}

// Nothing is reserved on n2.
TEST_F(WebhookDriverTest, ACoreIsGivenOnceWhereNothingIsReserved) {
    script_->tell("nodes",
                  R"({"metadata":{"name":"n2","uid":"n2-uid"},)"
                  R"("status":{"allocatable":{"cpu":"8","memory":"8Gi","pods":"10"}}})",
                  2);
    script_->tell(
        "noderesourcetopologies",
        R"({"metadata":{"name":"n2","uid":"t2","annotations":{"node.koordinator.sh/cpu-topology":)"
        R"("{\"detail\":[{\"id\":0,\"core\":0,\"socket\":0,\"node\":0},{\"id\":1,\"core\":1,\"socket\":0,\"node\":0}]}"}}})",
        3);
    const auto binds = [&](const std::string& name, const std::string& notes) {
        return asked(fmt::format(
            R"({{"metadata":{{"name":"{}","annotations":{}}},"target":{{"kind":"Node","name":"n2"}}}})", name, notes));
    };
    EXPECT_FALSE(binds("a", R"({"scheduling.koordinator.sh/resource-status":"{\"cpuset\":\"7\"}"})")) << "not there";
    EXPECT_TRUE(binds("a", R"({"scheduling.koordinator.sh/resource-status":"{\"cpuset\":\"1\"}"})"));
    EXPECT_FALSE(binds("b", R"({"scheduling.koordinator.sh/resource-status":"{\"cpuset\":\"1\"}"})")) << "just given";
    EXPECT_TRUE(binds("b", "{}")) << "whoever names none takes none";
}

// A node with a Device closes like one with a reservation, and so do bindings that name what the pod has.
TEST_F(WebhookDriverTest, ADeviceIsGivenOnceWhereNothingIsReserved) {
    script_->tell("nodes",
                  R"({"metadata":{"name":"n2","uid":"n2-uid"},)"
                  R"("status":{"allocatable":{"cpu":"8","memory":"8Gi","pods":"10"}}})",
                  2);
    script_->tell(
        "devices",
        R"({"metadata":{"name":"n2","uid":"d2","resourceVersion":"3"},"spec":{"devices":[{"type":"gpu","minor":0,)"
        R"("health":true,"resources":{"koordinator.sh/gpu-core":"100","koordinator.sh/gpu-memory-ratio":"100",)"
        R"("koordinator.sh/gpu-memory":"1000"}}]}})",
        3);
    for (const std::string name : {"g", "h"}) {
        script_->tell(
            "pods",
            fmt::format(R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid"}},"spec":{{)"
                        R"("containers":[{{"name":"a","resources":{{"requests":{{"koordinator.sh/gpu":"60"}}}}}}]}}}})",
                        name),
            4);
    }
    later(1s);
    script_->take("PATCH", "/apis/admissionregistration.k8s.io/", {200, "{}", 0});
    const auto binds = [&](const std::string& name, int core) {
        const std::string record =
            fmt::format(R"({{\"gpu\":[{{\"minor\":0,\"resources\":{{\"koordinator.sh/gpu-core\":\"{0}\",)"
                        R"(\"koordinator.sh/gpu-memory-ratio\":\"{0}\",\"koordinator.sh/gpu-memory\":\"{1}\"}}}}]}})",
                        core, core * 10);
        return asked(fmt::format(
            R"({{"metadata":{{"name":"{}","annotations":{{"scheduling.koordinator.sh/device-allocated":"{}"}}}},)"
            R"("target":{{"kind":"Node","name":"n2"}}}})",
            name, core == 0 ? "" : record));
    };
    EXPECT_FALSE(binds("g", 10)) << "it asks for more: the record is forged";
    EXPECT_FALSE(binds("g", 0)) << "it says nothing of which";
    EXPECT_TRUE(binds("g", 60));
    EXPECT_FALSE(binds("h", 60)) << "just given";
}

TEST_F(WebhookDriverTest, APodIsJudgedByTheProfileOfItsScheduler) {
    EXPECT_TRUE(allowed("extended")) << "its scheduler leaves gpus to an extender";
    EXPECT_FALSE(allowed("plain"));
}

TEST_F(WebhookDriverTest, APodGrowsIntoWhatIsFreeAndNotIntoReservedRoom) {
    EXPECT_FALSE(resizes(pod_of("small", "500m", 1), pod_of("small", "1600m", 1)));
    EXPECT_TRUE(resizes(pod_of("small", "500m", 1), pod_of("small", "1500m", 1)));
    EXPECT_FALSE(allowed("a")) << "its room was just given away";
}

TEST_F(WebhookDriverTest, AResizeThatIsOnlyTriedTakesNothing) {
    EXPECT_TRUE(resizes(pod_of("small", "500m", 1), pod_of("small", "1500m", 1), R"(,"dryRun":true)"));
    EXPECT_TRUE(allowed("a"));
}

// The other way round would be oversold: room that a shrinking pod leaves is free when it has left it.
TEST_F(WebhookDriverTest, RoomOfAShrinkingPodIsFreeWhenItHasShrunk) {
    script_->tell("pods", pod_of("small", "1500m", 5), 5);
    later(1s);
    EXPECT_TRUE(resizes(pod_of("small", "1500m", 5), pod_of("small", "500m", 5)));
    EXPECT_FALSE(allowed("a"));
    script_->tell("pods", pod_of("small", "500m", 6), 6);
    EXPECT_TRUE(allowed("a"));
}

TEST_F(WebhookDriverTest, OlderNewsDoNotGiveARoomBackThatAResizeWasGiven) {
    EXPECT_TRUE(resizes(pod_of("small", "500m", 3), pod_of("small", "1500m", 3)));
    script_->tell("pods", pod_of("small", "500m", 3), 3);  // what it was resized from comes late
    EXPECT_FALSE(allowed("a"));
    script_->tell("pods", pod_of("small", "500m", 4), 4);  // somebody was faster: the resize asks again, or is none
    EXPECT_TRUE(allowed("a"));
}

TEST_F(WebhookDriverTest, RoomOfAResizeThatWasNeverMadeIsGivenBackByAReadOfThePod) {
    EXPECT_TRUE(resizes(pod_of("small", "500m", 1), pod_of("small", "1500m", 1)));
    later(66s);
    script_->take("GET", "/api/v1/namespaces/default/pods/small", {200, pod_of("small", "500m", 1), 1});
    EXPECT_TRUE(allowed("a"));
}

TEST_F(WebhookDriverTest, OfTwoResizesAtOnceTheLargerCounts) {
    EXPECT_TRUE(resizes(pod_of("small", "500m", 1), pod_of("small", "1500m", 1)));
    EXPECT_TRUE(resizes(pod_of("small", "500m", 1), pod_of("small", "600m", 1)));
    EXPECT_FALSE(allowed("a")) << "the first may still be the one that is made";
}

TEST_F(WebhookDriverTest, AResizeOfAPodThatIsNotKnownHereIsRefusedAfterAWhile) {
    const auto before = clock_.now();
    EXPECT_FALSE(resizes(pod_of("new", "100m", 1), pod_of("new", "200m", 1)));
    EXPECT_GE(clock_.now() - before, 3s);
}

TEST_F(WebhookDriverTest, WhatIsNeitherABindingNorAResizeIsABadRequest) {
    for (const std::string body : {"", "[]", "{}", R"({"request":{"object":3}})",
                                   R"({"request":{"subResource":"resize","object":{},"oldObject":{}}})",
                                   R"({"request":{"subResource":"resize","object":{"spec":{}}}})"}) {
        int answered = 0;
        driver_->ask(body, [&](int code, const std::string&) { answered = code; });
        later(1ms);
        EXPECT_EQ(answered, 400) << body;
    }
}

}  // namespace
}  // namespace berth::run
