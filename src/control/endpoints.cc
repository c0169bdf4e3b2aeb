// Where a Service's pods are: EndpointSlices, and the older Endpoints.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "control/pods.h"
#include "control/reconciler.h"
#include "control/templates.h"

namespace berth::control {
namespace {

constexpr const char* kServices = "services";
constexpr const char* kSlices = "discovery.k8s.io/endpointslices";
constexpr const char* kEndpoints = "endpoints";
constexpr std::string_view kServiceName = "kubernetes.io/service-name";
constexpr std::string_view kSliceManager = "endpointslice.kubernetes.io/managed-by";
constexpr std::string_view kSliceOurs = "endpointslice-controller.k8s.io";
constexpr std::string_view kEndpointsManager = "endpoints.kubernetes.io/managed-by";
constexpr std::string_view kEndpointsOurs = "endpoint-controller";
constexpr size_t kMostInSlice = 100;
constexpr size_t kMostInEndpoints = 1000;

std::optional<model::Labels> pod_selector(const Object& service) {
    const Json* given = base::find(service.document(), {"spec", "selector"});
    if (!given || !given->is_object() || given->get_object().empty()) return std::nullopt;
    if (base::find_string(service.document(), {"spec", "type"}) == "ExternalName") return std::nullopt;
    std::vector<model::Labels::Entry> entries;
    for (const auto& [key, value] : given->get_object()) {
        entries.emplace_back(key, value.is_string() ? std::string(value.get_string()) : "");
    }
    return model::Labels(std::move(entries));
}

bool selects(const model::Labels& selector, const model::Labels& labels) {
    return std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
        const auto* has = labels.find(wanted.first);
        return has && *has == wanted.second;
    });
}

std::string_view pod_address(const Object& pod) {
    return base::find_string(pod.document(), {"status", "podIP"});
}

// The number behind a targetPort, which may be a name that each pod gives to another number; 0: the pod has none.
int64_t target_port(const Json& port, const Object& pod) {
    const Json* target = base::find(port, {"targetPort"});
    if (!target || (target->is_int64() && target->get_int64() == 0)) return integer_at(port, {"port"}, 0);
    if (target->is_int64()) return target->get_int64();
    const Json* containers = base::find(pod.document(), {"spec", "containers"});
    if (!target->is_string() || !containers || !containers->is_array()) return 0;
    const auto protocol = base::find_string(port, {"protocol"});
    for (const auto& container : containers->get_array()) {
        const Json* ports = base::find(container, {"ports"});
        if (!ports || !ports->is_array()) continue;
        for (const auto& named : ports->get_array()) {
            const auto its = base::find_string(named, {"protocol"});
            const bool same = (its.empty() ? "TCP" : its) == (protocol.empty() ? "TCP" : protocol);
            if (same && base::find_string(named, {"name"}) == std::string_view(target->get_string())) {
                return integer_at(named, {"containerPort"}, 0);
            }
        }
    }
    return 0;
}

// One Service and its pods.
class Directory {
public:
    Directory(const Object& service, const Objects& objects) : service_(service), objects_(objects) {
        const Json* early = base::find(service.document(), {"spec", "publishNotReadyAddresses"});
        publishes_unready_ = early && early->is_bool() && early->get_bool();
    }

    Writes writes(const model::Labels& selector) {
        find_pods(selector);
        write_slices();
        write_endpoints();
        return std::move(writes_);
    }

private:
    struct Place {
        ObjectPtr pod;
        bool ready = false;  // a pod that is going is not
        bool serves = false;
    };

    void find_pods(const model::Labels& selector) {
        for (const auto& pod : objects_.list("pods", service_.meta.ns)) {
            if (is_terminal(*pod) || !selects(selector, pod->meta.labels) || pod_address(*pod).empty()) continue;
            const bool serves = is_ready(*pod);
            const bool ready = publishes_unready_ || (serves && !is_deleting(*pod));
            by_ports_[base::to_text(ports_for(*pod))].push_back({pod, ready, serves});
        }
    }

    // As slices and Endpoints both name them.
    JsonArray ports_for(const Object& pod) const {
        JsonArray out;
        const Json* ports = base::find(service_.document(), {"spec", "ports"});
        if (!ports || !ports->is_array()) return out;
        for (const auto& port : ports->get_array()) {
            const int64_t number = target_port(port, pod);
            if (number == 0) continue;
            const auto protocol = base::find_string(port, {"protocol"});
            JsonObject made{{"name", base::find_string(port, {"name"})},
                            {"port", number},
                            {"protocol", protocol.empty() ? "TCP" : protocol}};
            if (const Json* of = base::find(port, {"appProtocol"})) made["appProtocol"] = *of;
            out.push_back(std::move(made));
        }
        return out;
    }

