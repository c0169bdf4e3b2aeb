#include "run/share_webhook_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "run/scripted_server.h"

namespace berth::run {
namespace {

std::string consumer_text(const std::string& name, const std::string& spec) {
    return fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{{}}}}})", name, spec);
}

class ShareWebhookTest : public testing::Test {
protected:
    ShareWebhookTest() {
        script_->has("nodes", R"({"metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"10","memory":"8Gi"}}})");
        script_->has("namespaces", R"({"metadata":{"name":"team","uid":"t"}})");
        script_->has("resourcequotas",
                     R"({"metadata":{"name":"q","namespace":"team"},"spec":{"hard":{"requests.cpu":"6"}}})");
        script_->has("consumers", consumer_text("other", R"("reserved":{"cpu":"7"})"));
        script_->answer_all({200, "{}", 0});
        WebhookJudge::Doors doors{
            script_->server(), [] {},
            [this](base::Duration) { return ServingKeys{"cert", "key", fmt::format("ca-{}", ++issued_)}; },
            [](const ServingKeys&) { return Status(); }, [] {}};
        ShareWebhookOptions options{.host = "127.0.0.1", .port = 1};
        options.gates = true;
        options.ungated = {"kube-system"};
        driver_ = std::make_unique<ShareWebhookDriver>(std::move(doors), options);
        EXPECT_TRUE(turn_until(*driver_, clock_, [&] { return script_->requests() >= 2; }));
    }
    std::string asked(const std::string& review) {
        std::string answered;
        driver_->ask(review, [&](int code, std::string body) {
            EXPECT_EQ(code, 200);
            answered = std::move(body);
        });
        EXPECT_TRUE(turn_until(*driver_, clock_, [&] { return !answered.empty(); }));
        return answered;
    }
    std::string write(const std::string& object, const std::string& old = "null") {
        return asked(fmt::format(
            R"({{"request":{{"uid":"u","kind":{{"kind":"Consumer"}},"object":{},"oldObject":{}}}}})", object, old));
    }
    std::string steps_for(const std::string& spec) {
        const auto answer = base::parse_json(asked(fmt::format(
            R"({{"request":{{"uid":"u","kind":{{"kind":"Pod"}},"object":{{"metadata":{{}},"spec":{}}}}}}})", spec)));
        const auto patch = base::find_string(*answer, {"response", "patch"});
        return patch.empty() ? "" : *base::from_base64(std::string(patch));
    }
    size_t configurations(const std::string& name) {
        size_t count = 0;
        script_->find([&](const link::Request& request) {
            count += request.path.find(name) != request.path.npos ? 1 : 0;
            return false;
        });
        return count;
    }

    std::shared_ptr<Script> script_ = std::make_shared<Script>();
    base::ManualClock clock_;
    int issued_ = 0;
    std::unique_ptr<ShareWebhookDriver> driver_;
};

TEST_F(ShareWebhookTest, ConsumersAreJudgedAsTheEmbeddedServerJudgesThem) {
    const auto refused = [&](const std::string& object, const std::string& words, const std::string& old = "null") {
        const std::string said = write(object, old);
        EXPECT_NE(said.find(R"("allowed":false)"), said.npos) << said;
        EXPECT_NE(said.find(words), said.npos) << said;
        EXPECT_NE(said.find(R"("code":422)"), said.npos) << said;
    };
    EXPECT_NE(write(consumer_text("a", R"("reserved":{"cpu":"3"})")).find(R"("allowed":true)"), std::string::npos);
    refused(consumer_text("a", R"("reserved":{"cpu":"4"})"),
            R"(spec.reserved[cpu]: Invalid value: \"4\": is more than the cluster has left: 3 available)");
    refused(consumer_text("team", R"("hard":{"cpu":"8"})"), "is more than the quota of its namespace: 6 available");
    refused(consumer_text("a", R"("hard":{"cpu":"1"},"reserved":{"cpu":"2"})"), "is more than hard: 1 available");
    refused(consumer_text("a", R"("parent":"nobody")"), "there is no Consumer of this name");
    refused(consumer_text("a", R"("parent":"team")"), "there is no Consumer of this name");
    refused(consumer_text("a", R"("reserved":{"cpu":"many"})"), "spec.reserved.cpu");
    // What shrinks is allowed whatever the others have.
    EXPECT_NE(write(consumer_text("a", R"("reserved":{"cpu":"8"})"), consumer_text("a", R"("reserved":{"cpu":"9"})"))
                  .find(R"("allowed":true)"),
              std::string::npos);
}

TEST_F(ShareWebhookTest, NewPodsGetTheGateOnce) {
    const std::string gate = R"({"name":"berth.dev/share"})";
    EXPECT_EQ(steps_for("{}"), R"([{"op":"add","path":"/spec/schedulingGates","value":[)" + gate + "]}]");
    EXPECT_EQ(steps_for(R"({"schedulingGates":[{"name":"x"}]})"),
              R"([{"op":"add","path":"/spec/schedulingGates/-","value":)" + gate + "}]");
    EXPECT_EQ(steps_for(R"({"schedulingGates":[)" + gate + "]}"), "");
    EXPECT_EQ(steps_for(R"({"nodeName":"n1"})"), "") << "nobody places it";
}

TEST_F(ShareWebhookTest, BothConfigurationsPointAtItAndFollowItsCertificate) {
    EXPECT_EQ(configurations("validatingwebhookconfigurations/berth-consumers"), 1u);
    EXPECT_EQ(configurations("mutatingwebhookconfigurations/berth-share-gates"), 1u);
    EXPECT_TRUE(script_->find([](const link::Request& request) {
        return request.body.find(R"("failurePolicy":"Ignore")") != request.body.npos &&
               request.body.find(R"("values":["kube-system"])") != request.body.npos;
    }));
    clock_.advance(std::chrono::hours(21 * 24));
    const auto both = base::to_base64("ca-1ca-2");
    EXPECT_TRUE(turn_until(*driver_, clock_, [&] {
        return script_->find(
            [&](const link::Request& request) { return request.body.find(both) != request.body.npos; });
    })) << "the API server learns of the next authority before the certificate changes";
}

TEST_F(ShareWebhookTest, NonsenseIsRefused) {
    for (const auto* body : {"", "{", "{}", R"({"request":{"object":1}})"}) {
        int code = 0;
        driver_->ask(body, [&](int said, const std::string&) { code = said; });
        EXPECT_EQ(code, 400) << body;
    }
}

}  // namespace
}  // namespace berth::run
