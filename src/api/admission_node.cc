#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/admission_steps.h"
#include "api/authz.h"
#include "api/meta.h"
#include "api/node_rules.h"
#include "model/kinds/path.h"
#include "model/reservation.h"

// What a node may not make of its own objects, whatever the table says: pods that are not meant for it would come.
namespace berth::api {
namespace {

// The labels below kubernetes.io and k8s.io that a node knows of itself.
constexpr std::array<std::string_view, 11> kOwnLabels{
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
};
// They say how much of a node is kept from pods, which is the administrator's to say.
constexpr std::array kReserving{model::kNodeReservation};

bool below(std::string_view domain, std::string_view parent) {
    return domain == parent || (domain.ends_with(parent) && domain[domain.size() - parent.size() - 1] == '.');
}

bool is_restricted_label(std::string_view key) {
    const auto slash = key.find('/');
    const auto domain = slash == std::string_view::npos ? std::string_view{} : key.substr(0, slash);
    if (below(domain, "node-restriction.kubernetes.io")) return true;
    if (!below(domain, "kubernetes.io") && !below(domain, "k8s.io")) return false;
    if (below(domain, "kubelet.kubernetes.io") || below(domain, "node.kubernetes.io")) return false;
    return std::find(kOwnLabels.begin(), kOwnLabels.end(), key) == kOwnLabels.end();
}

const Json& before_of(const Admission& entry) {
    static const Json kNothing = JsonObject{};
    return entry.before != nullptr ? *entry.before : kNothing;
}

// The keys whose values differ.
std::vector<std::string> changed(const Admission& entry, std::string_view path) {
    const auto& before = model::members_at(before_of(entry), path);
    const auto& after = model::members_at(entry.after, path);
    std::vector<std::string> out;
    for (const auto& [key, value] : after) {
        const Json* old = before.if_contains(key);
        if (old == nullptr || *old != value) out.emplace_back(key);
    }
    for (const auto& [key, value] : before) {
        if (!after.contains(key)) out.emplace_back(key);
    }
    return out;
}

bool differs(const Admission& entry, std::string_view path) {
    const Json* before = model::at_path(before_of(entry), path);
    const Json* after = model::at_path(entry.after, path);
    return before == nullptr || after == nullptr ? before != after : *before != *after;
}

// Also an empty list is none.
bool differs_as_list(const Admission& entry, std::string_view path) {
    return model::list_at(before_of(entry), path) != model::list_at(entry.after, path);
}

Status guard_own_node(Admission& entry) {
    for (const auto& key : changed(entry, ".metadata.labels")) {
        if (is_restricted_label(key)) {
            return forbidden_entry(entry, fmt::format("a node may not set or change its label {}", key));
        }
    }
    for (const auto& key : changed(entry, ".metadata.annotations")) {
        if (std::find(kReserving.begin(), kReserving.end(), key) != kReserving.end()) {
            return forbidden_entry(entry, fmt::format("a node may not set or change its annotation {}", key));
        }
    }
    if (entry.before != nullptr && differs_as_list(entry, ".spec.taints")) {
        return forbidden_entry(entry, "a node may not change its taints");
    }
    if (model::at_path(entry.after, ".spec.configSource") != nullptr && differs(entry, ".spec.configSource")) {
        return forbidden_entry(entry, "a node may not set its configSource");
    }
    return {};
}

Status guard_own_pod(Admission& entry) {
    if (!changed(entry, ".metadata.labels").empty()) {
        return forbidden_entry(entry, "a node may not change labels through the status of a pod");
    }
    if (differs_as_list(entry, ".status.resourceClaimStatuses")) {
        return forbidden_entry(entry, "a node may not change which resource claims a pod has");
    }
    return {};
}

}  // namespace

Status guard_node(Admission& entry) {
    const Identity& who = entry.call.who;
    if (node_of(who).empty()) return {};
    const auto name = meta_text(entry.after, "name");
    if (entry.before == nullptr && !node_may_name(who, attributes_of(entry.call), name)) {
        return forbidden_entry(entry, fmt::format("User \"{}\" may create only what is called as its node", who.user));
    }
    if (is_kind(entry, "", "nodes")) return guard_own_node(entry);
    if (is_kind(entry, "", "pods")) return guard_own_pod(entry);
    return {};
}

}  // namespace berth::api
