#include "model/kinds/convert.h"

#include <algorithm>

#include "model/kinds/path.h"

namespace berth::model {
namespace {

// core/v1 and events.k8s.io/v1
constexpr std::pair<std::string_view, std::string_view> kEventNames[] = {{"involvedObject", "regarding"},
                                                                         {"message", "note"},
                                                                         {"source", "deprecatedSource"},
                                                                         {"firstTimestamp", "deprecatedFirstTimestamp"},
                                                                         {"lastTimestamp", "deprecatedLastTimestamp"},
                                                                         {"count", "deprecatedCount"},
                                                                         {"reportingComponent", "reportingController"}};

void rename(JsonObject& object, std::string_view from, std::string_view to) {
    Json* value = object.if_contains(from);
    if (value == nullptr) return;
    Json moved = std::move(*value);
    object.erase(from);
    object[to] = std::move(moved);
}

JsonObject& object_in(JsonObject& object, std::string_view key) {
    Json& value = object[key];
    if (!value.is_object()) value = JsonObject();
    return value.get_object();
}

// ---- HorizontalPodAutoscaler: what v1 lacks, as annotations -------------------------------------------------------

struct Kept {
    std::string_view section, member, annotation;
};

constexpr Kept kKept[] = {{"spec", "metrics", "autoscaling.alpha.kubernetes.io/metrics"},
                          {"spec", "behavior", "autoscaling.alpha.kubernetes.io/behavior"},
                          {"status", "currentMetrics", "autoscaling.alpha.kubernetes.io/current-metrics"},
                          {"status", "conditions", "autoscaling.alpha.kubernetes.io/conditions"}};

// v1's one metric is the use of cpu in percent; the paths of its value in spec and status.
struct Percentage {
    std::string_view section, list, value, v1;
};

constexpr Percentage kPercentages[] = {
    {"spec", "metrics", ".resource.target.averageUtilization", "targetCPUUtilizationPercentage"},
    {"status", "currentMetrics", ".resource.current.averageUtilization", "currentCPUUtilizationPercentage"}};

bool is_cpu_percentage(const Json& metric, std::string_view value) {
    return string_at(metric, ".type") == "Resource" && string_at(metric, ".resource.name") == "cpu" &&
           at_path(metric, value) != nullptr;
}

void percentage_to_v1(JsonObject& object, const Percentage& p) {
    JsonObject& section = object_in(object, p.section);
    Json* list = section.if_contains(p.list);
    if (list == nullptr || !list->is_array()) return;
    auto& metrics = list->get_array();
    const auto cpu =
        std::find_if(metrics.begin(), metrics.end(), [&](auto& m) { return is_cpu_percentage(m, p.value); });
    if (cpu == metrics.end()) return;
    const int64_t percent = int_at(*cpu, p.value);
    metrics.erase(cpu);
    if (metrics.empty()) section.erase(p.list);
    section[p.v1] = percent;
}

void percentage_to_v2(JsonObject& object, const Percentage& p) {
    JsonObject& section = object_in(object, p.section);
    const Json* value = section.if_contains(p.v1);
    if (value == nullptr) return;
    const Json percent = *value;
    section.erase(p.v1);
    JsonObject amount{{"averageUtilization", percent}};
    if (p.section == "spec") amount["type"] = "Utilization";
    JsonObject resource{{"name", "cpu"}, {p.section == "spec" ? "target" : "current", std::move(amount)}};
    Json& list = section[p.list];
    if (!list.is_array()) list = JsonArray();
    list.get_array().insert(list.get_array().begin(),
                            Json(JsonObject{{"type", "Resource"}, {"resource", std::move(resource)}}));
}

void keep_as_annotation(JsonObject& object, const Kept& kept) {
    JsonObject& section = object_in(object, kept.section);
    const Json* value = section.if_contains(kept.member);
    if (value == nullptr) return;
    const std::string text = base::to_text(*value);
    section.erase(kept.member);
    object_in(object_in(object, "metadata"), "annotations")[kept.annotation] = text;
}

void take_from_annotation(JsonObject& object, const Kept& kept) {
    JsonObject& meta = object_in(object, "metadata");
    JsonObject& annotations = object_in(meta, "annotations");
    const Json* text = annotations.if_contains(kept.annotation);
    if (text != nullptr) {
        const auto value = base::parse_json(string_at(*text, ""));
        // What cannot be read stays an annotation.
        if (value.ok()) {
            annotations.erase(kept.annotation);
            object_in(object, kept.section)[kept.member] = *value;
        }
    }
    JsonObject& left = object_in(object_in(object, "metadata"), "annotations");
    if (left.empty()) object_in(object, "metadata").erase("annotations");
}

void autoscaler_to_v1(JsonObject& object) {
    for (const auto& p : kPercentages) percentage_to_v1(object, p);
    for (const auto& kept : kKept) keep_as_annotation(object, kept);
}

void autoscaler_to_v2(JsonObject& object) {
    for (const auto& kept : kKept) take_from_annotation(object, kept);
    for (const auto& p : kPercentages) percentage_to_v2(object, p);
}

}  // namespace

Json to_stored(const Kind& kind, Json object) {
    if (kind.stored_kind.empty() || !object.is_object()) return object;
    auto& members = object.get_object();
    if (kind.stored_kind == "Event") {
        for (const auto& [core, events] : kEventNames) rename(members, events, core);
    } else if (kind.stored_kind == "HorizontalPodAutoscaler") {
        autoscaler_to_v2(members);
    }
    members["apiVersion"] =
        kind.stored_group.empty() ? kind.stored_version : kind.stored_group + "/" + kind.stored_version;
    return object;
}

Json from_stored(const Kind& kind, Json object) {
    if (kind.stored_kind.empty() || !object.is_object()) return object;
    auto& members = object.get_object();
    if (kind.stored_kind == "Event") {
        for (const auto& [core, events] : kEventNames) rename(members, core, events);
    } else if (kind.stored_kind == "HorizontalPodAutoscaler") {
        autoscaler_to_v1(members);
    }
    members["apiVersion"] = kind.api_version();
    return object;
}

}  // namespace berth::model
