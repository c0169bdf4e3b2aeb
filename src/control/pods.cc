#include "control/pods.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "model/times.h"

namespace berth::control {

namespace {

// nullptr: it has none of that type that is True.
const Json* true_condition(const Object& object, std::string_view type) {
    const Json* conditions = base::find(object.document(), {"status", "conditions"});
    if (!conditions || !conditions->is_array()) return nullptr;
    for (const auto& condition : conditions->get_array()) {
        const bool is_it = base::find_string(condition, {"type"}) == type;
        if (is_it && base::find_string(condition, {"status"}) == "True") return &condition;
    }
    return nullptr;
}

bool is_no_value(const Json& value) {
    return value.is_null() || value == Json(0) || value == Json("") || value == Json(JsonArray());
}

}  // namespace

bool is_ready(const Object& pod) {
    return true_condition(pod, "Ready") != nullptr;
}

std::optional<base::Time> ready_since(const Object& pod) {
    const Json* ready = true_condition(pod, "Ready");
    if (!ready || is_deleting(pod)) return std::nullopt;
    const auto since = model::parse_time(base::find_string(*ready, {"lastTransitionTime"}));
    return since ? *since : pod.meta.created;
}

std::string_view end_of_job(const Object& job) {
    for (const std::string_view type : {"Complete", "Failed"}) {
        if (true_condition(job, type)) return type;
    }
    return "";
}

bool says(const Object& object, const JsonObject& status) {
    return std::all_of(status.begin(), status.end(), [&](const auto& field) {
        const Json* has = base::find(object.document(), {"status", std::string_view(field.key())});
        return has ? *has == field.value() : is_no_value(field.value());
    });
}

bool is_terminal(const Object& pod) {
    return pod.phase == "Succeeded" || pod.phase == "Failed";
}

JsonObject controller_reference(const Object& owner, std::string_view kind, std::string_view version) {
    return {{"apiVersion", version}, {"kind", kind},       {"name", owner.meta.name},
            {"uid", owner.meta.uid}, {"controller", true}, {"blockOwnerDeletion", true}};
}

Json pod_from_template(const Json& pod_template, const Object& owner, std::string_view owner_kind,
                       std::string_view owner_version) {
    Json pod(JsonObject{{"kind", "Pod"}, {"apiVersion", "v1"}});
    JsonObject& meta = base::object_at(pod, {"metadata"});
    for (const auto* field : {"labels", "annotations", "finalizers"}) {
        if (const Json* value = base::find(pod_template, {"metadata", field})) meta[field] = *value;
    }
    meta["generateName"] = owner.meta.name + "-";
    meta["namespace"] = owner.meta.ns;
    meta["ownerReferences"] = JsonArray{controller_reference(owner, owner_kind, owner_version)};
    if (const Json* spec = base::find(pod_template, {"spec"})) pod.as_object()["spec"] = *spec;
    return pod;
}

void sort_for_deletion(std::vector<ObjectPtr>& pods) {
    const auto rank = [](const ObjectPtr& pod) {
        return std::tuple(!pod->node.empty(), is_ready(*pod), -pod->meta.created.nanos, pod->meta.name);
    };
    std::sort(pods.begin(), pods.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

int64_t integer_at(const Json& document, std::initializer_list<std::string_view> path, int64_t otherwise) {
    const Json* value = base::find(document, path);
    return value && value->is_int64() ? value->get_int64() : otherwise;
}

int64_t scaled(const Json* value, int64_t total, bool round_up, int64_t otherwise) {
    if (!value) return otherwise;
    if (value->is_int64()) return value->get_int64();
    if (!value->is_string()) return otherwise;
    const std::string_view text = value->get_string();
    int64_t percent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
    if (error != std::errc() || end == text.data() + text.size() || *end != '%') return otherwise;
    return (percent * total + (round_up ? 99 : 0)) / 100;
}

}  // namespace berth::control
