#include "model/kinds/default_rules.h"

#include <algorithm>
#include <string>

#include "base/base64.h"
#include "model/kinds/path.h"
#include "model/quantity.h"

namespace berth::model {
namespace {

std::string_view text_of(const JsonObject& object, std::string_view key) {
    const Json* value = object.if_contains(key);
    if (value == nullptr || !value->is_string()) return {};
    return {value->get_string().data(), value->get_string().size()};
}

JsonObject* object_of(JsonObject& object, std::string_view key) {
    Json* value = object.if_contains(key);
    return value == nullptr ? nullptr : value->if_object();
}

JsonArray* list_of(JsonObject& object, std::string_view key) {
    Json* value = object.if_contains(key);
    return value == nullptr ? nullptr : value->if_array();
}

JsonObject& make_object(JsonObject& object, std::string_view key) {
    Json& value = object[key];
    if (!value.is_object()) value = JsonObject();
    return value.get_object();
}

// The object below those keys; an empty one when there is none.
JsonObject copy_of(JsonObject& object, std::initializer_list<std::string_view> keys) {
    JsonObject* here = &object;
    for (const auto key : keys) {
        here = object_of(*here, key);
        if (here == nullptr) return {};
    }
    return *here;
}

void add_missing(JsonObject& to, const JsonObject& from) {
    for (const auto& member : from) {
        if (!to.contains(member.key())) to[member.key()] = member.value();
    }
}

void namespace_label(JsonObject& space) {
    JsonObject* meta = object_of(space, "metadata");
    if (meta == nullptr || text_of(*meta, "name").empty()) return;
    const std::string name(text_of(*meta, "name"));
    make_object(*meta, "labels")["kubernetes.io/metadata.name"] = name;
}

// A value and the list of values that begins with it are two spellings of one thing: podIP/podIPs. When they differ the
// single value counts.
void value_and_list(JsonObject& object, std::string_view one, std::string_view many, std::string_view member) {
    const JsonArray* list = list_of(object, many);
    const std::string single(text_of(object, one));
    const std::string first(list == nullptr || list->empty() ? "" : string_at(list->front(), member));
    if (!single.empty() && single != first) {
        object[many] = JsonArray{member.empty() ? Json(single) : Json(JsonObject{{member, single}})};
    } else if (single.empty() && !first.empty()) {
        object[one] = first;
    }
}

void pod_cidrs(JsonObject& spec) {
    value_and_list(spec, "podCIDR", "podCIDRs", "");
}

void pod_ips(JsonObject& status) {
    value_and_list(status, "podIP", "podIPs", "ip");
}

void allocatable(JsonObject& status) {
    const Json* capacity = status.if_contains("capacity");
    if (capacity != nullptr && !status.contains("allocatable")) status["allocatable"] = Json(*capacity);
}

void requests_from_limits(JsonObject& pod) {
    JsonObject* spec = object_of(pod, "spec");
    if (spec == nullptr) return;
    for (const auto* key : {"containers", "initContainers"}) {
        JsonArray* list = list_of(*spec, key);
        if (list == nullptr) continue;
        for (auto& container : *list) {
            JsonObject* resources = container.is_object() ? object_of(container.get_object(), "resources") : nullptr;
            const JsonObject* limits = resources == nullptr ? nullptr : object_of(*resources, "limits");
            if (limits == nullptr || limits->empty()) continue;
            const JsonObject copy = *limits;
            add_missing(make_object(*resources, "requests"), copy);
        }
    }
}

bool is_pod_level(std::string_view name) {
    return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
}

// Requests of the whole pod: what its containers ask for together, then its limits.
void pod_requests(JsonObject& pod) {
    JsonObject* spec = object_of(pod, "spec");
    JsonObject* resources = spec == nullptr ? nullptr : object_of(*spec, "resources");
    JsonObject* limits = resources == nullptr ? nullptr : object_of(*resources, "limits");
    if (limits == nullptr || limits->empty()) return;
    const JsonObject own = *limits;
    JsonObject sums;
    if (const JsonArray* containers = list_of(*spec, "containers")) {
        for (const auto& container : *containers) {
            for (const auto& asked : members_at(container, ".resources.requests")) {
                if (asked.key() != "cpu" && asked.key() != "memory") continue;
                const auto amount = Quantity::parse(string_at(asked.value(), ""));
                const auto before = Quantity::parse(text_of(sums, asked.key())).value_or(Quantity());
                if (amount.ok()) sums[asked.key()] = (before + *amount).text();
            }
        }
    }
    JsonObject& requests = make_object(*resources, "requests");
    add_missing(requests, sums);
    for (const auto& limit : own) {
        if (is_pod_level(limit.key()) && !requests.contains(limit.key())) requests[limit.key()] = limit.value();
    }
    if (requests.empty()) resources->erase("requests");
}

void host_ports(JsonObject& pod) {
    JsonObject* spec = object_of(pod, "spec");
    const Json* host = spec == nullptr ? nullptr : spec->if_contains("hostNetwork");
    if (host == nullptr || *host != true) return;
    for (const auto* key : {"containers", "initContainers"}) {
        JsonArray* list = list_of(*spec, key);
        if (list == nullptr) continue;
        for (auto& container : *list) {
            JsonArray* ports = container.is_object() ? list_of(container.get_object(), "ports") : nullptr;
            if (ports == nullptr) continue;
            for (auto& port : *ports) {
                if (port.is_object() && int_at(port, ".hostPort") == 0)
                    port.get_object()["hostPort"] = int_at(port, ".containerPort");
            }
        }
    }
}

void service_account(JsonObject& spec) {
    const std::string name(text_of(spec, "serviceAccountName"));
    const std::string old(text_of(spec, "serviceAccount"));
    const std::string chosen = name.empty() ? old : name;
    if (chosen.empty()) return;
    spec["serviceAccountName"] = chosen;
    spec["serviceAccount"] = chosen;
}

// The tag of an image's name is what follows the last colon after the last slash; a digest leaves the tag open.
bool is_latest(std::string_view image) {
    const bool digest = image.find('@') != std::string_view::npos;
    image = image.substr(0, image.find('@'));
    const size_t slash = image.rfind('/');
    const size_t colon = image.rfind(':');
    if (colon == std::string_view::npos || (slash != std::string_view::npos && colon < slash)) return !digest;
    return image.substr(colon + 1) == "latest";
}

void image_pull_policy(JsonObject& container) {
    if (!text_of(container, "imagePullPolicy").empty()) return;
    const auto image = text_of(container, "image");
    container["imagePullPolicy"] = !image.empty() && is_latest(image) ? "Always" : "IfNotPresent";
}

void image_volume_policy(JsonObject& source) {
    if (!text_of(source, "pullPolicy").empty()) return;
    const auto image = text_of(source, "reference");
    source["pullPolicy"] = !image.empty() && is_latest(image) ? "Always" : "IfNotPresent";
}

void empty_dir(JsonObject& volume) {
    if (volume.size() == (volume.contains("name") ? 1U : 0U)) volume["emptyDir"] = JsonObject();
}

void controller_labels(JsonObject& controller) {
    const JsonObject labels = copy_of(controller, {"spec", "template", "metadata", "labels"});
    if (labels.empty()) return;
    if (copy_of(controller, {"spec", "selector"}).empty()) make_object(controller, "spec")["selector"] = labels;
    if (copy_of(controller, {"metadata", "labels"}).empty()) make_object(controller, "metadata")["labels"] = labels;
}

void labels_of_template(JsonObject& job) {
    const JsonObject labels = copy_of(job, {"spec", "template", "metadata", "labels"});
    if (!labels.empty() && copy_of(job, {"metadata", "labels"}).empty())
        make_object(job, "metadata")["labels"] = labels;
}

void session_affinity(JsonObject& spec) {
    if (text_of(spec, "sessionAffinity").empty()) spec["sessionAffinity"] = "None";
    if (text_of(spec, "sessionAffinity") == "None") spec.erase("sessionAffinityConfig");
    if (text_of(spec, "sessionAffinity") != "ClientIP") return;
    if (!copy_of(spec, {"sessionAffinityConfig", "clientIP"}).contains("timeoutSeconds"))
        spec["sessionAffinityConfig"] = Json{{"clientIP", {{"timeoutSeconds", 10800}}}};
}

void balancer_modes(JsonObject& service) {
    JsonObject* status = object_of(service, "status");
    JsonObject* balancer = status == nullptr ? nullptr : object_of(*status, "loadBalancer");
    JsonArray* ingress = balancer == nullptr ? nullptr : list_of(*balancer, "ingress");
    if (ingress == nullptr) return;
    for (auto& entry : *ingress) {
        if (entry.is_object() && !text_of(entry.get_object(), "ip").empty() && !entry.get_object().contains("ipMode"))
            entry.get_object()["ipMode"] = "VIP";
    }
}

void service(JsonObject& object) {
    JsonObject& spec = make_object(object, "spec");
    session_affinity(spec);
    if (text_of(spec, "type").empty()) spec["type"] = "ClusterIP";
    const std::string type(text_of(spec, "type"));
    const bool balanced = type == "LoadBalancer";
    const bool node_port = type == "NodePort";
    const JsonArray* addresses = list_of(spec, "externalIPs");
    const bool exposed = balanced || node_port || (type == "ClusterIP" && addresses != nullptr && !addresses->empty());
    if (exposed && text_of(spec, "externalTrafficPolicy").empty()) spec["externalTrafficPolicy"] = "Cluster";
    if ((balanced || node_port || type == "ClusterIP") && !spec.contains("internalTrafficPolicy"))
        spec["internalTrafficPolicy"] = "Cluster";
    if (!balanced) return;
    if (!spec.contains("allocateLoadBalancerNodePorts")) spec["allocateLoadBalancerNodePorts"] = true;
    balancer_modes(object);
}

void target_port(JsonObject& port) {
    const Json* target = port.if_contains("targetPort");
    if (target == nullptr || *target == 0 || *target == "") port["targetPort"] = to_int(port["port"]);
}

void string_data(JsonObject& secret) {
    const JsonObject* text = object_of(secret, "stringData");
    if (text == nullptr) return;
    const JsonObject values = *text;
    secret.erase("stringData");
    JsonObject& data = make_object(secret, "data");
    for (const auto& value : values) data[value.key()] = base::to_base64(string_at(value.value(), ""));
}

void limit_range(JsonObject& item) {
    if (text_of(item, "type") != "Container") return;
    JsonObject& limits = make_object(item, "default");
    if (const auto* most = object_of(item, "max")) add_missing(limits, JsonObject(*most));
    const JsonObject given = make_object(item, "default");
    JsonObject& requests = make_object(item, "defaultRequest");
    add_missing(requests, given);
    if (const auto* least = object_of(item, "min"))
        add_missing(make_object(item, "defaultRequest"), JsonObject(*least));
    for (const auto* key : {"default", "defaultRequest"}) {
        if (make_object(item, key).empty()) item.erase(key);
    }
}

void claim_templates(JsonObject& spec) {
    JsonArray* claims = list_of(spec, "volumeClaimTemplates");
    if (claims == nullptr) return;
    for (auto& claim : *claims) {
        if (!claim.is_object()) continue;
        claim.get_object()["apiVersion"] = "v1";
        claim.get_object()["kind"] = "PersistentVolumeClaim";
    }
}

Json policy(const char* type, int value) {
    return {{"type", type}, {"value", value}, {"periodSeconds", 15}};
}

void scaling_rules(JsonObject& behavior) {
    JsonObject& up = make_object(behavior, "scaleUp");
    add_missing(up, {{"selectPolicy", "Max"},
                     {"stabilizationWindowSeconds", 0},
                     {"policies", JsonArray{policy("Pods", 4), policy("Percent", 100)}}});
    JsonObject& down = make_object(behavior, "scaleDown");
    add_missing(down, {{"selectPolicy", "Max"}, {"policies", JsonArray{policy("Percent", 100)}}});
}

void definition_names(JsonObject& definition) {
    JsonObject& names = make_object(make_object(definition, "spec"), "names");
    std::string kind(text_of(names, "kind"));
    if (text_of(names, "listKind").empty() && !kind.empty()) names["listKind"] = kind + "List";
    std::transform(kind.begin(), kind.end(), kind.begin(),
                   [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
    if (text_of(names, "singular").empty() && !kind.empty()) names["singular"] = kind;
    if (make_object(definition, "status").contains("storedVersions")) return;
    const JsonArray* versions = list_of(make_object(definition, "spec"), "versions");
    if (versions == nullptr) return;
    for (const auto& version : *versions) {
        if (!bool_at(version, ".storage")) continue;
        const std::string name(string_at(version, ".name"));
        make_object(definition, "status")["storedVersions"] = JsonArray{Json(name)};
        return;
    }
}

struct Named {
    std::string_view name;
    DefaultRule rule;
};

// {name: a} and a are two spellings of the pool a.
void pool_names(JsonObject& spec) {
    JsonArray* pools = list_of(spec, "pools");
    if (pools == nullptr) return;
    for (auto& pool : *pools) {
        const JsonObject* entry = pool.if_object();
        if (entry == nullptr || entry->size() != 1) continue;
        const Json* name = entry->if_contains("name");
        if (name != nullptr && name->is_string()) pool = Json(*name);
    }
}

void machine_state(JsonObject& machine) {
    JsonObject& status = make_object(machine, "status");
    if (text_of(status, "state").empty()) status["state"] = "Pending";
}

constexpr Named kRules[] = {
    {"namespace-label", namespace_label},
    {"pod-cidrs", pod_cidrs},
    {"pod-ips", pod_ips},
    {"allocatable", allocatable},
    {"requests-from-limits", requests_from_limits},
    {"pod-requests", pod_requests},
    {"host-ports", host_ports},
    {"service-account", service_account},
    {"image-pull-policy", image_pull_policy},
    {"image-volume-policy", image_volume_policy},
    {"empty-dir", empty_dir},
    {"controller-labels", controller_labels},
    {"labels-of-template", labels_of_template},
    {"service", service},
    {"target-port", target_port},
    {"string-data", string_data},
    {"limit-range", limit_range},
    {"claim-templates", claim_templates},
    {"scaling-rules", scaling_rules},
    {"definition-names", definition_names},
    {"pool-names", pool_names},
    {"machine-state", machine_state},
};

}  // namespace

DefaultRule default_rule(std::string_view name) {
    for (const auto& named : kRules) {
        if (named.name == name) return named.rule;
    }
    return nullptr;
}

}  // namespace berth::model
