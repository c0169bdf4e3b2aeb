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

Json webhook(const WebhookTarget& target, std::string_view name, std::string_view policy, JsonArray conditions) {
    if (!target.trusted.empty()) {
        conditions.push_back(
            condition("not-from-a-ledger", fmt::format("!(request.userInfo.username in {})", listed(target.trusted))));
    }
    const Json rule(JsonObject{{"apiGroups", JsonArray{""}},
                               {"apiVersions", JsonArray{"v1"}},
                               {"operations", JsonArray{"CREATE"}},
                               {"resources", JsonArray{"pods/binding", "bindings"}},
                               {"scope", "Namespaced"}});
    return JsonObject{{"name", name},
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
    JsonArray webhooks;
    if (held_nodes.size() > kMostListed) {
        webhooks.push_back(webhook(target, "held.bindings.berth.dev", "Fail", {}));
    } else {
        const std::string held = fmt::format("object.target.name in {}", listed(held_nodes));
        webhooks.push_back(webhook(target, "held.bindings.berth.dev", "Fail", {condition("held", held)}));
        webhooks.push_back(
            webhook(target, "other.bindings.berth.dev", "Ignore", {condition("not-held", fmt::format("!({})", held))}));
    }
    return JsonObject{{"apiVersion", "admissionregistration.k8s.io/v1"},
                      {"kind", "ValidatingWebhookConfiguration"},
                      {"metadata", JsonObject{{"name", kWebhookConfiguration}}},
                      {"webhooks", std::move(webhooks)}};
}

}  // namespace berth::run
