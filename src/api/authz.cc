#include "api/authz.h"

#include <fmt/format.h>

#include <array>

#include "api/call.h"
#include "api/node_rules.h"
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
    Rule{kAuthenticated, "create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"},
    Rule{kAuthenticated, "create", "authentication.k8s.io", "selfsubjectreviews"},
};

bool rule_allows(const Rule& rule, const Identity& who, const Attributes& what, std::string_view resource) {
    return who.in(rule.who) && has_word(rule.verbs, what.verb) && (rule.group == kAny || rule.group == what.group) &&
           has_word(rule.resources, resource);
}

bool path_allowed(const Identity& who, const Attributes& what) {
    const auto path = what.path;
    if (is_health_path(path) || path == "/version" || path == "/version/") return true;
    if (!who.in(kAuthenticated) || what.verb != "get") return false;
    if (path == "/metrics") return who.in(kControllers) || who.in(kSchedulers);
    return path == "/" || path.starts_with("/api") || path.starts_with("/openapi") || path.starts_with("/swagger");
}

}  // namespace

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

Attributes attributes_of(const Call& call) {
    return {name_of(call.verb),         call.kind->group, call.kind->plural, call.subresource, call.ns, call.name, {},
            call.options.field_selector};
}

bool allowed(const Identity& who, const Attributes& what, const store::Store& objects) {
    return allowed(who, what) || node_allows(objects, who, what);
}

bool is_health_path(std::string_view path) {
    return path.starts_with("/healthz") || path.starts_with("/livez") || path.starts_with("/readyz");
}

bool allowed(const Identity& who, const Attributes& what) {
    if (who.in(kMasters)) return true;
    if (!what.path.empty()) return path_allowed(who, what);
    const std::string resource = with_part(what);
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
    for (auto& row : node_rules_of(who)) out.push_back(std::move(row));
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
    const std::string resource = with_part(what);
    std::string subject = qualified(what.group, what.resource);
    if (!what.name.empty()) subject += fmt::format(" \"{}\"", what.name);
    const std::string where =
        what.ns.empty() ? "at the cluster scope" : fmt::format("in the namespace \"{}\"", what.ns);
    return fmt::format("{} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {}", subject,
                       who.user, what.verb, resource, what.group, where);
}

}  // namespace berth::api