    static JsonObject reference_to(const Object& pod) {
        return {{"kind", "Pod"}, {"namespace", pod.meta.ns}, {"name", pod.meta.name}, {"uid", pod.meta.uid}};
    }

    // Headless services find a pod by its name.
    std::string_view hostname_of(const Object& pod) const {
        const auto under = base::find_string(pod.document(), {"spec", "subdomain"});
        return under == service_.meta.name ? base::find_string(pod.document(), {"spec", "hostname"}) : "";
    }

    JsonObject endpoint(const Place& place) const {
        const Object& pod = *place.pod;
        JsonObject out{
            {"addresses", JsonArray{Json(pod_address(pod))}},
            {"conditions",
             JsonObject{{"ready", place.ready}, {"serving", place.serves}, {"terminating", is_deleting(pod)}}},
            {"targetRef", reference_to(pod)}};
        if (const auto host = hostname_of(pod); !host.empty()) out["hostname"] = host;
        if (pod.node.empty()) return out;
        out["nodeName"] = pod.node;
        const auto node = objects_.find("nodes", "", pod.node);
        const auto* zone = node ? node->meta.labels.find("topology.kubernetes.io/zone") : nullptr;
        if (zone) out["zone"] = *zone;
        return out;
    }

    // Of each list of ports, so many pods in a slice. The names say which, so that a change stays in its slice.
    void write_slices() {
        std::map<std::string, Json> wanted;
        for (const auto& [ports, places] : by_ports_) {
            for (size_t begin = 0; begin < places.size(); begin += kMostInSlice) {
                JsonArray endpoints;
                for (size_t i = begin; i < std::min(places.size(), begin + kMostInSlice); ++i) {
                    endpoints.push_back(endpoint(places[i]));
                }
                add_slice(ports, begin, std::move(endpoints), wanted);
            }
        }
        if (wanted.empty()) add_slice("[]", 0, {}, wanted);
        for (const auto& slice : objects_.controlled_by(kSlices, service_.meta.uid)) {
            const auto found = wanted.find(slice->meta.name);
            if (slice->meta.labels.get(kSliceManager) != kSliceOurs || is_deleting(*slice)) continue;
            if (found == wanted.end()) {
                writes_.push_back(delete_object(kSlices, slice->meta));
                continue;
            }
            if (differs(*slice, found->second, {"endpoints", "ports"})) {
                const Json& body = found->second;
                writes_.push_back(
                    patch_object(kSlices, slice->meta,
                                 JsonObject{{"endpoints", body.at("endpoints")}, {"ports", body.at("ports")}}));
            }
            wanted.erase(found);
        }
        for (auto& [name, slice] : wanted) {
            writes_.push_back(model::create_object(kSlices, service_.meta.ns, std::move(slice)));
        }
    }

    void add_slice(const std::string& ports, size_t begin, JsonArray endpoints,
                   std::map<std::string, Json>& wanted) const {
        const std::string name =
            fmt::format("{}-{}", service_.meta.name,
                        hash_text(fmt::format("{} {} {}", service_.meta.uid, ports, begin)).substr(0, 5));
        JsonObject meta = meta_of(name);
        JsonObject labels = service_labels();
        labels[kServiceName] = service_.meta.name;
        labels[kSliceManager] = kSliceOurs;
        meta["labels"] = std::move(labels);
        meta["ownerReferences"] = JsonArray{controller_reference(service_, "Service", "v1")};
        wanted[name] = JsonObject{{"kind", "EndpointSlice"}, {"apiVersion", "discovery.k8s.io/v1"},
                                  {"metadata", meta},        {"addressType", "IPv4"},
                                  {"endpoints", endpoints},  {"ports", *base::parse_json(ports)}};
    }

    JsonObject meta_of(std::string_view name) const { return {{"name", name}, {"namespace", service_.meta.ns}}; }

    JsonObject service_labels() const {
        JsonObject labels;
        for (const auto& [key, value] : service_.meta.labels) labels[key] = value;
        if (base::find_string(service_.document(), {"spec", "clusterIP"}) == "None") {
            labels["service.kubernetes.io/headless"] = "";
        }
        return labels;
    }

