#include "ledger/workloads.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::ledger {
namespace {

using model::Requirement;
using model::WorkloadKind;

std::string key_of(WorkloadKind kind, std::string_view ns, std::string_view name) {
    return fmt::format("{}/{}/{}", static_cast<int>(kind), ns, name);
}

std::string shelf_of(std::string_view ns, std::string_view label, std::string_view value) {
    return fmt::format("{}/{}={}", ns, label, value);
}

// Equal labels are asked for once; of two values for one label the later counts.
void merge_labels(std::vector<Requirement>& into, const std::vector<Requirement>& labels) {
    for (const auto& requirement : labels) {
        const auto known =
            std::find_if(into.begin(), into.end(), [&](const auto& other) { return other.key == requirement.key; });
        if (known == into.end()) {
            into.push_back(requirement);
        } else {
            *known = requirement;
        }
    }
}

}  // namespace

// "" for a Service that selects nothing, or everything: it says nothing about who belongs together.
std::string Workloads::shelf(const model::Workload& service) const {
    const auto& labels = service.selector.requirements();
    return labels.empty() ? "" : shelf_of(service.ns, labels.front().key, labels.front().values.front());
}

void Workloads::put(model::Workload workload) {
    remove(workload.kind, workload.ns, workload.name);
    std::string key = key_of(workload.kind, workload.ns, workload.name);
    if (workload.kind == WorkloadKind::Service) {
        if (std::string label = shelf(workload); !label.empty()) services_by_label_[std::move(label)].push_back(key);
    }
    by_name_.emplace(std::move(key), std::move(workload));
}

void Workloads::remove(WorkloadKind kind, std::string_view ns, std::string_view name) {
    const auto found = by_name_.find(key_of(kind, ns, name));
    if (found == by_name_.end()) return;
    if (kind == WorkloadKind::Service) {
        const auto filed = services_by_label_.find(shelf(found->second));
        if (filed != services_by_label_.end()) {
            std::erase(filed->second, found->first);
            if (filed->second.empty()) services_by_label_.erase(filed);
        }
    }
    by_name_.erase(found);
}

const model::Workload* Workloads::controller_of(std::string_view ns, const model::OwnerRef& controller) const {
    static constexpr struct {
        std::string_view api_version, kind;
        WorkloadKind workload;
    } kKnown[] = {{"v1", "ReplicationController", WorkloadKind::ReplicationController},
                  {"apps/v1", "ReplicaSet", WorkloadKind::ReplicaSet},
                  {"apps/v1", "StatefulSet", WorkloadKind::StatefulSet}};
    for (const auto& known : kKnown) {
        if (controller.api_version != known.api_version || controller.kind != known.kind) continue;
        const auto found = by_name_.find(key_of(known.workload, ns, controller.name));
        return found == by_name_.end() ? nullptr : &found->second;
    }
    return nullptr;
}

Selector Workloads::siblings(std::string_view ns, const Labels& labels, const model::OwnerRef* controller) const {
    std::vector<Requirement> all;
    for (const auto& [label, value] : labels) {
        if (services_by_label_.empty()) break;
        const auto filed = services_by_label_.find(shelf_of(ns, label, value));
        if (filed == services_by_label_.end()) continue;
        for (const auto& key : filed->second) {
            const auto& service = by_name_.find(key)->second;
            if (service.selector.matches(labels)) merge_labels(all, service.selector.requirements());
        }
    }
    const model::Workload* found = controller ? controller_of(ns, *controller) : nullptr;
    if (found) {
        const auto& own = found->selector.requirements();
        if (found->kind == WorkloadKind::ReplicationController) merge_labels(all, own);
        if (found->kind != WorkloadKind::ReplicationController) all.insert(all.end(), own.begin(), own.end());
    }
    return Selector(std::move(all));
}

}  // namespace berth::ledger
