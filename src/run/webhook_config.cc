#include "run/webhook_config.h"

#include <fmt/format.h>

#include "base/base64.h"
#include "base/json.h"

namespace berth::run {
namespace {

constexpr size_t kMostListed = 1000;
constexpr int kSeconds = 5;

// Names of nodes and users have no quote in them that JSON's rules would not write as CEL reads it.
std::string listed(const auto& names) {
    JsonArray out;
    for (const auto& name : names) out.emplace_back(name);
    return base::to_text(Json(std::move(out)));
}

Json condition(std::string_view name, std::string expression) {
    return JsonObject{{"name", name}, {"expression", std::move(expression)}};
}

// What is asked about: which requests, and how CEL says the node.
struct Asked {
    std::string_view name, operation;
    std::vector<std::string_view> resources;
    std::string_view has_node, node;
    bool trusts;  // some who ask have a ledger of their own
};

Json webhook(const WebhookTarget& target, const Asked& asked, std::string_view which, std::string_view policy,
             JsonArray conditions) {
    if (asked.trusts && !target.trusted.empty()) {
        conditions.push_back(
            condition("not-from-a-ledger", fmt::format("!(request.userInfo.username in {})", listed(target.trusted))));
    }
    JsonArray resources(asked.resources.begin(), asked.resources.end());
    const Json rule(JsonObject{{"apiGroups", JsonArray{""}},
                               {"apiVersions", JsonArray{"v1"}},
                               {"operations", JsonArray{asked.operation}},
                               {"resources", std::move(resources)},
                               {"scope", "Namespaced"}});
    return JsonObject{{"name", fmt::format("{}.{}.berth.dev", which, asked.name)},
                      {"clientConfig", JsonObject{{"url", target.url}, {"caBundle", base::to_base64(target.ca_pem)}}},
                      {"rules", JsonArray{rule}},
                      {"failurePolicy", policy},
                      {"matchConditions", std::move(conditions)},
                      {"sideEffects", "NoneOnDryRun"},
                      {"timeoutSeconds", kSeconds},
                      {"admissionReviewVersions", JsonArray{"v1"}}};
}

}  // namespace

Json webhook_configuration(const WebhookTarget& target, const std::set<std::string>& held_nodes) {
    static const Asked all[] = {
        {"bindings", "CREATE", {"pods/binding", "bindings"}, "", "object.target.name", true},
        {"resizes", "UPDATE", {"pods/resize"}, "has(object.spec.nodeName) && ", "object.spec.nodeName", false}};
    JsonArray webhooks;
    for (const auto& asked : all) {
        if (held_nodes.size() > kMostListed) {
            webhooks.push_back(webhook(target, asked, "held", "Fail", {}));
            continue;
        }
        const std::string held = fmt::format("{}{} in {}", asked.has_node, asked.node, listed(held_nodes));
        webhooks.push_back(webhook(target, asked, "held", "Fail", {condition("held", held)}));
        webhooks.push_back(
            webhook(target, asked, "other", "Ignore", {condition("not-held", fmt::format("!({})", held))}));
    }
    return JsonObject{{"apiVersion", "admissionregistration.k8s.io/v1"},
                      {"kind", "ValidatingWebhookConfiguration"},
                      {"metadata", JsonObject{{"name", kWebhookConfiguration}}},
                      {"webhooks", std::move(webhooks)}};
}

}  // namespace berth::run
