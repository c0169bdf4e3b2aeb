#include "run/webhook_config.h"

#include <fmt/format.h>

#include "base/base64.h"
#include "base/json.h"
#include "model/which.h"

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

// Whether an annotation of the binding says which cores or devices its pod has. CEL reads both kinds of quotes.
std::string names_parts() {
    std::string out;
    for (const std::string_view key : model::kWhichAnnotations) {
        out += fmt::format("{}'{}' in object.metadata.annotations", out.empty() ? "" : " || ", key);
    }
    return fmt::format("has(object.metadata.annotations) && ({})", out);
}

Json condition(std::string_view name, std::string expression) {
    return JsonObject{{"name", name}, {"expression", std::move(expression)}};
}

// What is asked about: which requests, and how CEL says the node. Of those who bind, some have a ledger of their own.
struct Asked {
    std::string_view name, operation;
    std::vector<std::string_view> resources;
    std::string_view has_node, node;
    bool is_binding;
};

Json webhook(const WebhookTarget& target, const Asked& asked, std::string_view which, std::string_view policy,
             JsonArray conditions) {
    if (asked.is_binding && !target.trusted.empty()) {
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
        std::string held = fmt::format("{}{} in {}", asked.has_node, asked.node, listed(held_nodes));
        if (asked.is_binding) held += " || " + names_parts();
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
