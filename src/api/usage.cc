#include "api/usage.h"

#include <map>

#include "api/filter.h"
#include "api/meta.h"
#include "api/wire.h"
#include "model/kinds/path.h"
#include "model/quantity.h"

namespace berth::api {
namespace {

struct Amounts {
    Quantity cpu;
    Quantity memory;

    void add(const Json& container) {
        const auto read = [&](std::string_view name) {
            auto parsed = Quantity::parse(base::find_string(container, {"resources", "requests", name}));
            return parsed ? *parsed : Quantity{};
        };
        cpu += read("cpu");
        memory += read("memory");
    }
    void add(const Amounts& other) {
        cpu += other.cpu;
        memory += other.memory;
    }
    Json json() const { return JsonObject{{"cpu", cpu.text()}, {"memory", memory.text()}}; }
};

struct PodUsage {
    Json pod;
    std::vector<std::pair<std::string, Amounts>> containers;

    Amounts total() const {
        Amounts out;
        for (const auto& [name, amounts] : containers) out.add(amounts);
        return out;
    }
};

std::optional<PodUsage> usage_of(const store::Record& record) {
    auto pod = stored_object(record);
    if (!pod || model::string_at(*pod, ".status.phase") != "Running") return std::nullopt;
    PodUsage out;
    for (const auto& container : model::list_at(*pod, ".spec.containers")) {
        Amounts amounts;
        amounts.add(container);
        out.containers.emplace_back(model::string_at(container, ".name"), amounts);
    }
    out.pod = std::move(*pod);
    return out;
}

Json heading(const ApiContext& context, const Call& call, const Json& object) {
    JsonObject meta{{"name", meta_text(object, "name")}, {"creationTimestamp", context.now_text()}};
    if (call.kind->namespaced) meta["namespace"] = meta_text(object, "namespace");
    if (const Json* labels = base::find(object, {"metadata", "labels"})) meta["labels"] = *labels;
    return JsonObject{{"kind", call.kind->kind},
                      {"apiVersion", call.kind->api_version()},
                      {"metadata", std::move(meta)},
                      {"timestamp", context.now_text()},
                      {"window", "30s"}};
}

Result<JsonArray> pod_rows(ApiContext& context, const Call& call, const Filter& filter) {
    store::Listing listing{"pods"};
    if (!call.ns.empty()) listing.ns = call.ns;
    JsonArray out;
    for (const auto& record : TRY(context.store.list(listing)).records) {
        if ((!call.name.empty() && record->key.name != call.name) || !filter.matches(*record)) continue;
        const auto usage = usage_of(*record);
        if (!usage) continue;
        Json row = heading(context, call, usage->pod);
        JsonArray containers;
        for (const auto& [name, amounts] : usage->containers) {
            containers.emplace_back(JsonObject{{"name", name}, {"usage", amounts.json()}});
        }
        row.as_object()["containers"] = std::move(containers);
        out.push_back(std::move(row));
    }
    return out;
}

Result<std::map<std::string, Amounts>> node_sums(ApiContext& context) {
    std::map<std::string, Amounts> out;
    for (const auto& record : TRY(context.store.list({"pods"})).records) {
        const auto usage = usage_of(*record);
        if (usage) out[std::string(model::string_at(usage->pod, ".spec.nodeName"))].add(usage->total());
    }
    return out;
}

Result<JsonArray> node_rows(ApiContext& context, const Call& call, const Filter& filter) {
    auto sums = TRY(node_sums(context));
    JsonArray out;
    for (const auto& record : TRY(context.store.list({"nodes"})).records) {
        if ((!call.name.empty() && record->key.name != call.name) || !filter.matches(*record)) continue;
        Json row = heading(context, call, TRY(stored_object(*record)));
        row.as_object()["usage"] = sums[record->key.name].json();
        out.push_back(std::move(row));
    }
    return out;
}

}  // namespace

bool is_usage(const Call& call) {
    return call.kind->group == "metrics.k8s.io";
}

Result<Response> answer_usage(ApiContext& context, const Call& call) {
    const Filter filter = TRY(Filter::parse(*call.kind, call.options));
    JsonArray rows = TRY(call.kind->namespaced ? pod_rows(context, call, filter) : node_rows(context, call, filter));
    if (!call.name.empty()) {
        if (rows.empty()) return not_found_error(call.resource(), call.name);
        return json_response(200, base::to_text(rows.front()) + "\n");
    }
    const Json list = JsonObject{{"kind", call.kind->list_kind},
                                 {"apiVersion", call.kind->api_version()},
                                 {"metadata", JsonObject{}},
                                 {"items", std::move(rows)}};
    return json_response(200, base::to_text(list) + "\n");
}

}  // namespace berth::api
