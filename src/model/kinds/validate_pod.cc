#include "model/kinds/validate_pod.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/kinds/path.h"
#include "model/kinds/types.h"
#include "model/names.h"
#include "model/quantity.h"

namespace berth::model {
namespace {

Json text(std::string_view value) {
    return Json(value);
}

void init_containers(const Json& spec, const Where& where, Causes& causes) {
    std::set<std::string_view> names;
    for (const auto& c : list_at(spec, ".containers")) names.insert(string_at(c, ".name"));
    const Where list = where.member("initContainers");
    const auto& all = list_at(spec, ".initContainers");
    for (size_t i = 0; i < all.size(); ++i) {
        const Where item = list.item(i);
        const auto name = string_at(all[i], ".name");
        if (!name.empty() && !names.insert(name).second) causes.duplicate(item.member("name"), text(name));
        const auto policy = string_at(all[i], ".restartPolicy");
        if (!policy.empty() && policy != "Always")
            causes.unsupported(item.member("restartPolicy"), text(policy), {"Always"});
    }
}

// The sources that a volume names; emptyDir counts first, then as declared.
std::vector<std::string> sources_of(const Json& volume) {
    std::vector<std::string> found;
    if (at_path(volume, ".emptyDir") != nullptr) found.emplace_back("emptyDir");
    for (const auto& f : types()->find("core.v1.VolumeSource")->fields) {
        if (f.name != "emptyDir" && at_path(volume, "." + f.name) != nullptr) found.push_back(f.name);
    }
    return found;
}

void volume_source(const Json& volume, const Where& where, Causes& causes) {
    const auto sources = sources_of(volume);
    if (sources.empty()) causes.required(where, "must specify a volume type");
    for (size_t i = 1; i < sources.size(); ++i)
        causes.forbidden(where.member(sources[i]), "may not specify more than 1 volume type");
}

void volume_mounts(const Json& spec, const Where& where, Causes& causes) {
    std::set<std::string_view> volumes;
    for (const auto& v : list_at(spec, ".volumes")) {
        const auto name = string_at(v, ".name");
        if (!dns1123_label_fault(name) && sources_of(v).size() == 1) volumes.insert(name);
    }
    for (const auto* key : {"containers", "initContainers", "ephemeralContainers"}) {
        const Where list = where.member(key);
        const auto& containers = list_at(spec, "." + std::string(key));
        for (size_t i = 0; i < containers.size(); ++i) {
            const Where container = list.item(i);
            const Where mounts = container.member("volumeMounts");
            const auto& all = list_at(containers[i], ".volumeMounts");
            for (size_t j = 0; j < all.size(); ++j) {
                const auto name = string_at(all[j], ".name");
                if (name.empty() || volumes.contains(name)) continue;
                const Where mount = mounts.item(j);
                causes.not_found(mount.member("name"), text(name));
            }
        }
    }
}

// ---- resources ---------------------------------------------------------------------------------------------------

// Resources that cannot be lent twice: their request equals their limit.
bool is_exact(std::string_view name) {
    return name.find('/') != std::string_view::npos || name.starts_with("hugepages-");
}

bool is_standard(std::string_view name) {
    return name == "cpu" || name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-");
}

void check_amounts(const Json& container, const char* key, const Where& resources, Causes& causes) {
    const Where list = resources.member(key);
    for (const auto& entry : members_at(container, ".resources." + std::string(key))) {
        const std::string_view name = entry.key();
        const Where at = list.key(name);
        if (name.find('/') == std::string_view::npos && !is_standard(name)) {
            causes.invalid(at, text(name), "must be a standard resource type or fully qualified");
            causes.invalid(at, text(name), "must be a standard resource for containers");
        } else if (const auto fault = qualified_name_fault(name)) {
            causes.invalid(at, text(name), *fault);
        }
        const auto amount = Quantity::parse(string_at(entry.value(), ""));
        if (amount.ok() && amount->is_negative())
            causes.invalid(at, entry.value(), "must be greater than or equal to 0");
        if (amount.ok() && is_exact(name) && amount->milli() % 1000 != 0)
            causes.invalid(at, entry.value(), "must be an integer");
    }
}

void resources(const Json& container, const Where& where, Causes& causes) {
    const Where at = where.member("resources");
    check_amounts(container, "limits", at, causes);
    check_amounts(container, "requests", at, causes);
    const auto& limits = members_at(container, ".resources.limits");
    for (const auto& request : members_at(container, ".resources.requests")) {
        const std::string_view name = request.key();
        const auto asked = Quantity::parse(string_at(request.value(), ""));
        const Json* limit = limits.if_contains(request.key());
        if (limit == nullptr) {
            if (is_exact(name))
                causes.required(at.member("limits"), "Limit must be set for non overcommitable resources");
            continue;
        }
        const auto most = Quantity::parse(string_at(*limit, ""));
        if (!asked.ok() || !most.ok()) continue;
        const char* words = nullptr;
        if (*asked > *most) words = "must be less than or equal to";
        if (is_exact(name) && *asked != *most) words = "must be equal to";
        if (words != nullptr) {
            causes.invalid(at.member("requests"), request.value(),
                           fmt::format("{} {} limit of {}", words, name, most->text()));
        }
    }
}

using Amounts = std::map<std::string_view, Quantity>;

void add_requests(const Json& container, Amounts& to) {
    for (const auto& request : members_at(container, ".resources.requests")) {
        if (const auto amount = Quantity::parse(string_at(request.value(), ""))) to[request.key()] += *amount;
    }
}

void grow_to(Amounts& to, const Amounts& other) {
    for (const auto& [name, amount] : other) to[name] = std::max(to[name], amount);
}

// What a pod asks for as a whole is no less than what its containers do together: the containers and those that run
// beside them, or, if that is more, what runs before them with those beside it.
void whole_pod_resources(const Json& spec, const Where& where, Causes& causes) {
    const auto& whole = members_at(spec, ".resources.requests");
    if (whole.empty()) return;
    Amounts sum, beside, before;
    for (const auto& container : list_at(spec, ".containers")) add_requests(container, sum);
    for (const auto& container : list_at(spec, ".initContainers")) {
        Amounts then = beside;
        add_requests(container, then);
        grow_to(before, then);
        if (string_at(container, ".restartPolicy") != "Always") continue;
        beside = then;
        add_requests(container, sum);
    }
    grow_to(sum, before);
    const Where at = where.member("resources");
    const Where list = at.member("requests");
    for (const auto& request : whole) {
        const auto asked = Quantity::parse(string_at(request.value(), ""));
        const auto together = sum.find(std::string_view(request.key()));
        if (!asked.ok() || together == sum.end() || together->second <= *asked) continue;
        causes.invalid(list.key(request.key()), request.value(),
                       fmt::format("must be greater than or equal to aggregate container requests of {}",
                                   together->second.text()));
    }
}

void handler(const Json& probe, const Where& where, Causes& causes) {
    int found = 0;
    for (const auto* key : {"exec", "httpGet", "tcpSocket", "grpc"}) {
        if (at_path(probe, "." + std::string(key)) == nullptr) continue;
        if (++found > 1) causes.forbidden(where.member(key), "may not specify more than 1 handler type");
    }
    if (found == 0) causes.required(where, "must specify a handler type");
}

// ---- placement ---------------------------------------------------------------------------------------------------

void toleration(const Json& t, const Where& where, Causes& causes) {
    const auto op = string_at(t, ".operator");
    const auto value = string_at(t, ".value");
    const auto effect = string_at(t, ".effect");
    const Where at = where.member("operator");
    if (string_at(t, ".key").empty() && op != "Exists") {
        causes.invalid(at, text(op),
                       "operator must be Exists when `key` is empty, which means \"match all values and "
                       "all keys\"");
    }
    if (at_path(t, ".tolerationSeconds") != nullptr && effect != "NoExecute")
        causes.invalid(where.member("effect"), text(effect),
                       "effect must be 'NoExecute' when `tolerationSeconds` is set");
    if (op == "Exists" && !value.empty())
        causes.invalid(at, text(value), "value must be empty when `operator` is 'Exists'");
    if (op.empty() || op == "Equal") {
        if (const auto fault = label_value_fault(value)) causes.invalid(at, text(value), *fault);
    }
}

void spread(const Json& c, const Where& where, Causes& causes) {
    const Json* domains = at_path(c, ".minDomains");
    if (domains == nullptr) return;
    const Where at = where.member("minDomains");
    if (to_int(*domains) <= 0) causes.invalid(at, *domains, "must be greater than zero");
    const auto when = string_at(c, ".whenUnsatisfiable");
    if (when != "DoNotSchedule")
        causes.invalid(at, *domains,
                       fmt::format("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", when));
}

// A topology key has at most one constraint of each kind.
void spread_kinds(const Json& spec, const Where& where, Causes& causes) {
    std::map<std::pair<std::string_view, std::string_view>, size_t> last;
    const Where list = where.member("topologySpreadConstraints");
    const auto& all = list_at(spec, ".topologySpreadConstraints");
    const auto kind = [&](size_t i) {
        return std::pair(string_at(all[i], ".topologyKey"), string_at(all[i], ".whenUnsatisfiable"));
    };
    for (size_t i = 0; i < all.size(); ++i) last[kind(i)] = i;
    for (size_t i = 0; i < all.size(); ++i) {
        if (last[kind(i)] == i) continue;
        const Where item = list.item(i);
        causes.duplicate(item.member("{topologyKey, whenUnsatisfiable}"),
                         Json(fmt::format("{{{}, {}}}", kind(i).first, kind(i).second)));
    }
}

// In, NotIn want values; Exists, DoesNotExist none; Gt, Lt one (of nodes only).
void requirement(const Json& r, const Where& where, Causes& causes, bool of_nodes) {
    const auto op = string_at(r, ".operator");
    const size_t values = list_at(r, ".values").size();
    const Where at = where.member("values");
    if (op == "In" || op == "NotIn") {
        if (values == 0) causes.required(at, "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (op == "Exists" || op == "DoesNotExist") {
        if (values > 0) causes.forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else if (of_nodes && (op == "Gt" || op == "Lt")) {
        if (values != 1) causes.required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'");
    } else {
        causes.invalid(where.member("operator"), text(op), "not a valid selector operator");
    }
}

void node_requirement(const Json& r, const Where& where, Causes& causes) {
    requirement(r, where, causes, true);
}

void label_requirement(const Json& r, const Where& where, Causes& causes) {
    requirement(r, where, causes, false);
}

void taints(const Json& spec, const Where& where, Causes& causes) {
    std::set<std::pair<std::string_view, std::string_view>> seen;
    const Where list = where.member("taints");
    const auto& all = list_at(spec, ".taints");
    for (size_t i = 0; i < all.size(); ++i) {
        if (!seen.emplace(string_at(all[i], ".key"), string_at(all[i], ".effect")).second)
            causes.duplicate(list.item(i), all[i]);
    }
}

constexpr NamedRule kRules[] = {
    {"init-containers", init_containers},
    {"volume-source", volume_source},
    {"volume-mounts", volume_mounts},
    {"resources", resources},
    {"handler", handler},
    {"toleration", toleration},
    {"spread", spread},
    {"spread-kinds", spread_kinds},
    {"whole-pod-resources", whole_pod_resources},
    {"node-requirement", node_requirement},
    {"label-requirement", label_requirement},
    {"taints", taints},
};

}  // namespace

std::span<const NamedRule> pod_rules() {
    return kRules;
}

}  // namespace berth::model