    JsonArray addresses(const std::vector<Place>& places, bool ready) const {
        JsonArray out;
        for (const auto& place : places) {
            const Object& pod = *place.pod;
            if (place.ready != ready || is_deleting(pod) || out.size() == kMostInEndpoints) continue;
            JsonObject made{{"ip", pod_address(pod)}, {"targetRef", reference_to(pod)}};
            if (!pod.node.empty()) made["nodeName"] = pod.node;
            if (const auto host = hostname_of(pod); !host.empty()) made["hostname"] = host;
            out.push_back(std::move(made));
        }
        return out;
    }

    void write_endpoints() {
        JsonArray subsets;
        for (const auto& [ports, places] : by_ports_) {
            JsonObject subset{{"ports", *base::parse_json(ports)}};
            if (auto ready = addresses(places, true); !ready.empty()) subset["addresses"] = std::move(ready);
            if (auto waiting = addresses(places, false); !waiting.empty()) {
                subset["notReadyAddresses"] = std::move(waiting);
            }
            if (subset.size() > 1) subsets.push_back(std::move(subset));
        }
        const auto found = objects_.find(kEndpoints, service_.meta.ns, service_.meta.name);
        const Json wanted(JsonObject{{"subsets", std::move(subsets)}});
        if (found) {
            if (differs(*found, wanted, {"subsets"})) {
                writes_.push_back(patch_object(kEndpoints, found->meta, wanted));
            }
            return;
        }
        JsonObject labels = service_labels();
        labels[kEndpointsManager] = kEndpointsOurs;
        JsonObject meta = meta_of(service_.meta.name);
        meta["labels"] = std::move(labels);
        writes_.push_back(model::create_object(kEndpoints, service_.meta.ns,
                                               JsonObject{{"kind", "Endpoints"},
                                                          {"apiVersion", "v1"},
                                                          {"metadata", std::move(meta)},
                                                          {"subsets", wanted.at("subsets")}}));
    }

    // An empty list is as good as none.
    static bool differs(const Object& stored, const Json& wanted, std::initializer_list<std::string_view> fields) {
        return std::any_of(fields.begin(), fields.end(), [&](std::string_view field) {
            const Json* has = base::find(stored.document(), {field});
            return template_text(has ? *has : Json(JsonArray())) != template_text(wanted.at(field));
        });
    }

    const Object& service_;
    const Objects& objects_;
    bool publishes_unready_ = false;
    std::map<std::string, std::vector<Place>> by_ports_;  // pods by name
    Writes writes_;
};

class Endpoints final : public Reconciler {
public:
    std::string_view name() const override { return "endpoint"; }
    std::string resource() const override { return kServices; }
    std::vector<std::string> watches() const override { return {kServices, "pods", "nodes", kSlices, kEndpoints}; }

    std::vector<Key> concerned(const std::string& resource, const Object& object,
                               const Objects& objects) const override {
        if (resource == kServices || resource == kEndpoints) return {{object.meta.ns, object.meta.name}};
        std::vector<Key> out;
        if (resource == kSlices) {
            const auto service = object.meta.labels.get(kServiceName);
            if (!service.empty()) out.push_back({object.meta.ns, std::string(service)});
        }
        if (resource != "pods") return out;
        for (const auto& service : objects.list(kServices, object.meta.ns)) {
            const auto selector = pod_selector(*service);
            if (selector && selects(*selector, object.meta.labels)) out.push_back({object.meta.ns, service->meta.name});
        }
        return out;
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time) const override {
        const auto service = objects.find(kServices, target.ns, target.name);
        if (!service) return forget(target, objects);
        const auto selector = pod_selector(*service);
        if (!selector || is_deleting(*service)) return {};  // somebody else says where it leads
        return {Directory(*service, objects).writes(*selector)};
    }

private:
    // Slices belong to their Service and go with it; Endpoints belong to nobody.
    static Reconciled forget(const Key& target, const Objects& objects) {
        const auto left = objects.find(kEndpoints, target.ns, target.name);
        if (!left || is_deleting(*left) || left->meta.labels.get(kEndpointsManager) != kEndpointsOurs) return {};
        return {{delete_object(kEndpoints, left->meta)}};
    }
};

}  // namespace

std::unique_ptr<Reconciler> endpoints_reconciler() {
    return std::make_unique<Endpoints>();
}

}  // namespace berth::control
