#include "run/webhook_config.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace berth::run {
namespace {

std::string policy(const Json& webhook) {
    return std::string(base::find_string(webhook, {"failurePolicy"}));
}

TEST(WebhookConfig, HeldNodesFailClosedAndOthersDoNot) {
    const Json made = webhook_configuration({"https://10.0.0.7:9443/bindings", "PEM", {"berth"}}, {"n1", "n2"});
    const auto& webhooks = made.at("webhooks").as_array();
    ASSERT_EQ(webhooks.size(), 2u);
    EXPECT_EQ(policy(webhooks[0]), "Fail");
    EXPECT_EQ(policy(webhooks[1]), "Ignore");
    EXPECT_EQ(webhooks[0].at("matchConditions"), *base::parse_json(R"json([
        {"name":"held","expression":"object.target.name in [\"n1\",\"n2\"]"},
        {"name":"not-from-a-ledger","expression":"!(request.userInfo.username in [\"berth\"])"
}])json"));
    EXPECT_EQ(base::find_string(webhooks[0], {"clientConfig", "caBundle"}), "UEVN");
}

TEST(WebhookConfig, TooManyToListAreAllNodes) {
    std::set<std::string> many;
    for (int i = 0; i < 1001; ++i) many.insert("n" + std::to_string(i));
    const Json made = webhook_configuration({"https://10.0.0.7:9443/bindings", "PEM", {}}, many);
    ASSERT_EQ(made.at("webhooks").as_array().size(), 1u);
    EXPECT_EQ(policy(made.at("webhooks").as_array()[0]), "Fail");
    EXPECT_TRUE(made.at("webhooks").as_array()[0].at("matchConditions").as_array().empty());
}

}  // namespace
}  // namespace berth::run
