#include "ledger/intake.h"

#include <fmt/format.h>

#include "base/json_view.h"
#include "model/storage.h"
#include "model/workloads.h"

namespace berth::ledger {
namespace {

template <class T>
Result<std::shared_ptr<const T>> shared(Result<T> read, uint64_t revision) {
    if (!read) return std::move(read).error();
    if (revision != 0) read->meta.revision = revision;
    return std::shared_ptr<const T>(std::make_shared<T>(*std::move(read)));
}

model::PriorityClass system_class(std::string name, int32_t value) {
    model::PriorityClass out;
    out.meta.name = std::move(name);
    out.value = value;
    return out;
}

}  // namespace

Result<bool> put_supporting(std::string_view kind, JsonView object, Ledger& ledger, uint64_t revision) {
    auto& volumes = ledger.volumes();
    if (const auto workload = model::workload_kind(kind)) {
        ledger.put(TRY(model::read_workload(*workload, object)));
    } else if (kind == "Namespace") {
        ledger.put(TRY(model::read_namespace(object)));
    } else if (kind == "PersistentVolume") {
        volumes.put(TRY(shared(model::read_persistent_volume(object), revision)));
    } else if (kind == "PersistentVolumeClaim") {
        volumes.put(TRY(shared(model::read_persistent_volume_claim(object), revision)));
    } else if (kind == "StorageClass") {
        volumes.put(TRY(shared(model::read_storage_class(object), revision)));
    } else if (kind == "CSINode") {
        volumes.put(TRY(shared(model::read_csi_node(object), revision)));
    } else if (kind == "CSIDriver") {
        volumes.put(TRY(shared(model::read_csi_driver(object), revision)));
    } else if (kind == "CSIStorageCapacity") {
        volumes.put(TRY(shared(model::read_csi_storage_capacity(object), revision)));
    } else if (kind == "VolumeAttachment") {
        volumes.put(TRY(shared(model::read_volume_attachment(object), revision)));
    } else if (kind == "PodDisruptionBudget") {
        ledger.budgets().put(TRY(shared(model::read_pod_disruption_budget(object), revision)));
    } else {
        return false;
    }
    return true;
}

void remove_supporting(std::string_view kind, std::string_view ns, std::string_view name, Ledger& ledger) {
    const std::string full_name = ns.empty() ? std::string(name) : fmt::format("{}/{}", ns, name);
    auto& volumes = ledger.volumes();
    if (kind == "Namespace") ledger.remove_namespace(name);
    if (const auto workload = model::workload_kind(kind)) {
        ledger.remove_workload(*workload, ns.empty() ? "default" : ns, name);
    }
    if (kind == "PersistentVolume") volumes.remove_volume(full_name, "");
    if (kind == "PersistentVolumeClaim") volumes.remove_claim(full_name, "");
    if (kind == "StorageClass") volumes.remove_class(full_name, "");
    if (kind == "CSINode") volumes.remove_csi_node(full_name, "");
    if (kind == "CSIDriver") volumes.remove_csi_driver(full_name, "");
    if (kind == "CSIStorageCapacity") volumes.remove_capacity(full_name, "");
    if (kind == "VolumeAttachment") volumes.remove_attachment(full_name, "");
    if (kind == "PodDisruptionBudget") ledger.budgets().remove(full_name, "");
}

void default_storage_class(Ledger& ledger) {
    std::shared_ptr<const model::StorageClass> chosen;
    for (const auto& found : ledger.volumes().classes().sorted()) {
        if (found->is_default && (!chosen || found->meta.created > chosen->meta.created)) chosen = found;
    }
    if (!chosen) return;
    for (const auto& claim : ledger.volumes().claims().sorted()) {
        if (claim->storage_class || !claim->volume.empty()) continue;
        auto changed = std::make_shared<model::PersistentVolumeClaim>(*claim);
        changed->storage_class = chosen->meta.name;
        ledger.volumes().put(std::shared_ptr<const model::PersistentVolumeClaim>(std::move(changed)));
    }
}

PriorityClasses::PriorityClasses() {
    put(system_class("system-cluster-critical", 2000000000));
    put(system_class("system-node-critical", 2000001000));
}

void PriorityClasses::put(model::PriorityClass made) {
    std::string name = made.meta.name;
    classes_.insert_or_assign(std::move(name), std::move(made));
}

void PriorityClasses::remove(std::string_view name) {
    const auto found = classes_.find(name);
    if (found != classes_.end()) classes_.erase(found);
}

const model::PriorityClass* PriorityClasses::find(std::string_view name) const {
    const auto found = classes_.find(name);
    return found == classes_.end() ? nullptr : &found->second;
}

Status PriorityClasses::apply(model::Pod& pod) const {
    if (pod.has_priority) return {};
    const model::PriorityClass* chosen = nullptr;
    for (const auto& [name, made] : classes_) {
        const bool fallback = pod.priority_class.empty() && made.global_default;
        // Of several defaults the API server takes the lowest.
        if (fallback && (!chosen || made.value < chosen->value)) chosen = &made;
        if (!pod.priority_class.empty() && name == pod.priority_class) chosen = &made;
    }
    if (!chosen && !pod.priority_class.empty()) {
        return base::bad_request(fmt::format("no PriorityClass with name {} was found", pod.priority_class));
    }
    if (!chosen) return {};
    auto spec = std::make_shared<model::PodSpec>(*pod.spec);
    spec->priority = chosen->value;
    spec->never_preempts = spec->never_preempts || chosen->never_preempts;
    pod.spec = std::move(spec);
    pod.has_priority = true;
    return {};
}

}  // namespace berth::ledger
