#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "api/admission_steps.h"
#include "api/meta.h"
#include "model/kinds/path.h"
#include "model/pod_qos.h"

namespace berth::api {
namespace {

bool tolerates(const JsonArray& tolerations, std::string_view key) {
    return std::any_of(tolerations.begin(), tolerations.end(), [&](const Json& toleration) {
        const auto effect = model::string_at(toleration, ".effect");
        const auto its_key = model::string_at(toleration, ".key");
        return (its_key == key || its_key.empty()) && (effect.empty() || effect == "NoExecute");
    });
}

void add_node_tolerations(JsonObject& spec) {
    Json& list = spec["tolerations"];
    if (!list.is_array()) list.emplace_array();
    for (const auto* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
        if (tolerates(list.as_array(), key)) continue;
        list.as_array().emplace_back(
            JsonObject({{"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 300}},
                       spec.storage()));
    }
}

// The parts of a spec that an update may change, made equal to the old ones.
void forgive_containers(const Json& before, Json& spec, std::string_view list, bool resize) {
    Json* now = spec.as_object().if_contains(list);
    const auto& old = model::list_at(before, fmt::format(".spec.{}", list));
    if (now == nullptr || !now->is_array() || now->as_array().size() != old.size()) return;
    for (size_t i = 0; i < old.size(); ++i) {
        JsonObject& container = now->as_array()[i].as_object();
        if (const Json* image = old[i].as_object().if_contains("image")) container["image"] = *image;
        if (!resize) continue;
        for (const auto* field : {"resources", "resizePolicy"}) {
            if (const Json* value = old[i].as_object().if_contains(field))
                container[field] = *value;
            else
                container.erase(field);
        }
    }
}

// The same for items with the same members, in whatever order.
std::string sorted_text(const Json& item) {
    if (!item.is_object()) return base::to_text(item);
    std::set<std::string> members;
    for (const auto& [key, value] : item.as_object()) members.insert(base::to_text(key) + base::to_text(value));
    return fmt::format("{}", fmt::join(members, ","));
}

bool only_adds(const JsonArray& before, const JsonArray& after) {
    std::set<std::string> known;
    for (const auto& item : after) known.insert(sorted_text(item));
    return std::all_of(before.begin(), before.end(),
                       [&](const Json& item) { return known.contains(sorted_text(item)); });
}

// What runs no more does not run again.
Status check_phase(const Admission& entry) {
    const auto before = model::string_at(*entry.before, ".status.phase");
    const auto after = model::string_at(entry.after, ".status.phase");
    if ((before != "Succeeded" && before != "Failed") || after == before) return {};
    return invalid_entry(entry, {forbidden_value("status.phase", fmt::format("the pod has {} and stays so", before))});
}

Status check_ephemeral(const Admission& entry) {
    const auto others = [](const Json& pod) {
        JsonObject spec = pod.at("spec").as_object();
        spec.erase("ephemeralContainers");
        return spec;
    };
    if (others(*entry.before) == others(entry.after)) return {};
    return invalid_entry(entry, {forbidden_value("spec", "only `spec.ephemeralContainers` may change here")});
}

Status check_pod_update(Admission& entry) {
    if (entry.call.subresource == "status") return check_phase(entry);
    if (entry.call.subresource == "ephemeralcontainers") return check_ephemeral(entry);
    const Json& before = *entry.before;
    Json spec = entry.after.at("spec");
    for (const auto* list : {"containers", "initContainers"}) {
        forgive_containers(before, spec, list, entry.call.subresource == "resize");
    }
    std::vector<std::string_view> free{"activeDeadlineSeconds", "terminationGracePeriodSeconds"};
    if (only_adds(model::list_at(before, ".spec.tolerations"), model::list_at(entry.after, ".spec.tolerations"))) {
        free.emplace_back("tolerations");
    }
    if (only_adds(model::list_at(entry.after, ".spec.schedulingGates"),
                  model::list_at(before, ".spec.schedulingGates"))) {
        free.emplace_back("schedulingGates");
    }
    if (!model::list_at(before, ".spec.schedulingGates").empty()) {
        free.insert(free.end(), {"nodeSelector", "affinity"});
    }
    for (const auto field : free) {
        if (const Json* value = before.at("spec").as_object().if_contains(field))
            spec.as_object()[field] = *value;
        else
            spec.as_object().erase(field);
    }
    if (spec == before.at("spec")) return {};
    return invalid_entry(entry, {forbidden_value("spec",
                                                 "pod updates may not change fields other than "
                                                 "`spec.containers[*].image`,`spec.initContainers[*].image`,"
                                                 "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions "
                                                 "to existing tolerations),`spec.terminationGracePeriodSeconds` "
                                                 "(allow it to be set to 1 if it was previously negative)")});
}

}  // namespace

Status admit_pod(Admission& entry) {
    if (!is_kind(entry, "", "pods") || entry.before != nullptr) return {};
    JsonObject& spec = base::object_at(entry.after, {"spec"});
    if (model::string_at(entry.after, ".spec.serviceAccountName").empty()) spec["serviceAccountName"] = "default";
    spec["serviceAccount"] = spec["serviceAccountName"];
    add_node_tolerations(spec);
    if (brings_status(entry)) return {};
    JsonObject status{{"phase", "Pending"}, {"qosClass", model::text_of(model::kube_qos_of_spec(entry.after))}};
    if (!model::list_at(entry.after, ".spec.schedulingGates").empty()) {
        status["conditions"] =
            JsonArray{JsonObject{{"type", "PodScheduled"},
                                 {"status", "False"},
                                 {"reason", "SchedulingGated"},
                                 {"message", "Scheduling is blocked due to non-empty scheduling gates"}}};
    }
    entry.after.as_object()["status"] = std::move(status);
    return {};
}

Status check_pod(Admission& entry) {
    if (!is_kind(entry, "", "pods") || entry.before == nullptr) return {};
    return check_pod_update(entry);
}

}  // namespace berth::api
