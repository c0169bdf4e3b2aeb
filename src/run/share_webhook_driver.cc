#include "run/share_webhook_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/base64.h"
#include "base/log.h"
#include "model/consumer_rules.h"
#include "model/node_reservation.h"
#include "run/decoded.h"

namespace berth::run {
namespace {

constexpr base::Duration kLooksAgain = std::chrono::milliseconds(500);
constexpr std::string_view kAdmission = "/apis/admissionregistration.k8s.io/v1/";
constexpr std::string_view kConsumersName = "berth-consumers";
constexpr std::string_view kGatesName = "berth-share-gates";

Result<model::Consumer> consumer_at(const Json& request, std::string_view field) {
    const Json* object = base::find(request, {field});
    if (object == nullptr || !object->is_object()) return base::bad_request("there is no Consumer");
    return model::read_consumer(TRY(parse_here(base::to_text(*object))));
}

// The steps that hold a new pod; "": it is held, or nobody places it.
std::string gate_patch(const Json& pod) {
    if (!base::find_string(pod, {"spec", "nodeName"}).empty()) return "";
    const JsonObject gate{{"name", model::kShareGate}};
    const Json* gates = base::find(pod, {"spec", "schedulingGates"});
    const bool any = gates != nullptr && gates->is_array();
    if (any && std::any_of(gates->as_array().begin(), gates->as_array().end(),
                           [](const auto& one) { return base::find_string(one, {"name"}) == model::kShareGate; }))
        return "";
    const JsonObject step{{"op", "add"},
                          {"path", any ? "/spec/schedulingGates/-" : "/spec/schedulingGates"},
                          {"value", any ? Json(gate) : Json(JsonArray{gate})}};
    return base::to_text(Json(JsonArray{step}));
}

// One configuration with one webhook.
Json configuration(std::string_view kind, std::string_view name, JsonObject webhook, const std::string& url,
                   const std::string& ca) {
    webhook["name"] = fmt::format("{}.berth.dev", name);
    webhook["clientConfig"] = JsonObject{{"url", url}, {"caBundle", base::to_base64(ca)}};
    webhook["sideEffects"] = "None";
    webhook["timeoutSeconds"] = 5;
    webhook["admissionReviewVersions"] = JsonArray{"v1"};
    return JsonObject{{"apiVersion", "admissionregistration.k8s.io/v1"},
                      {"kind", kind},
                      {"metadata", JsonObject{{"name", name}}},
                      {"webhooks", JsonArray{std::move(webhook)}}};
}

JsonArray rules(std::string_view group, std::string_view resource, JsonArray operations, std::string_view scope) {
    return JsonArray{JsonObject{{"apiGroups", JsonArray{group}},
                                {"apiVersions", JsonArray{"v1"}},
                                {"operations", std::move(operations)},
                                {"resources", JsonArray{resource}},
                                {"scope", scope}}};
}

}  // namespace

ShareWebhookDriver::ShareWebhookDriver(Doors doors, ShareWebhookOptions options)
    : doors_(std::move(doors)),
      session_(std::move(doors_.server), doors_.wake),
      options_(std::move(options)),
      keeper_({options_.host, options_.port, options_.path, options_.certificate_life}, "berth-arbitrator") {
    session_.follow("Node", {"", "v1", "nodes"});
    session_.follow("Namespace", {"", "v1", "namespaces"});
    session_.follow("ResourceQuota", {"", "v1", "resourcequotas"});
    session_.follow("Consumer", {std::string(model::kSharesGroup), "v1", "consumers"});
}

// A pod is held whatever else there is; a Consumer is judged among the others.
void ShareWebhookDriver::ask(const std::string& body, Answer answer) {
    const auto review = base::parse_json(body);
    const Json* request = review ? base::find(*review, {"request"}) : nullptr;
    const Json* object = request != nullptr ? base::find(*request, {"object"}) : nullptr;
    if (object == nullptr || !object->is_object()) return answer(400, "this is no AdmissionReview with an object\n");
    Question question;
    question.uid = base::find_string(*request, {"uid"});
    if (base::find_string(*request, {"kind", "kind"}) == "Pod")
        return answer(200, review_answer(question.uid, "", 200, "", options_.gates ? gate_patch(*object) : ""));
    auto wanted = consumer_at(*request, "object");
    if (!wanted) return answer(200, review_answer(question.uid, wanted.error().message, 422, "Invalid"));
    question.wanted = std::move(*wanted);
    if (auto before = consumer_at(*request, "oldObject")) question.before = std::move(*before);
    question.answer = std::move(answer);
    {
        const std::lock_guard lock(mutex_);
        asked_.push_back(std::move(question));
    }
    doors_.wake();
}

void ShareWebhookDriver::turn(const Moment& now) {
    now_ = now;
    session_.hear([this](const auto& kind, const auto& event) { apply(kind, event); });
    session_.answers([this](const Sent&, const Result<link::Reply>& reply) { keeper_.registered(reply); });
    if (stopping_) return close();
    if (!session_.synced()) return;
    const auto wanted = [this](const std::string& url, const std::string& ca) { return registrations(url, ca); };
    for (auto& request : keeper_.turn(now.now, session_.under_way() > 0, doors_, [this] { close(); }, wanted))
        session_.send(std::move(request), Sent{});
    std::vector<Question> asked;
    {
        const std::lock_guard lock(mutex_);
        asked.swap(asked_);
    }
    for (const auto& question : asked)
        question.answer(200, review_answer(question.uid, judge(question), 422, "Invalid"));
}

base::Instant ShareWebhookDriver::next() const {
    return now_.now + kLooksAgain;
}

// Who asked hears that there is no answer; then nobody asks any more.
void ShareWebhookDriver::close() {
    const auto drop = [this] {
        const std::lock_guard lock(mutex_);
        asked_.clear();
    };
    drop();
    doors_.close();
    drop();
}

void ShareWebhookDriver::apply(const std::string& kind, const link::FeedEvent& event) {
    const auto meta = meta_of(event);
    if (!meta) return base::log_error("Unreadable object", {{"kind", kind}, {"error", meta.error()}});
    const std::string name = meta->full_name();
    consumers_.erase(kind == "Consumer" ? name : "");
    quotas_.erase(kind == "ResourceQuota" ? name : "");
    if (kind == "Node") nodes_.erase(name);
    if (kind == "Namespace") namespaces_.erase(name);
    if (event.type == link::FeedEvent::Type::Gone) return;
    const auto view = parse_here(*event.text);
    if (!view) return;
    // One that cannot be read harms nobody else.
    if (kind == "Namespace") namespaces_.insert(name);
    if (kind == "Consumer") {
        if (auto read = model::read_consumer(*view)) consumers_.insert_or_assign(name, std::move(*read));
    }
    if (kind == "ResourceQuota") {
        if (auto read = model::read_resource_quota(*view)) quotas_.insert_or_assign(name, std::move(*read));
    }
    if (kind == "Node") {
        if (auto read = model::read_node(*view)) nodes_[name] = model::view_of(*read).allocatable;
    }
}

// Empty: it may be written.
std::string ShareWebhookDriver::judge(const Question& question) const {
    std::vector<model::Consumer> others;
    std::vector<model::ResourceQuota> quotas;
    const std::vector<std::string> namespaces(namespaces_.begin(), namespaces_.end());
    Resources cluster;
    for (const auto& [name, consumer] : consumers_) {
        if (name != question.wanted.meta.name) others.push_back(consumer);
    }
    for (const auto& [name, quota] : quotas_) quotas.push_back(quota);
    for (const auto& [name, allocatable] : nodes_) cluster.add(allocatable);
    const auto faults = model::consumer_faults(question.wanted, question.before ? &*question.before : nullptr,
                                               {others, quotas, namespaces, cluster});
    std::string why;
    for (const auto& fault : faults)
        why += fmt::format("{}{}: {}", why.empty() ? "" : ", ", fault.field, fault.message);
    if (why.empty()) return why;
    return fmt::format("Consumer \"{}\" is invalid: {}", question.wanted.meta.name, why);
}

std::vector<WebhookRegistration> ShareWebhookDriver::registrations(const std::string& url,
                                                                   const std::string& ca) const {
    std::vector<WebhookRegistration> out;
    out.push_back({fmt::format("{}validatingwebhookconfigurations/{}", kAdmission, kConsumersName),
                   configuration("ValidatingWebhookConfiguration", kConsumersName,
                                 {{"rules", rules(model::kSharesGroup, "consumers", {"CREATE", "UPDATE"}, "Cluster")},
                                  {"failurePolicy", "Fail"}},
                                 url, ca)});
    if (!options_.gates) return out;
    JsonArray ungated(options_.ungated.begin(), options_.ungated.end());
    const JsonObject others{
        {"key", "kubernetes.io/metadata.name"}, {"operator", "NotIn"}, {"values", std::move(ungated)}};
    JsonObject webhook{{"rules", rules("", "pods", {"CREATE"}, "Namespaced")}, {"failurePolicy", "Ignore"}};
    if (!options_.ungated.empty()) webhook["namespaceSelector"] = JsonObject{{"matchExpressions", JsonArray{others}}};
    out.push_back({fmt::format("{}mutatingwebhookconfigurations/{}", kAdmission, kGatesName),
                   configuration("MutatingWebhookConfiguration", kGatesName, std::move(webhook), url, ca)});
    return out;
}

}  // namespace berth::run
