#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/kinds/path.h"
#include "model/kinds/printers.h"
#include "model/kinds/table.h"

namespace berth::model {
namespace {

std::string text_or(std::string text, std::string_view otherwise) {
    return text.empty() ? std::string(otherwise) : text;
}

// ---- networking --------------------------------------------------------------------------------------------------

Json service_cluster_ip(const Cell& c) {
    const auto ip = string_at(c.object, ".spec.clusterIPs[0]");
    return Json(ip.empty() ? "<none>" : ip);
}

// The addresses of a load balancer, each once, sorted.
std::vector<std::string> balancer_addresses(const Json& object, std::string_view path) {
    std::set<std::string> found;
    for (const auto& entry : list_at(object, path)) {
        const auto ip = string_at(entry, ".ip");
        const auto address = ip.empty() ? string_at(entry, ".hostname") : ip;
        if (!address.empty()) found.emplace(address);
    }
    return {found.begin(), found.end()};
}

Json balancer(const Cell& c) {
    return Json(joined(balancer_addresses(c.object, c.argument)));
}

Json service_external_ip(const Cell& c) {
    const auto type = string_at(c.object, ".spec.type");
    if (type == "ExternalName") return Json(string_at(c.object, ".spec.externalName"));
    std::vector<std::string> addresses;
    if (type == "LoadBalancer") addresses = balancer_addresses(c.object, ".status.loadBalancer.ingress");
    for (const auto& ip : list_at(c.object, ".spec.externalIPs")) addresses.emplace_back(string_at(ip, ""));
    if (type == "LoadBalancer") return Json(text_or(joined(addresses), "<pending>"));
    if (type == "ClusterIP" || type == "NodePort") return Json(text_or(joined(addresses), "<none>"));
    return "<unknown>";
}

Json service_ports(const Cell& c) {
    std::vector<std::string> items;
    for (const auto& port : list_at(c.object, ".spec.ports")) {
        const int64_t node_port = int_at(port, ".nodePort");
        const std::string number = node_port > 0 ? fmt::format("{}:{}", int_at(port, ".port"), node_port)
                                                 : fmt::format("{}", int_at(port, ".port"));
        items.push_back(fmt::format("{}/{}", number, string_at(port, ".protocol")));
    }
    return Json(text_or(joined(items), "<none>"));
}

std::string host_and_port(std::string_view host, int64_t port) {
    if (host.find(':') != std::string_view::npos) return fmt::format("[{}]:{}", host, port);
    return fmt::format("{}:{}", host, port);
}

Json endpoints(const Cell& c) {
    const auto& subsets = list_at(c.object, ".subsets");
    if (subsets.empty()) return "<none>";
    std::vector<std::string> items;
    for (const auto& subset : subsets) {
        const auto& addresses = list_at(subset, ".addresses");
        if (list_at(subset, ".ports").empty()) {
            for (const auto& address : addresses) items.emplace_back(string_at(address, ".ip"));
        }
        for (const auto& port : list_at(subset, ".ports")) {
            for (const auto& address : addresses)
                items.push_back(host_and_port(string_at(address, ".ip"), int_at(port, ".port")));
        }
    }
    return Json(some_of(items, 3));
}

Json slice_ports(const Cell& c) {
    std::vector<std::string> items;
    for (const auto& port : list_at(c.object, ".ports")) {
        if (at_path(port, ".port") != nullptr) {
            items.push_back(fmt::format("{}", int_at(port, ".port")));
        } else {
            items.emplace_back(at_path(port, ".name") != nullptr ? string_at(port, ".name") : "*");
        }
    }
    return Json(text_or(some_of(items, 3), "<unset>"));
}

Json slice_endpoints(const Cell& c) {
    std::vector<std::string> items;
    for (const auto& endpoint : list_at(c.object, ".endpoints")) {
        for (const auto& address : list_at(endpoint, ".addresses")) items.emplace_back(string_at(address, ""));
    }
    return Json(text_or(some_of(items, 3), "<unset>"));
}

Json ingress_hosts(const Cell& c) {
    constexpr size_t kMost = 3;
    const auto& rules = list_at(c.object, ".spec.rules");
    std::vector<std::string> hosts;
    bool more = false;
    for (const auto& rule : rules) {
        more |= hosts.size() == kMost;
        const auto host = string_at(rule, ".host");
        if (!more && !host.empty()) hosts.emplace_back(host);
    }
    if (hosts.empty()) return "*";
    return Json(more ? fmt::format("{} + {} more...", joined(hosts), rules.size() - kMost) : joined(hosts));
}

Json ingress_ports(const Cell& c) {
    return list_at(c.object, ".spec.tls").empty() ? "80" : "80, 443";
}

Json ingress_parameters(const Cell& c) {
    const Json* p = at_path(c.object, ".spec.parameters");
    if (p == nullptr) return "<none>";
    const bool grouped = at_path(*p, ".apiGroup") != nullptr;
    return Json(fmt::format("{}{}{}/{}", string_at(*p, ".kind"), grouped ? "." : "", string_at(*p, ".apiGroup"),
                            string_at(*p, ".name")));
}

// ---- storage -----------------------------------------------------------------------------------------------------

std::string access_modes_at(const Json& object, std::string_view path) {
    constexpr std::pair<std::string_view, std::string_view> kModes[] = {
        {"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"}, {"ReadWriteOncePod", "RWOP"}};
    const auto& given = list_at(object, path);
    std::vector<std::string> items;
    for (const auto& [name, brief] : kModes) {
        if (std::find(given.begin(), given.end(), Json(name)) != given.end()) items.emplace_back(brief);
    }
    return joined(items);
}

Json access_modes(const Cell& c) {
    return Json(access_modes_at(c.object, c.argument));
}

Json phase_or_terminating(const Cell& c) {
    if (at_path(c.object, ".metadata.deletionTimestamp") != nullptr) return "Terminating";
    return Json(string_at(c.object, ".status.phase"));
}

Json volume_claim(const Cell& c) {
    if (at_path(c.object, ".spec.claimRef") == nullptr) return "";
    return Json(fmt::format("{}/{}", string_at(c.object, ".spec.claimRef.namespace"),
                            string_at(c.object, ".spec.claimRef.name")));
}

Json storage_class(const Cell& c) {
    const auto& annotations = members_at(c.object, ".metadata.annotations");
    if (const Json* old = annotations.if_contains("volume.beta.kubernetes.io/storage-class")) return *old;
    return Json(string_at(c.object, ".spec.storageClassName"));
}

Json claim_capacity(const Cell& c) {
    if (string_at(c.object, ".spec.volumeName").empty()) return "";
    return Json(text_or(std::string(string_at(c.object, ".status.capacity.storage")), "0"));
}

Json claim_modes(const Cell& c) {
    if (string_at(c.object, ".spec.volumeName").empty()) return "";
    return Json(access_modes_at(c.object, ".status.accessModes"));
}

Json storage_class_name(const Cell& c) {
    const auto& annotations = members_at(c.object, ".metadata.annotations");
    const auto is_true = [&](const char* key) {
        const Json* value = annotations.if_contains(key);
        return value != nullptr && *value == "true";
    };
    const bool standard = is_true("storageclass.kubernetes.io/is-default-class") ||
                          is_true("storageclass.beta.kubernetes.io/is-default-class");
    return Json(std::string(string_at(c.object, ".metadata.name")) + (standard ? " (default)" : ""));
}

Json token_requests(const Cell& c) {
    if (at_path(c.object, ".spec.tokenRequests") == nullptr) return "<unset>";
    std::vector<std::string> items;
    for (const auto& request : list_at(c.object, ".spec.tokenRequests"))
        items.emplace_back(string_at(request, ".audience"));
    return Json(joined(items));
}

Json claim_state(const Cell& c) {
    std::vector<std::string> states;
    const bool deleted = at_path(c.object, ".metadata.deletionTimestamp") != nullptr;
    if (deleted) states.emplace_back("deleted");
    if (at_path(c.object, ".status.allocation") != nullptr) {
        states.emplace_back("allocated");
        if (!list_at(c.object, ".status.reservedFor").empty()) states.emplace_back("reserved");
    } else if (!deleted) {
        states.emplace_back("pending");
    }
    return Json(joined(states));
}

// ---- events: core/v1 and events.k8s.io/v1 name the same things differently ----------------------------------------

std::string_view either(const Json& object, std::string_view one, std::string_view other) {
    const auto text = string_at(object, one);
    return text.empty() ? string_at(object, other) : text;
}

std::string first_seen(const Cell& c) {
    for (const auto* path : {".firstTimestamp", ".deprecatedFirstTimestamp"}) {
        if (!string_at(c.object, path).empty()) return age_at(c, path);
    }
    return age_at(c, ".eventTime");
}

Json event_first_seen(const Cell& c) {
    return Json(first_seen(c));
}

Json event_last_seen(const Cell& c) {
    if (at_path(c.object, ".series") != nullptr) return Json(age_at(c, ".series.lastObservedTime"));
    for (const auto* path : {".lastTimestamp", ".deprecatedLastTimestamp"}) {
        if (!string_at(c.object, path).empty()) return Json(age_at(c, path));
    }
    return Json(first_seen(c));
}

Json event_count(const Cell& c) {
    if (at_path(c.object, ".series") != nullptr) return Json(int_at(c.object, ".series.count"));
    const int64_t count = int_at(c.object, ".count") + int_at(c.object, ".deprecatedCount");
    return Json(count == 0 ? 1 : count);
}

Json event_object(const Cell& c) {
    std::string text(either(c.object, ".involvedObject.kind", ".regarding.kind"));
    for (char& ch : text) ch = static_cast<char>(ch >= 'A' && ch <= 'Z' ? ch - 'A' + 'a' : ch);
    const auto name = either(c.object, ".involvedObject.name", ".regarding.name");
    return Json(name.empty() ? text : text + "/" + std::string(name));
}

Json event_source(const Cell& c) {
    auto component = either(c.object, ".source.component", ".deprecatedSource.component");
    if (component.empty()) component = either(c.object, ".reportingComponent", ".reportingController");
    auto instance = either(c.object, ".source.host", ".deprecatedSource.host");
    if (instance.empty()) instance = string_at(c.object, ".reportingInstance");
    return Json(instance.empty() ? std::string(component) : fmt::format("{}, {}", component, instance));
}

// ---- access and extension ----------------------------------------------------------------------------------------

Json role_ref(const Cell& c) {
    return Json(fmt::format("{}/{}", string_at(c.object, ".roleRef.kind"), string_at(c.object, ".roleRef.name")));
}

Json subjects(const Cell& c) {
    std::vector<std::string> items;
    for (const auto& subject : list_at(c.object, ".subjects")) {
        if (string_at(subject, ".kind") != c.argument) continue;
        const auto name = string_at(subject, ".name");
        items.push_back(c.argument == "ServiceAccount" ? fmt::format("{}/{}", string_at(subject, ".namespace"), name)
                                                       : std::string(name));
    }
    return Json(joined(items, ", "));
}

Json api_service(const Cell& c) {
    if (at_path(c.object, ".spec.service") == nullptr) return "Local";
    return Json(fmt::format("{}/{}", string_at(c.object, ".spec.service.namespace"),
                            string_at(c.object, ".spec.service.name")));
}

Json api_available(const Cell& c) {
    for (const auto& condition : list_at(c.object, ".status.conditions")) {
        if (string_at(condition, ".type") != "Available") continue;
        const auto status = string_at(condition, ".status");
        const auto reason = string_at(condition, ".reason");
        if (status == "True" || reason.empty()) return Json(status);
        return Json(fmt::format("{} ({})", status, reason));
    }
    return "Unknown";
}

Json param_kind(const Cell& c) {
    if (at_path(c.object, ".spec.paramKind") == nullptr) return "<unset>";
    return Json(fmt::format("{}/{}", string_at(c.object, ".spec.paramKind.apiVersion"),
                            string_at(c.object, ".spec.paramKind.kind")));
}

Json param_ref(const Cell& c) {
    const Json* ref = at_path(c.object, ".spec.paramRef");
    if (ref == nullptr) return "<unset>";
    const auto name = string_at(*ref, ".name");
    if (name.empty()) return at_path(*ref, ".selector") == nullptr ? "<unset>" : "<selector>";
    return Json(fmt::format("{}/{}", text_or(std::string(string_at(*ref, ".namespace")), "*"), name));
}

constexpr Printer kPrinters[] = {
    {"service-cluster-ip", service_cluster_ip},
    {"service-external-ip", service_external_ip},
    {"service-ports", service_ports},
    {"balancer", balancer},
    {"endpoints", endpoints},
    {"slice-ports", slice_ports},
    {"slice-endpoints", slice_endpoints},
    {"ingress-hosts", ingress_hosts},
    {"ingress-ports", ingress_ports},
    {"ingress-parameters", ingress_parameters},
    {"access-modes", access_modes},
    {"phase-or-terminating", phase_or_terminating},
    {"volume-claim", volume_claim},
    {"storage-class", storage_class},
    {"claim-capacity", claim_capacity},
    {"claim-modes", claim_modes},
    {"storage-class-name", storage_class_name},
    {"token-requests", token_requests},
    {"claim-state", claim_state},
    {"event-first-seen", event_first_seen},
    {"event-last-seen", event_last_seen},
    {"event-count", event_count},
    {"event-object", event_object},
    {"event-source", event_source},
    {"role-ref", role_ref},
    {"subjects", subjects},
    {"api-service", api_service},
    {"api-available", api_available},
    {"param-kind", param_kind},
    {"param-ref", param_ref},
};

}  // namespace

std::span<const Printer> cluster_printers() {
    return kPrinters;
}

}  // namespace berth::model
