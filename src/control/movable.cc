#include "control/movable.h"

#include <algorithm>
#include <limits>

#include "control/pods.h"
#include "model/kinds/path.h"
#include "model/quantity.h"

namespace berth::control {
namespace {

constexpr int64_t kForbidden = std::numeric_limits<int32_t>::max();  // an eviction cost
constexpr int64_t kCritical = 2'000'000'000;                         // system-cluster-critical and above

bool has(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_volume(const Object& pod, std::initializer_list<std::string_view> kinds) {
    const auto& volumes = model::list_at(pod.document(), ".spec.volumes");
    return std::any_of(volumes.begin(), volumes.end(), [&](const Json& volume) {
        return volume.is_object() && std::any_of(kinds.begin(), kinds.end(), [&](std::string_view kind) {
                   return volume.get_object().contains(kind);
               });
    });
}

}  // namespace

int64_t cost_of(const Object& pod, std::string_view annotation) {
    const auto* text = pod.meta.annotations.find(annotation);
    const auto cost = text ? Quantity::parse(*text) : Result<Quantity>(Quantity());
    return cost ? cost->value() : 0;
}

bool may_be_moved(const Object& pod, const Movable& rules) {
    const auto* controller = pod.meta.controller();
    if (!controller || controller->kind == "DaemonSet" || controller->kind == "Node" || !is_active(pod)) return false;
    if (cost_of(pod, "scheduling.koordinator.sh/eviction-cost") >= kForbidden) return false;
    if (pod.meta.annotations.has("descheduler.alpha.kubernetes.io/evict")) return true;
    if (has(rules.not_namespaces, pod.meta.ns)) return false;
    if (!rules.namespaces.empty() && !has(rules.namespaces, pod.meta.ns)) return false;
    const bool chosen = std::any_of(rules.labels.begin(), rules.labels.end(),
                                    [&](const auto& selector) { return selector.matches(pod.meta.labels); });
    if (!chosen && !rules.labels.empty()) return false;
    const int64_t priority = model::int_at(pod.document(), ".spec.priority");
    if (!rules.critical && priority >= kCritical) return false;
    if (rules.below_priority && priority >= *rules.below_priority) return false;
    if (!rules.local_storage && has_volume(pod, {"emptyDir", "hostPath"})) return false;
    return rules.claims || !has_volume(pod, {"persistentVolumeClaim", "ephemeral"});
}

}  // namespace berth::control
