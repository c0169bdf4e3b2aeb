#include <fmt/format.h>

#include "api/decode.h"
#include "api/filter.h"
#include "api/meta.h"
#include "api/pods.h"
#include "api/wire.h"
#include "model/kinds/path.h"
#include "model/selector.h"

namespace berth::api {
namespace {

constexpr std::string_view kBudgets = "policy/poddisruptionbudgets";
constexpr size_t kMaxDisrupted = 2000;

Error over_budget(std::string message, int retry_s) {
    Error out{
        Reason::TooManyRequests, "Cannot evict pod as it would violate the pod's disruption budget.", {}, retry_s};
    out.causes.push_back({"DisruptionBudget", std::move(message), ""});
    return out;
}

LabelSelector read_selector(const Json& selector) {
    LabelSelector out;
    std::vector<Labels::Entry> entries;
    for (const auto& [key, value] : model::members_at(selector, ".matchLabels")) {
        if (value.is_string()) entries.emplace_back(key, value.as_string());
    }
    out.match_labels = Labels(std::move(entries));
    for (const auto& expression : model::list_at(selector, ".matchExpressions")) {
        LabelSelector::Expression row;
        row.key = model::string_at(expression, ".key");
        row.op = model::string_at(expression, ".operator");
        for (const auto& value : model::list_at(expression, ".values")) {
            if (value.is_string()) row.values.emplace_back(value.as_string());
        }
        out.match_expressions.push_back(std::move(row));
    }
    return out;
}

bool guards(const Json& budget, const Labels& labels) {
    const Json* selector = base::find(budget, {"spec", "selector"});
    if (selector == nullptr || !selector->is_object()) return false;
    auto parsed = model::to_selector(read_selector(*selector));
    return parsed && parsed->matches(labels);
}

// The budgets at the head that speak of the pod.
Result<std::vector<store::RecordPtr>> budgets_of(ApiContext& context, const Call& call, const store::Record& pod) {
    const Labels labels = facets_of(*call.kind, pod).labels;
    const auto page = TRY(context.store.list({std::string(kBudgets), call.ns}));
    std::vector<store::RecordPtr> out;
    for (const auto& listed : page.records) {
        auto record = context.store.head(listed->key);
        if (record != nullptr && guards(TRY(stored_object(*record)), labels)) out.push_back(std::move(record));
    }
    return out;
}

bool is_ready(const Json& pod) {
    for (const auto& condition : model::list_at(pod, ".status.conditions")) {
        if (model::string_at(condition, ".type") == "Ready") return model::string_at(condition, ".status") == "True";
    }
    return false;
}

// Pods that no budget protects: they do not count as healthy anyway.
bool goes_freely(const Json& pod) {
    const auto phase = model::string_at(pod, ".status.phase");
    return phase == "Succeeded" || phase == "Failed" || phase == "Pending" || is_deleting(pod);
}

bool unhealthy_may_go(const Json& pod, const Json& budget) {
    if (is_ready(pod)) return false;
    if (model::string_at(budget, ".spec.unhealthyPodEvictionPolicy") == "AlwaysAllow") return true;
    const int64_t desired = model::int_at(budget, ".status.desiredHealthy");
    return desired > 0 && model::int_at(budget, ".status.currentHealthy") >= desired;
}

// One disruption less, and the pod noted as disrupted, or why not.
Result<store::Write> spend(ApiContext& context, const store::RecordPtr& record, const std::string& pod) {
    Json budget = TRY(stored_object(*record));
    const auto name = record->key.name;
    if (model::int_at(budget, ".status.observedGeneration") < model::int_at(budget, ".metadata.generation")) {
        return over_budget(fmt::format("The disruption budget {} is still being processed by the server.", name), 10);
    }
    const int64_t left = model::int_at(budget, ".status.disruptionsAllowed");
    if (left <= 0) {
        return over_budget(fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", name,
                                       model::int_at(budget, ".status.desiredHealthy"),
                                       model::int_at(budget, ".status.currentHealthy")),
                           0);
    }
    JsonObject& disrupted = base::object_at(budget, {"status", "disruptedPods"});
    if (disrupted.size() > kMaxDisrupted) {
        return over_budget(fmt::format("The disruption budget {} has too many evictions under way.", name), 10);
    }
    disrupted[pod] = context.now_text();
    base::object_at(budget, {"status"})["disruptionsAllowed"] = left - 1;
    store::Write out;
    out.op = store::Op::Update;
    out.key = record->key;
    out.if_revision = record->revision;
    out.bytes = stored_bytes(budget);
    return out;
}

Result<Draft> compose_eviction(ApiContext& context, const Call& call, const store::RecordPtr& head) {
    Draft out = TRY(draft_delete(context, call, head));
    out.code = 201;
    const Json pod = TRY(stored_object(*head));
    if (goes_freely(pod)) return out;
    const auto budgets = TRY(budgets_of(context, call, *head));
    if (budgets.empty()) return out;
    if (budgets.size() > 1) {
        return base::internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
    }
    if (unhealthy_may_go(pod, TRY(stored_object(*budgets[0])))) return out;
    out.txn.writes.push_back(TRY(spend(context, budgets[0], call.name)));
    return out;
}

Status read_eviction(Call& call) {
    const Json body = TRY(decode_document(call, call.body));
    const auto kind = base::find_string(body, {"kind"});
    if (!kind.empty() && kind != "Eviction") return base::bad_request(fmt::format("not an Eviction object: {}", kind));
    const auto name = meta_text(body, "name");
    if (!name.empty() && name != call.name)
        return base::bad_request("name in URL does not match name in Eviction object");
    if (const Json* options = base::find(body, {"deleteOptions"}); options != nullptr && options->is_object()) {
        return read_delete_options(*options, call.options);
    }
    return {};
}

}  // namespace

void evict_pod(ApiContext& context, CallPtr call, Done done) {
    auto eviction = std::make_shared<Call>(*call);
    if (auto read = read_eviction(*eviction); !read) return done(read.error());
    write(
        context, eviction,
        [&context, eviction](const store::RecordPtr& head) { return compose_eviction(context, *eviction, head); },
        [done = std::move(done)](Result<Served> result) {
            if (result)
                result->text =
                    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\",\"code\":201}\n";
            done(std::move(result));
        });
}

}  // namespace berth::api
