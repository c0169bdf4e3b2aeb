#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "api/admission_steps.h"
#include "api/meta.h"
#include "api/wire.h"
#include "base/json_view.h"
#include "model/kinds/path.h"
#include "model/names.h"
#include "model/pod.h"
#include "model/quantity.h"

namespace berth::api {
namespace {

// Guaranteed: every container limits cpu and memory and requests just that. BestEffort: none says anything.
std::string_view qos_class(const Json& pod) {
    bool guaranteed = true, best_effort = true;
    for (const auto* list : {".spec.containers", ".spec.initContainers"}) {
        for (const auto& container : model::list_at(pod, list)) {
            for (const auto* name : {"cpu", "memory"}) {
                const auto limit = base::find_string(container, {"resources", "limits", name});
                const auto request = base::find_string(container, {"resources", "requests", name});
                if (!limit.empty() || !request.empty()) best_effort = false;
                if (limit.empty() || (request != limit && !request.empty())) guaranteed = false;
            }
        }
    }
    return best_effort ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

bool tolerates(const JsonArray& tolerations, std::string_view key) {
    return std::any_of(tolerations.begin(), tolerations.end(), [&](const Json& toleration) {
        const auto effect = model::string_at(toleration, ".effect");
        const auto its_key = model::string_at(toleration, ".key");
        return (its_key == key || its_key.empty()) && (effect.empty() || effect == "NoExecute");
    });
}

void add_node_tolerations(JsonObject& spec) {
    Json& list = spec["tolerations"];
    if (!list.is_array()) list = JsonArray{};
    for (const auto* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
        if (tolerates(list.as_array(), key)) continue;
        list.as_array().emplace_back(
            JsonObject{{"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 300}});
    }
}

void check_amounts(const Json& container, const std::string& path, std::vector<base::Cause>& causes) {
    for (const auto* part : {"requests", "limits"}) {
        for (const auto& [name, value] : model::members_at(container, fmt::format(".resources.{}", part))) {
            const std::string field = fmt::format("{}.resources.{}[{}]", path, part, std::string_view(name));
            const auto amount = value.is_string() ? Quantity::parse(value.as_string()) : Quantity();
            if (amount && amount->is_negative()) {
                causes.push_back(invalid_value(field, amount->text(), "must be greater than or equal to 0"));
            }
            if (std::string_view(part) == "limits") continue;
            auto limit = Quantity::parse(base::find_string(container, {"resources", "limits", name}));
            if (amount && limit && *amount > *limit) {
                causes.push_back(invalid_value(path + ".resources.requests", amount->text(),
                                               fmt::format("must be less than or equal to {} limit of {}",
                                                           std::string_view(name), limit->text())));
            }
        }
    }
}

void check_containers(const Json& pod, std::string_view list, std::set<std::string>& names,
                      std::vector<base::Cause>& causes) {
    const auto& containers = model::list_at(pod, fmt::format(".spec.{}", list));
    for (size_t i = 0; i < containers.size(); ++i) {
        const std::string path = fmt::format("spec.{}[{}]", list, i);
        const std::string name(model::string_at(containers[i], ".name"));
        if (name.empty())
            causes.push_back(required_value(path + ".name"));
        else if (auto fault = model::dns1123_label_fault(name))
            causes.push_back(invalid_value(path + ".name", name, *fault));
        else if (!names.insert(name).second) {
            causes.push_back({"FieldValueDuplicate", fmt::format("Duplicate value: \"{}\"", name), path + ".name"});
        }
        if (model::string_at(containers[i], ".image").empty()) causes.push_back(required_value(path + ".image"));
        check_amounts(containers[i], path, causes);
    }
}

// What the scheduler could not read is refused here, with the field's path.
void check_readable(const Json& pod, std::vector<base::Cause>& causes) {
    thread_local base::JsonParser parser;
    const std::string text = base::to_text(pod);
    auto view = parser.parse(text);
    if (!view) return;
    auto read = model::read_pod(*view);
    if (read) return;
    const std::string& message = read.error().message;
    const auto colon = message.find(": ");
    causes.push_back({"FieldValueInvalid",
                      "Invalid value: " + (colon == std::string::npos ? message : message.substr(colon + 2)),
                      colon == std::string::npos ? "spec" : message.substr(0, colon)});
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

bool only_adds(const JsonArray& before, const JsonArray& after) {
    return std::all_of(before.begin(), before.end(),
                       [&](const Json& item) { return std::find(after.begin(), after.end(), item) != after.end(); });
}

Status check_pod_update(Entry& entry) {
    if (entry.call.subresource == "status" || entry.call.subresource == "ephemeralcontainers") return {};
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

Status settle_pod(Entry& entry) {
    if (!is_kind(entry, "", "pods") || entry.before != nullptr) return {};
    JsonObject& spec = base::object_at(entry.after, {"spec"});
    if (model::string_at(entry.after, ".spec.serviceAccountName").empty()) spec["serviceAccountName"] = "default";
    spec["serviceAccount"] = spec["serviceAccountName"];
    add_node_tolerations(spec);
    entry.after.as_object()["status"] = JsonObject{{"phase", "Pending"}, {"qosClass", qos_class(entry.after)}};
    return {};
}

Status check_pod(Entry& entry) {
    if (!is_kind(entry, "", "pods")) return {};
    if (entry.before != nullptr) return check_pod_update(entry);
    std::vector<base::Cause> causes;
    std::set<std::string> names;
    if (model::list_at(entry.after, ".spec.containers").empty()) causes.push_back(required_value("spec.containers"));
    for (const auto* list : {"containers", "initContainers"}) check_containers(entry.after, list, names, causes);
    if (causes.empty()) check_readable(entry.after, causes);
    if (causes.empty()) return {};
    return invalid_entry(entry, std::move(causes));
}

}  // namespace berth::api
