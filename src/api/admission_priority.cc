#include <fmt/format.h>

#include "api/admission_steps.h"
#include "api/meta.h"
#include "api/wire.h"
#include "base/mentions.h"
#include "model/kinds/path.h"

namespace berth::api {
namespace {

constexpr std::string_view kClasses = "scheduling.k8s.io/priorityclasses";
constexpr int64_t kHighestUserValue = 1'000'000'000;

Result<Json> find_class(Admission& entry, const std::string& name) {
    const auto record = entry.context.store.head({std::string(kClasses), "", name});
    if (record == nullptr) return forbidden_entry(entry, fmt::format("no PriorityClass with name {} was found", name));
    return stored_object(*record);
}

// The class that is marked as the default, the lowest when several are; null when none is.
Result<Json> default_class(Admission& entry) {
    Json found;
    for (const auto& record : TRY(entry.context.store.list({std::string(kClasses)})).records) {
        if (!base::mentions(*record->bytes, "\"globalDefault\":true")) continue;
        Json row = TRY(stored_object(*record));
        if (!model::bool_at(row, ".globalDefault")) continue;
        if (found.is_null() || model::int_at(row, ".value") < model::int_at(found, ".value")) found = std::move(row);
    }
    return found;
}

std::string policy_of(const Json& of_class) {
    const auto policy = of_class.is_null() ? std::string_view{} : model::string_at(of_class, ".preemptionPolicy");
    return std::string(policy.empty() ? "PreemptLowerPriority" : policy);
}

Status check_policy(const Admission& entry, std::string_view path, const Json& of_class) {
    const auto given = model::string_at(entry.after, path);
    const auto computed = policy_of(of_class);
    if (given.empty() || given == computed) return {};
    return forbidden_entry(entry, fmt::format("the string value of PreemptionPolicy ({}) must not be provided in pod "
                                              "spec; priority admission controller computed {} from the given "
                                              "PriorityClass name",
                                              given, computed));
}

}  // namespace

Status admit_priority(Admission& entry) {
    if (!is_kind(entry, "", "pods") || entry.before != nullptr) return {};
    JsonObject& spec = base::object_at(entry.after, {"spec"});
    const std::string name(model::string_at(entry.after, ".spec.priorityClassName"));
    const Json chosen = TRY(name.empty() ? default_class(entry) : find_class(entry, name));
    const int64_t priority = chosen.is_null() ? 0 : model::int_at(chosen, ".value");
    if (const Json* given = spec.if_contains("priority"); given != nullptr && model::to_int(*given) != priority) {
        return forbidden_entry(entry,
                               fmt::format("the integer value of priority ({}) must not be provided in pod spec; "
                                           "priority admission controller computed {} from the given "
                                           "PriorityClass name",
                                           model::to_int(*given), priority));
    }
    spec["priority"] = priority;
    if (!chosen.is_null()) spec["priorityClassName"] = meta_text(chosen, "name");
    TRY(check_policy(entry, ".spec.preemptionPolicy", chosen));
    spec["preemptionPolicy"] = policy_of(chosen);
    return {};
}

Status admit_template_priority(Admission& entry) {
    if (!is_reservation(entry) || !entry.call.subresource.empty()) return {};
    constexpr std::string_view kName = ".spec.template.spec.priorityClassName";
    const std::string name(model::string_at(entry.after, kName));
    if (name.empty()) return {};
    JsonObject& spec = base::object_at(entry.after, {"spec", "template", "spec"});
    const auto changed = [&](std::string_view path) {
        return entry.before == nullptr || model::string_at(*entry.before, path) != model::string_at(entry.after, path);
    };
    constexpr std::string_view kPolicy = ".spec.template.spec.preemptionPolicy";
    if (!model::string_at(entry.after, kPolicy).empty() && (changed(kPolicy) || changed(kName))) {
        const Json named = TRY(find_class(entry, name));
        TRY(check_policy(entry, kPolicy, named));
    }
    if (spec.contains("priority")) return {};
    // Whoever replaces the object by what he wrote once does not mean to change the priority.
    const Json* known = entry.before != nullptr && model::string_at(*entry.before, kName) == name
                            ? base::find(*entry.before, {"spec", "template", "spec", "priority"})
                            : nullptr;
    spec["priority"] = known != nullptr ? Json(*known) : Json(model::int_at(TRY(find_class(entry, name)), ".value"));
    return {};
}

Status check_priority_class(Admission& entry) {
    if (!is_kind(entry, "scheduling.k8s.io", "priorityclasses") || entry.before != nullptr) return {};
    const std::string_view name = meta_text(entry.after, "name");
    const int64_t value = model::int_at(entry.after, ".value");
    if (name.starts_with("system-")) {
        const bool known = (name == "system-cluster-critical" && value == 2'000'000'000) ||
                           (name == "system-node-critical" && value == 2'000'001'000);
        if (known) return {};
        return invalid_entry(entry, {forbidden_value("metadata.name",
                                                     "priority class names with 'system-' prefix are "
                                                     "reserved for system use only")});
    }
    if (value > kHighestUserValue) {
        return invalid_entry(entry, {forbidden_value("value", fmt::format("maximum allowed value of a user defined "
                                                                          "priority is {}",
                                                                          kHighestUserValue))});
    }
    const Json other = TRY(default_class(entry));
    if (model::bool_at(entry.after, ".globalDefault") && !other.is_null()) {
        return forbidden_entry(entry,
                               fmt::format("PriorityClass {} is already marked as default. Only one default can exist",
                                           meta_text(other, "name")));
    }
    return {};
}

}  // namespace berth::api
