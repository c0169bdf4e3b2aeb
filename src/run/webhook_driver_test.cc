#include "run/webhook_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run/scripted_server.h"

namespace berth::run {
namespace {

using namespace std::chrono_literals;

std::string pod(const std::string& name, const std::string& node = "") {
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid"}},"spec":{{"nodeName":"{1}",)"
        R"("containers":[{{"name":"a","resources":{{"requests":{{"cpu":"1"}}}}}}]}}}})",
        name, node);
}

std::string pod_with_claim(const std::string& name, const std::string& node = "") {
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid"}},"spec":{{"nodeName":"{1}",)"
        R"("volumes":[{{"name":"v","persistentVolumeClaim":{{"claimName":"one"}}}}],"containers":[{{"name":"a"}}]}}}})",
        name, node);
}

// A node of 4 cpus of which a reservation holds 3, and two pods of 1 that wait.
class WebhookDriverTest : public testing::Test {
protected:
    WebhookDriverTest() {
        script_->has("nodes", R"({"metadata":{"name":"n1","uid":"n1-uid"},)"
                              R"("status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"10"}}})");
        script_->has("reservations",
                     R"({"metadata":{"name":"r","uid":"r-uid"},"spec":{"owners":[{"labelSelector":{"matchLabels":)"
                     R"({"app":"web"}}}],"template":{"spec":{"containers":[{"name":"a","resources":{"requests":)"
                     R"({"cpu":"3"}}}]}}},"status":{"phase":"Available","nodeName":"n1","allocatable":{"cpu":"3"}}})");
        script_->has("pods", pod("a"));
        script_->has("pods", pod("b"));
        script_->has("pods", pod_with_claim("first"));
        script_->has("pods", pod_with_claim("second"));
        script_->has("persistentvolumeclaims", R"({"metadata":{"name":"one","namespace":"default","uid":"one-uid"},)"
                                               R"("spec":{"accessModes":["ReadWriteOncePod"]}})");
        WebhookDriver::Doors doors{script_->server(), [] {}, [](base::Duration) { return ServingKeys{}; },
                                   [](const ServingKeys&) { return Status(); }, [] {}};
        driver_ = std::make_unique<WebhookDriver>(std::move(doors), WebhookOptions{.host = "127.0.0.1", .port = 1});
        later(1s);
        script_->take("PATCH", "/apis/admissionregistration.k8s.io/", {200, "{}", 0});
    }
    ~WebhookDriverTest() override { script_->answer_all({200, "{}", 0}); }

    void later(base::Duration by) {
        clock_.advance(by);
        driver_->turn(moment(clock_));
    }
    bool allowed(const std::string& name) {
        std::optional<std::pair<int, std::string>> answered;
        driver_->ask(
            fmt::format(R"({{"request":{{"uid":"u","namespace":"default","object":{{"metadata":{{"name":"{}"}},)"
                        R"("target":{{"kind":"Node","name":"n1"}}}}}}}})",
                        name),
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

}  // namespace
}  // namespace berth::run
