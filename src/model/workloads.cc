#include "model/workloads.h"

#include "model/meta.h"
#include "model/read_selectors.h"
#include "model/reader.h"

namespace berth::model {

Selector selector_of(const Labels& labels) {
    std::vector<Requirement> requirements;
    for (const auto& [key, value] : labels) requirements.push_back({key, Requirement::Op::Equals, {value}});
    return Selector(std::move(requirements));
}

std::optional<WorkloadKind> workload_kind(std::string_view kind) {
    if (kind == "Service") return WorkloadKind::Service;
    if (kind == "ReplicationController") return WorkloadKind::ReplicationController;
    if (kind == "ReplicaSet") return WorkloadKind::ReplicaSet;
    if (kind == "StatefulSet") return WorkloadKind::StatefulSet;
    return std::nullopt;
}

Result<Workload> read_workload(WorkloadKind kind, JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    const Meta meta = read_meta(root);
    const Reader spec = root["spec"];
    const Reader selector = spec["selector"];
    const bool plain = kind == WorkloadKind::Service || kind == WorkloadKind::ReplicationController;
    Workload out{kind, meta.ns.empty() ? "default" : meta.ns, meta.name, Selector::nothing()};
    if (selector.present()) out.selector = plain ? selector_of(read_labels(selector)) : *read_selector(selector);
    if (!trouble.empty()) return base::bad_request("\"" + meta.full_name() + "\": " + trouble);
    return out;
}

Result<Namespace> read_namespace(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    Meta meta = read_meta(root);
    if (!trouble.empty()) return base::bad_request("Namespace \"" + meta.name + "\": " + trouble);
    if (!meta.name.empty()) meta.labels.set("kubernetes.io/metadata.name", meta.name);  // as the API server has it
    return Namespace{std::move(meta.name), std::move(meta.labels)};
}

}  // namespace berth::model
