#include "model/kinds/validate_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/time_zone.h"
#include "model/cron.h"
#include "model/kinds/path.h"
#include "model/kinds/types.h"
#include "model/kinds/validate_pod.h"
#include "model/quantity.h"

namespace berth::model {
namespace {

Json text(std::string_view value) {
    return Json(value);
}

Json value_at(const Json& object, std::string_view path) {
    const Json* found = at_path(object, path);
    return found == nullptr ? Json() : *found;
}

// ---- services and configuration ----------------------------------------------------------------------------------

void service(const Json& object, const Where& where, Causes& causes) {
    const Where spec = where.member("spec");
    const Where list = spec.member("ports");
    const auto& ports = list_at(object, ".spec.ports");
    const bool portless =
        string_at(object, ".spec.clusterIP") == "None" || string_at(object, ".spec.type") == "ExternalName";
    if (ports.empty() && !portless) causes.required(list);
    std::set<std::string_view> names;
    std::set<std::pair<int64_t, std::string_view>> numbers;
    for (size_t i = 0; i < ports.size(); ++i) {
        const Where item = list.item(i);
        const auto name = string_at(ports[i], ".name");
        if (name.empty() && ports.size() > 1) causes.required(item.member("name"));
        if (!name.empty() && !names.insert(name).second) causes.duplicate(item.member("name"), text(name));
        if (!numbers.emplace(int_at(ports[i], ".port"), string_at(ports[i], ".protocol")).second)
            causes.duplicate(item, ports[i]);
    }
}

void config_data(const Json& object, const Where& where, Causes& causes) {
    const auto& binary = members_at(object, ".binaryData");
    const Where data = where.member("data");
    for (const auto& entry : members_at(object, ".data")) {
        if (binary.contains(entry.key()))
            causes.invalid(data.key(entry.key()), text(entry.key()), "duplicate of key present in binaryData");
    }
}

void quota(const Json& object, const Where& where, Causes& causes) {
    const Where spec = where.member("spec");
    const Where hard = spec.member("hard");
    for (const auto& entry : members_at(object, ".spec.hard")) {
        const auto amount = Quantity::parse(string_at(entry.value(), ""));
        if (amount.ok() && amount->is_negative())
            causes.invalid(hard.key(entry.key()), entry.value(), "must be greater than or equal to 0");
    }
}

// ---- storage -----------------------------------------------------------------------------------------------------

void check_modes(const Json& object, const Where& spec, std::string_view words, Causes& causes) {
    const std::vector<std::string> modes = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"};
    const auto& given = list_at(object, ".spec.accessModes");
    const Where at = spec.member("accessModes");
    if (given.empty()) causes.required(at, words);
    for (const auto& mode : given) {
        if (std::find(modes.begin(), modes.end(), string_at(mode, "")) == modes.end())
            causes.unsupported(at, mode, modes);
    }
}

void claim(const Json& object, const Where& where, Causes& causes) {
    const Where spec = where.member("spec");
    check_modes(object, spec, "at least 1 access mode is required", causes);
    const Json* storage = at_path(object, ".spec.resources.requests.storage");
    const Where resources = spec.member("resources");
    const Where at = resources.key("storage");
    if (storage == nullptr) {
        causes.required(at);
        return;
    }
    const auto amount = Quantity::parse(string_at(*storage, ""));
    if (amount.ok() && (amount->is_negative() || amount->is_zero()))
        causes.invalid(at, *storage, "must be greater than zero");
}

void volume(const Json& object, const Where& where, Causes& causes) {
    const Where spec = where.member("spec");
    check_modes(object, spec, "", causes);
    if (members_at(object, ".spec.capacity").empty()) causes.required(spec.member("capacity"));
    int found = 0;
    for (const auto& f : types()->find("core.v1.PersistentVolumeSource")->fields) {
        if (at_path(object, ".spec." + f.name) == nullptr) continue;
        if (++found > 1) causes.forbidden(spec.member(f.name), "may not specify more than 1 volume type");
    }
    if (found == 0) causes.required(spec, "must specify a volume type");
}

// ---- workloads ---------------------------------------------------------------------------------------------------

bool requirement_holds(const Json& r, const JsonObject& labels) {
    const auto op = string_at(r, ".operator");
    const Json* value = labels.if_contains(string_at(r, ".key"));
    const auto& values = list_at(r, ".values");
    const bool in = value != nullptr && std::find(values.begin(), values.end(), *value) != values.end();
    if (op == "In") return in;
    if (op == "NotIn") return !in;
    return (value != nullptr) == (op == "Exists");
}

// A selector, or a plain map of labels as old kinds have it; none matches nothing.
bool selects(const Json* selector, bool plain, const JsonObject& labels) {
    if (selector == nullptr) return false;
    for (const auto& label : members_at(*selector, plain ? "" : ".matchLabels")) {
        const Json* value = labels.if_contains(label.key());
        if (value == nullptr || *value != label.value()) return false;
    }
    if (plain) return true;
    const auto& all = list_at(*selector, ".matchExpressions");
    return std::all_of(all.begin(), all.end(), [&](const Json& r) { return requirement_holds(r, labels); });
}

void selector_matches(const Json& spec, const Where& where, Causes& causes) {
    const Json* selector = at_path(spec, ".selector");
    if (at_path(spec, ".template") == nullptr) return;
    const bool plain = selector != nullptr && !selector->is_null() && at_path(*selector, ".matchLabels") == nullptr &&
                       at_path(*selector, ".matchExpressions") == nullptr && !members_at(*selector, "").empty();
    if (selector != nullptr && members_at(*selector, "").empty()) return;
    const auto& labels = members_at(spec, ".template.metadata.labels");
    if (selects(selector, plain, labels)) return;
    const Where tmpl = where.member("template");
    const Where meta = tmpl.member("metadata");
    causes.invalid(meta.member("labels"), Json(labels), "`selector` does not match template `labels`");
}

void replica_template(const Json& spec, const Where& where, Causes& causes) {
    const Json* selector = at_path(spec, ".selector");
    if (selector != nullptr && members_at(*selector, "").empty())
        causes.invalid(where.member("selector"), *selector, "empty selector is invalid for deployment");
    selector_matches(spec, where, causes);
    const Where tmpl = where.member("template");
    const Where pod = tmpl.member("spec");
    const auto policy = string_at(spec, ".template.spec.restartPolicy");
    if (!policy.empty() && policy != "Always")
        causes.unsupported(pod.member("restartPolicy"), text(policy), {"Always"});
    if (at_path(spec, ".template.spec.activeDeadlineSeconds") != nullptr)
        causes.forbidden(pod.member("activeDeadlineSeconds"), "activeDeadlineSeconds in ReplicaSet is not Supported");
}

bool is_zero_share(const Json* value) {
    return value != nullptr && (*value == 0 || *value == "0%");
}

void deployment(const Json& spec, const Where& where, Causes& causes) {
    const Where strategy = where.member("strategy");
    const auto type = string_at(spec, ".strategy.type");
    const Json* rolling = at_path(spec, ".strategy.rollingUpdate");
    if (type == "Recreate" && rolling != nullptr) {
        causes.forbidden(strategy.member("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'");
    } else if (type != "Recreate" && type != "RollingUpdate") {
        causes.unsupported(strategy, value_at(spec, ".strategy"), {"Recreate", "RollingUpdate"});
    } else if (rolling != nullptr && is_zero_share(at_path(*rolling, ".maxSurge")) &&
               is_zero_share(at_path(*rolling, ".maxUnavailable"))) {
        const Where update = strategy.member("rollingUpdate");
        causes.invalid(update.member("maxUnavailable"), value_at(*rolling, ".maxUnavailable"),
                       "may not be 0 when `maxSurge` is 0");
    }
    const Json* deadline = at_path(spec, ".progressDeadlineSeconds");
    if (deadline != nullptr && to_int(*deadline) <= int_at(spec, ".minReadySeconds"))
        causes.invalid(where.member("progressDeadlineSeconds"), *deadline, "must be greater than minReadySeconds");
}

void daemon_strategy(const Json& spec, const Where& where, Causes& causes) {
    const auto type = string_at(spec, ".updateStrategy.type");
    if (type != "RollingUpdate" && type != "OnDelete")
        causes.unsupported(where.member("updateStrategy"), value_at(spec, ".updateStrategy"),
                           {"RollingUpdate", "OnDelete"});
}

void stateful_strategy(const Json& spec, const Where& where, Causes& causes) {
    const auto policy = string_at(spec, ".podManagementPolicy");
    if (policy != "OrderedReady" && policy != "Parallel")
        causes.invalid(where.member("podManagementPolicy"), text(policy), "must be 'OrderedReady' or 'Parallel'");
    const auto type = string_at(spec, ".updateStrategy.type");
    if (type != "RollingUpdate" && type != "OnDelete")
        causes.invalid(where.member("updateStrategy"), value_at(spec, ".updateStrategy"),
                       "must be 'RollingUpdate' or 'OnDelete'");
    const Json* most = at_path(spec, ".updateStrategy.rollingUpdate.maxUnavailable");
    if (is_zero_share(most) && most != nullptr)
        causes.invalid(where.member("updateStrategy").member("rollingUpdate").member("maxUnavailable"), *most,
                       "cannot be 0");
}

void job(const Json& spec, const Where& where, Causes& causes) {
    if (at_path(spec, ".selector") != nullptr) selector_matches(spec, where, causes);
    const auto policy = string_at(spec, ".template.spec.restartPolicy");
    const Where tmpl = where.member("template");
    const Where pod = tmpl.member("spec");
    if (policy.empty() || policy == "Always") {
        causes.required(pod.member("restartPolicy"), "valid values: \"OnFailure\", \"Never\"");
    } else if (policy != "OnFailure" && policy != "Never") {
        causes.unsupported(pod.member("restartPolicy"), text(policy), {"OnFailure", "Never"});
    }
}

void cron(const Json& spec, const Where& where, Causes& causes) {
    const auto schedule = string_at(spec, ".schedule");
    if (schedule.find("TZ") != std::string_view::npos) {
        causes.invalid(where.member("schedule"), text(schedule),
                       "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    } else if (!schedule.empty()) {
        const auto parsed = CronSchedule::parse(schedule);
        if (!parsed) causes.invalid(where.member("schedule"), text(schedule), parsed.error().message);
    }
    if (at_path(spec, ".timeZone") == nullptr) return;
    const auto zone = string_at(spec, ".timeZone");
    if (zone.empty()) {
        causes.invalid(where.member("timeZone"), text(zone), "timeZone must be nil or non-empty string");
    } else if (!base::TimeZone::find(zone)) {
        causes.invalid(where.member("timeZone"), text(zone), fmt::format("unknown time zone {}", zone));
    }
}

// ---- policies and access -----------------------------------------------------------------------------------------

void disruption_budget(const Json& object, const Where& where, Causes& causes) {
    if (at_path(object, ".spec.minAvailable") == nullptr || at_path(object, ".spec.maxUnavailable") == nullptr) return;
    causes.invalid(where.member("spec"), value_at(object, ".spec"),
                   "minAvailable and maxUnavailable cannot be both set");
}

void priority(const Json& object, const Where& where, Causes& causes) {
    constexpr int64_t kHighest = 1'000'000'000;
    if (int_at(object, ".value") <= kHighest || string_at(object, ".metadata.name").starts_with("system-")) return;
    causes.forbidden(where.member("value"),
                     fmt::format("maximum allowed value of a user defined priority is {}", kHighest));
}

void policy_rule(const Json& rule, const Where& where, Causes& causes) {
    const bool groups = !list_at(rule, ".apiGroups").empty();
    const bool resources = !list_at(rule, ".resources").empty();
    if (!list_at(rule, ".nonResourceURLs").empty()) {
        if (groups || resources || !list_at(rule, ".resourceNames").empty())
            causes.invalid(where.member("nonResourceURLs"), value_at(rule, ".nonResourceURLs"),
                           "rules cannot apply to both regular resources and non-resource URLs");
        return;
    }
    if (!groups) causes.required(where.member("apiGroups"), "resource rules must supply at least one api group");
    if (!resources) causes.required(where.member("resources"), "resource rules must supply at least one resource");
}

void subject(const Json& s, const Where& where, Causes& causes) {
    constexpr const char* kGroup = "rbac.authorization.k8s.io";
    const auto kind = string_at(s, ".kind");
    const auto group = string_at(s, ".apiGroup");
    if (kind == "ServiceAccount") {
        if (string_at(s, ".namespace").empty()) causes.required(where.member("namespace"));
        if (!group.empty()) causes.unsupported(where.member("apiGroup"), text(group), {""});
    } else if (kind == "User" || kind == "Group") {
        if (group != kGroup) causes.unsupported(where.member("apiGroup"), text(group), {kGroup});
    } else {
        causes.unsupported(where.member("kind"), text(kind), {"ServiceAccount", "User", "Group"});
    }
}

void policy_types(const Json& spec, const Where& where, Causes& causes) {
    const Where list = where.member("policyTypes");
    const auto& given = list_at(spec, ".policyTypes");
    for (size_t i = 0; i < given.size(); ++i) {
        if (given[i] != "Ingress" && given[i] != "Egress")
            causes.unsupported(list.item(i), given[i], {"Ingress", "Egress"});
    }
}

constexpr NamedRule kRules[] = {
    {"service", service},
    {"config-data", config_data},
    {"quota", quota},
    {"claim", claim},
    {"volume", volume},
    {"replica-template", replica_template},
    {"deployment", deployment},
    {"daemon-strategy", daemon_strategy},
    {"stateful-strategy", stateful_strategy},
    {"job", job},
    {"cron", cron},
    {"disruption-budget", disruption_budget},
    {"priority", priority},
    {"policy-rule", policy_rule},
    {"subject", subject},
    {"policy-types", policy_types},
};

}  // namespace

std::span<const NamedRule> object_rules() {
    return kRules;
}

ValidationRule validation_rule(std::string_view name) {
    for (const auto rules : {pod_rules(), object_rules(), share_rules(), machine_rules(), fleet_rules()}) {
        const auto found = std::find_if(rules.begin(), rules.end(), [&](auto& r) { return r.name == name; });
        if (found != rules.end()) return found->rule;
    }
    return nullptr;
}

}  // namespace berth::model
