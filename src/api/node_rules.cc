#include "api/node_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/call.h"
#include "api/node_mounts.h"
#include "api/wire.h"
#include "model/field_selector.h"
#include "model/kinds/path.h"

namespace berth::api {
namespace {

constexpr std::string_view kRead = "get list watch";
constexpr std::string_view kName = "metadata.name";

// Which of a kind's objects are the node's.
enum class Scope : uint8_t {
    Every,
    OwnName,   // the one that is called as the node is
    SaysNode,  // those that have the node's name at one of `paths`; many of them by a field selector that demands it
    Mounted,   // those that a pod of the node mentions; one at a time
};

// Words separated by spaces. Resources are "plural" or "plural/subresource".
struct NodeRule {
    std::string_view verbs;
    std::string_view group;
    std::string_view resources;
    Scope scope;
    std::string_view paths = {};
    std::string_view ns = {};  // empty: every namespace
};

constexpr std::array kNodeRules{
    NodeRule{kRead, "", "nodes", Scope::OwnName},
    NodeRule{"create update patch", "", "nodes", Scope::OwnName},
    NodeRule{"get update patch", "", "nodes/status", Scope::OwnName},
    NodeRule{"get create update patch delete", "coordination.k8s.io", "leases", Scope::OwnName, {}, "kube-node-lease"},
    NodeRule{kRead, "", "pods", Scope::SaysNode, "spec.nodeName"},
    NodeRule{"delete", "", "pods", Scope::SaysNode, "spec.nodeName"},
    NodeRule{"get update patch", "", "pods/status", Scope::SaysNode, "spec.nodeName"},
    NodeRule{"create", "", "pods/eviction", Scope::SaysNode, "spec.nodeName"},
    NodeRule{kRead, "", "secrets configmaps", Scope::Mounted},
    NodeRule{"get", "", "persistentvolumeclaims persistentvolumes", Scope::Mounted},
    NodeRule{"get", "resource.k8s.io", "resourceclaims", Scope::Mounted},
    NodeRule{kRead, "", "services", Scope::Every},
    NodeRule{kRead, "storage.k8s.io", "csidrivers", Scope::Every},
    NodeRule{"get create update patch delete", "storage.k8s.io", "csinodes", Scope::OwnName},
    NodeRule{"get", "storage.k8s.io", "volumeattachments", Scope::SaysNode, "spec.nodeName"},
    NodeRule{"get", "scheduling.koordinator.sh", "reservations", Scope::SaysNode, "status.nodeName"},
    NodeRule{"get list watch create update patch", "topology.node.k8s.io", "noderesourcetopologies", Scope::OwnName},
    NodeRule{"get list watch create update patch", "slo.koordinator.sh", "nodemetrics nodemetrics/status",
             Scope::OwnName},
    NodeRule{kRead, "slo.koordinator.sh", "nodeslos", Scope::OwnName},
    NodeRule{"get list watch create update patch", "scheduling.koordinator.sh", "devices devices/status",
             Scope::OwnName},
    NodeRule{"create", "", "events", Scope::Every},
    NodeRule{"update patch", "", "events", Scope::SaysNode, "source.host reportingInstance"},
    NodeRule{"create", "events.k8s.io", "events", Scope::Every},
    NodeRule{"update patch", "events.k8s.io", "events", Scope::SaysNode, "source.host reportingInstance"},
};

bool reads(std::string_view verb) {
    return has_word(kRead, verb);
}

// What a selector demands of a field, if it does.
std::string demanded(const Attributes& what, std::string_view field) {
    if (what.field_selector.empty()) return {};
    const auto selector = FieldSelector::parse(what.field_selector, model::kDoorLimits);
    if (!selector) return {};
    for (const auto& term : selector->terms()) {
        if (term.equal && term.field == field) return term.value;
    }
    return {};
}

// A list or watch of one object names it by a selector.
std::string name_asked(const Attributes& what) {
    return what.name.empty() ? demanded(what, kName) : std::string(what.name);
}

bool says_node(const store::Record& record, std::string_view paths, std::string_view node) {
    const auto object = stored_object(record);
    if (!object) return false;
    const auto words = split_words(paths);
    return std::any_of(words.begin(), words.end(),
                       [&](const auto& path) { return model::string_at(*object, "." + path) == node; });
}

// The stored kind: the events of both groups are the same objects.
store::Key key_of(const Attributes& what, std::string name) {
    const bool events = what.resource == "events";
    return {store_kind(events ? "" : what.group, what.resource), std::string(what.ns), std::move(name)};
}

// Who writes what is not there is told just that.
bool owns(const NodeRule& rule, std::string_view node, const Attributes& what, const store::RecordPtr& record) {
    return record == nullptr ? !reads(what.verb) : says_node(*record, rule.paths, node);
}

bool in_scope(const NodeRule& rule, const store::Store& objects, std::string_view node, const Attributes& what) {
    const std::string name = name_asked(what);
    switch (rule.scope) {
        case Scope::Every:
            return true;
        case Scope::OwnName:  // how a new one is called is in its body: see node_may_name()
            return what.verb == "create" || name == node;
        case Scope::SaysNode: {
            if (demanded(what, rule.paths) == node) return true;
            if (name.empty()) return false;
            const auto key = key_of(what, name);
            return owns(rule, node, what, reads(what.verb) ? objects.get(key) : objects.head(key));
        }
        case Scope::Mounted:
            return !name.empty() && node_mounts(objects, node, key_of(what, name));
    }
    return false;
}

template <class Holds>
bool any_rule(const Attributes& what, Holds holds) {
    const std::string resource = with_part(what);
    return std::any_of(kNodeRules.begin(), kNodeRules.end(), [&](const NodeRule& rule) {
        return rule.group == what.group && has_word(rule.verbs, what.verb) && has_word(rule.resources, resource) &&
               (rule.ns.empty() || rule.ns == what.ns) && holds(rule);
    });
}

}  // namespace

std::string with_part(const Attributes& what) {
    return what.subresource.empty() ? std::string(what.resource)
                                    : fmt::format("{}/{}", what.resource, what.subresource);
}

bool node_allows(const store::Store& objects, const Identity& who, const Attributes& what) {
    const auto node = node_of(who);
    return !node.empty() && what.path.empty() &&
           any_rule(what, [&](const NodeRule& rule) { return in_scope(rule, objects, node, what); });
}

bool node_may_write(const Identity& who, const Attributes& what, const store::RecordPtr& head) {
    const auto node = node_of(who);
    if (node.empty()) return true;
    return any_rule(
        what, [&](const NodeRule& rule) { return rule.scope != Scope::SaysNode || owns(rule, node, what, head); });
}

bool node_may_name(const Identity& who, const Attributes& what, std::string_view name) {
    const auto node = node_of(who);
    if (node.empty()) return true;
    return any_rule(what, [&](const NodeRule& rule) { return rule.scope != Scope::OwnName || name == node; });
}

std::vector<RuleRow> node_rules_of(const Identity& who) {
    std::vector<RuleRow> out;
    if (node_of(who).empty()) return out;
    for (const NodeRule& rule : kNodeRules) {
        out.push_back({split_words(rule.verbs), {std::string(rule.group)}, split_words(rule.resources), {}});
    }
    return out;
}

}  // namespace berth::api
