#include "ledger/priority_classes.h"

#include <fmt/format.h>

namespace berth::ledger {
namespace {

model::PriorityClass system_class(std::string name, int32_t value) {
    model::PriorityClass out;
    out.meta.name = std::move(name);
    out.value = value;
    return out;
}

}  // namespace

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
