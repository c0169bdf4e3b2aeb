#include <algorithm>

#include "api/admission_steps.h"
#include "api/meta.h"
#include "base/json_view.h"
#include "model/consumer_rules.h"
#include "model/kinds/path.h"
#include "model/node_reservation.h"

// Consumers are judged together with their siblings, the nodes and the quotas.
namespace berth::api {
namespace {

constexpr std::string_view kConsumers = "kuabe-arbitrator.incubator.k8s.io/consumers";

Result<model::Consumer> consumer_in(const Json& object) {
    base::JsonParser parser;
    const std::string text = base::to_text(object);
    return model::read_consumer(TRY(parser.parse(text)));
}

// Objects of a kind that can be read; one that cannot harms nobody else.
template <auto Read, class F>
Status each_stored(const ApiContext& context, std::string_view kind, F&& f) {
    for (const auto& record : TRY(context.store.list({std::string(kind)})).records) {
        base::JsonParser parser;
        const auto view = parser.parse(*record->bytes);
        if (!view) continue;
        if (auto object = Read(*view)) f(std::move(*object));
    }
    return {};
}

}  // namespace

Status admit_share_gate(Admission& entry) {
    const auto& here = entry.context.here;
    if (!here.share_gates || entry.before != nullptr || !entry.call.subresource.empty() || !is_kind(entry, "", "pods"))
        return {};
    const auto& free = here.ungated_namespaces;
    if (std::find(free.begin(), free.end(), entry.call.ns) != free.end()) return {};
    if (!base::find_string(entry.after, {"spec", "nodeName"}).empty()) return {};  // nobody places it
    Json& gates = base::object_at(entry.after, {"spec"})["schedulingGates"];
    if (!gates.is_array()) gates = JsonArray{};
    const bool held = std::any_of(gates.as_array().begin(), gates.as_array().end(), [](const auto& gate) {
        return base::find_string(gate, {"name"}) == model::kShareGate;
    });
    if (!held) gates.as_array().push_back(JsonObject{{"name", model::kShareGate}});
    return {};
}

Status check_consumer(Admission& entry) {
    if (!is_kind(entry, model::kSharesGroup, "consumers")) return {};
    const model::Consumer wanted = TRY(consumer_in(entry.after));
    std::optional<model::Consumer> before;
    if (entry.before != nullptr) {
        if (auto read = consumer_in(*entry.before)) before = std::move(*read);
    }
    std::vector<model::Consumer> others;
    std::vector<model::ResourceQuota> quotas;
    std::vector<std::string> namespaces;
    model::Resources cluster;
    TRY(each_stored<model::read_consumer>(entry.context, kConsumers, [&](model::Consumer consumer) {
        if (consumer.meta.name != wanted.meta.name) others.push_back(std::move(consumer));
    }));
    TRY(each_stored<model::read_resource_quota>(
        entry.context, "resourcequotas", [&](model::ResourceQuota quota) { quotas.push_back(std::move(quota)); }));
    TRY(each_stored<model::read_node>(entry.context, "nodes",
                                      [&](const model::Node& node) { cluster.add(model::view_of(node).allocatable); }));
    for (const auto& record : TRY(entry.context.store.list({"namespaces"})).records)
        namespaces.push_back(record->key.name);
    auto causes = model::consumer_faults(wanted, before ? &*before : nullptr, {others, quotas, namespaces, cluster});
    if (causes.empty()) return {};
    return invalid_entry(entry, std::move(causes));
}

}  // namespace berth::api
