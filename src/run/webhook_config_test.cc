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
    ASSERT_EQ(webhooks.size(), 4u);
    EXPECT_EQ(policy(webhooks[0]), "Fail");
    EXPECT_EQ(policy(webhooks[1]), "Ignore");
    EXPECT_EQ(webhooks[0].at("matchConditions"), *base::parse_json(R"json([
        {"name":"held","expression":"object.target.name in [\"n1\",\"n2\"] || has(object.metadata.annotations) && ('scheduling.koordinator.sh/resource-status' in object.metadata.annotations || 'scheduling.koordinator.sh/device-allocated' in object.metadata.annotations)"},
        {"name":"not-from-a-ledger","expression":"!(request.userInfo.username in [\"berth\"])"
}])json"));
    EXPECT_EQ(base::find_string(webhooks[0], {"clientConfig", "caBundle"}), "UEVN");
}

TEST(WebhookConfig, TooManyToListAreAllNodes) {
    std::set<std::string> many;
    for (int i = 0; i < 1001; ++i) many.insert("n" + std::to_string(i));
    const Json made = webhook_configuration({"https://10.0.0.7:9443/bindings", "PEM", {}}, many);
    ASSERT_EQ(made.at("webhooks").as_array().size(), 2u);
    for (const Json& webhook : made.at("webhooks").as_array()) {
        EXPECT_EQ(policy(webhook), "Fail");
        EXPECT_TRUE(webhook.at("matchConditions").as_array().empty());
    }
}

// Whoever is trusted with bindings resizes nothing; a pod that has no node yet is on none that holds something.
TEST(WebhookConfig, ResizesAreJudgedWhoeverAsks) {
    const Json made = webhook_configuration({"https://10.0.0.7:9443/bindings", "PEM", {"berth"}}, {"n1"});
    const auto& resizes = made.at("webhooks").as_array()[2];
    EXPECT_EQ(policy(resizes), "Fail");
    EXPECT_EQ(resizes.at("rules"), *base::parse_json(R"json([{"apiGroups":[""],"apiVersions":["v1"],
        "operations":["UPDATE"],"resources":["pods/resize"],"scope":"Namespaced"}])json"));
    EXPECT_EQ(resizes.at("matchConditions"), *base::parse_json(R"json([{"name":"held","expression":
        "has(object.spec.nodeName) && object.spec.nodeName in [\"n1\"]"}])json"));
    EXPECT_EQ(policy(made.at("webhooks").as_array()[3]), "Ignore");
}

}  // namespace
}  // namespace berth::run
