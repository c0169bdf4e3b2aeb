#include "api/authz.h"

#include <fmt/format.h>

#include <array>

#include "api/status.h"

namespace berth::api {
namespace {

constexpr std::string_view kRead = "get list watch";
constexpr std::string_view kWrite = "create update patch";
constexpr std::string_view kAny = "*";

// Words separated by spaces; "*" is every word. Resources are "plural" or "plural/subresource".
struct Rule {
    std::string_view who;
    std::string_view verbs;
    std::string_view group;
    std::string_view resources;
    std::string_view ns = kAny;
};

constexpr std::array kRules{
    Rule{kSchedulers, kRead, kAny, kAny},
    Rule{kSchedulers, "create", "", "pods/binding pods/eviction bindings"},
    Rule{kSchedulers, "delete", "", "pods"},
    Rule{kSchedulers, "update patch", "", "pods/status persistentvolumes persistentvolumeclaims"},
    Rule{kSchedulers, "create update patch delete", "scheduling.koordinator.sh", "reservations reservations/status"},
    Rule{kSchedulers, "update patch", "resource.k8s.io", "resourceclaims resourceclaims/status"},
    Rule{kSchedulers, kWrite, "coordination.k8s.io", "leases"},
    Rule{kSchedulers, kWrite, "", "events"},
    Rule{kSchedulers, kWrite, "events.k8s.io", "events"},
    Rule{kControllers, "get list watch create update patch delete deletecollection", kAny, kAny},
    Rule{kNodes, kRead, "", "nodes pods services configmaps secrets persistentvolumes persistentvolumeclaims"},
    Rule{kNodes, kRead, "storage.k8s.io", "csinodes csidrivers volumeattachments"},
    Rule{kNodes, kRead, "scheduling.koordinator.sh", "reservations"},
    Rule{kNodes, "create", "", "nodes"},
    Rule{kNodes, "update patch", "", "nodes nodes/status pods/status"},
    Rule{kNodes, "delete", "", "pods"},
    Rule{kNodes, "get create update patch", "coordination.k8s.io", "leases", "kube-node-lease"},
    Rule{kNodes, kWrite, "", "events"},
    Rule{kNodes, kWrite, "events.k8s.io", "events"},
    Rule{kAuthenticated, "create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"},
    Rule{kAuthenticated, "create", "authentication.k8s.io", "selfsubjectreviews"},
};

bool has_word(std::string_view words, std::string_view word) {
    if (words == kAny) return true;
    while (!words.empty()) {
        const auto end = words.find(' ');
        if (words.substr(0, end) == word) return true;
        if (end == std::string_view::npos) return false;
        words.remove_prefix(end + 1);
    }
    return false;
}

std::vector<std::string> split_words(std::string_view words) {
    std::vector<std::string> out;
    while (!words.empty()) {
        const auto end = words.find(' ');
        out.emplace_back(words.substr(0, end));
        if (end == std::string_view::npos) break;
        words.remove_prefix(end + 1);
    }
    return out;
}

// A node writes only its own Node and Lease.
bool node_owns(const Identity& who, const Attributes& what) {
    if (what.resource != "nodes" && what.resource != "leases") return true;
    if (what.verb == "get" || what.verb == "list" || what.verb == "watch" || what.name.empty()) return true;
    constexpr std::string_view kPrefix = "system:node:";
    return who.user.starts_with(kPrefix) && what.name == std::string_view(who.user).substr(kPrefix.size());
}

bool rule_allows(const Rule& rule, const Identity& who, const Attributes& what, std::string_view resource) {
    return who.in(rule.who) && has_word(rule.verbs, what.verb) && (rule.group == kAny || rule.group == what.group) &&
           has_word(rule.resources, resource) && (rule.ns == kAny || rule.ns == what.ns) &&
           (rule.who != kNodes || node_owns(who, what));
}

bool path_allowed(const Identity& who, const Attributes& what) {
    const auto path = what.path;
    if (is_health_path(path) || path == "/version" || path == "/version/") return true;
    if (!who.in(kAuthenticated) || what.verb != "get") return false;
    if (path == "/metrics") return who.in(kControllers) || who.in(kSchedulers);
    return path == "/" || path.starts_with("/api") || path.starts_with("/openapi") || path.starts_with("/swagger");
}

}  // namespace

bool is_health_path(std::string_view path) {
    return path.starts_with("/healthz") || path.starts_with("/livez") || path.starts_with("/readyz");
}

bool allowed(const Identity& who, const Attributes& what) {
    if (who.in(kMasters)) return true;
    if (!what.path.empty()) return path_allowed(who, what);
    const std::string resource =
        what.subresource.empty() ? std::string(what.resource) : fmt::format("{}/{}", what.resource, what.subresource);
    for (const Rule& rule : kRules) {
        if (rule_allows(rule, who, what, resource)) return true;
    }
    return false;
}

std::vector<RuleRow> rules_of(const Identity& who) {
    const std::vector<std::string> any{"*"};
    if (who.in(kMasters)) return {{any, any, any, {}}, {any, {}, {}, any}};
    std::vector<RuleRow> out;
    for (const Rule& rule : kRules) {
        if (who.in(rule.who))
            out.push_back({split_words(rule.verbs), {std::string(rule.group)}, split_words(rule.resources), {}});
    }
    out.push_back({{"get"},
                   {},
                   {},
                   {"/healthz", "/livez", "/readyz", "/version", "/api", "/api/*", "/apis", "/apis/*", "/openapi",
                    "/openapi/*"}});
    return out;
}

std::string refusal(const Identity& who, const Attributes& what) {
    if (!what.path.empty()) {
        return fmt::format("forbidden: User \"{}\" cannot {} path \"{}\"", who.user, what.verb, what.path);
    }
    std::string resource(what.resource);
    if (!what.subresource.empty()) resource += fmt::format("/{}", what.subresource);
    std::string subject = qualified(what.group, what.resource);
    if (!what.name.empty()) subject += fmt::format(" \"{}\"", what.name);
    const std::string where =
        what.ns.empty() ? "at the cluster scope" : fmt::format("in the namespace \"{}\"", what.ns);
    return fmt::format("{} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {}", subject,
                       who.user, what.verb, resource, what.group, where);
}

}  // namespace berth::api
