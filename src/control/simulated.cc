// Nodes without machines: bound pods become Running with an address, those of Jobs end after a while, deleted ones go
// when their grace is over; nodes stay Ready and renew their Leases.
#include "control/simulated.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "control/pods.h"
#include "model/reader.h"
#include "model/times.h"
#include "model/version.h"

namespace berth::control {
namespace {

constexpr base::Duration kRenewEvery = std::chrono::seconds(10);
constexpr base::Duration kJobRuns = std::chrono::seconds(1);

uint64_t hash_of(std::string_view text) {
    uint64_t hash = 1469598103934665603ULL;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    return hash;
}

// Somewhere in 10.128.0.0/9.
std::string address_of(std::string_view uid) {
    const uint64_t n = hash_of(uid);
    return fmt::format("10.{}.{}.{}", 128 + n % 128, (n >> 8) % 256, 1 + (n >> 16) % 254);
}

// Statuses are made as text: every pod gets one.
std::string in_quotes(std::string_view text) {
    std::string out;
    base::append_quoted(text, out);
    return out;
}

std::string container_statuses(const model::Reader& pod, std::string_view state, bool running) {
    std::string out;
    const auto spec = pod["spec"];
    spec["containers"].each([&](const model::Reader& container) {
        const std::string image = in_quotes(container["image"].text());
        out += fmt::format(
            R"({}{{"name":{},"image":{},"imageID":{},"ready":{},"started":{},"restartCount":0,"state":{}}})",
            out.empty() ? "" : ",", in_quotes(container["name"].text()), image, image, running, running, state);
    });
    return out;
}

std::string conditions(const model::Reader& pod, bool ready, std::string_view reason, std::string_view when) {
    std::string out;
    const auto status = pod["status"];
    status["conditions"].each([&](const model::Reader& condition) {
        const bool says_so = condition["type"].text() == "PodScheduled" && condition["status"].text() == "True";
        if (says_so) out += simdjson::minify(*condition.view()) + ",";
    });
    // One that was created on its node was never bound, and a refusal may come after a binding: a kubelet says it then.
    if (out.empty()) {
        out = fmt::format(
            R"({{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"{}"}},)", when);
    }
    for (const std::string_view type : {"PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"}) {
        const bool holds = ready || type == "Initialized";
        out += fmt::format(R"({{"type":"{}","status":"{}","lastProbeTime":null,"lastTransitionTime":"{}"{}}})", type,
                           holds ? "True" : "False", when, holds ? "" : fmt::format(R"(,"reason":"{}")", reason));
        if (type != "Ready") out += ',';
    }
    return out;
}

Write patch_pod(const Object& pod, std::string_view status) {
    Write write = patch_object("pods", pod.meta, nullptr);
    write.subresource = "status";
    write.text = fmt::format(R"({{"status":{{{}}}}})", status);
    return write;
}

class SimulatedPods final : public Reconciler {
public:
    std::string_view name() const override { return "simulated-pods"; }
    std::string resource() const override { return "pods"; }
    std::vector<std::string> watches() const override { return {"pods", "nodes"}; }

    std::vector<Key> concerned(const std::string& resource, const Object& object, const Objects&) const override {
        if (resource != "pods" || object.node.empty()) return {};
        return {{object.meta.ns, object.meta.name}};
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const auto pod = objects.find("pods", target.ns, target.name);
        if (!pod) return {};
        const auto node = objects.find("nodes", "", pod->node);
        if (!node || node->meta.annotations.get(kSimulatedNode) != "true") return {};
        if (pod->meta.deleted) return leave(*pod, now);
        if (pod->phase == "Pending" || pod->phase.empty()) return one(run(*pod, host_of(*node), now));
        if (pod->phase == "Running") return end(*pod, now);
        return {};
    }

private:
    // A list in braces would be copied.
    static Reconciled one(Write write) {
        Reconciled outcome;
        outcome.writes.push_back(std::move(write));
        return outcome;
    }

    static Reconciled leave(const Object& pod, base::Time now) {
        if (*pod.meta.deleted > now && !is_terminal(pod)) return {{}, pod.meta.deleted};
        auto write = delete_object("pods", pod.meta);
        write.body.as_object()["gracePeriodSeconds"] = 0;
        return one(std::move(write));
    }

    static std::string host_of(const Object& node) {
        const Json* addresses = base::find(node.document(), {"status", "addresses"});
        if (!addresses || !addresses->is_array()) return {};
        for (const auto& item : addresses->as_array()) {
            if (base::find_string(item, {"type"}) == "InternalIP") {
                return std::string(base::find_string(item, {"address"}));
            }
        }
        return {};
    }

    static Write run(const Object& pod, const std::string& host, base::Time now) {
        std::string trouble;
        const model::Reader document(view_of(pod), trouble);
        const std::string when = model::time_text(now);
        const std::string address = address_of(pod.meta.uid);
        const std::string state = fmt::format(R"({{"running":{{"startedAt":"{}"}}}})", when);
        return patch_pod(
            pod, fmt::format(R"("phase":"Running","hostIP":{0},"hostIPs":[{{"ip":{0}}}],"podIP":"{1}","podIPs":)"
                             R"([{{"ip":"{1}"}}],"startTime":"{2}","conditions":[{3}],"containerStatuses":[{4}])",
                             in_quotes(host), address, when, conditions(document, true, "", when),
                             container_statuses(document, state, true)));
    }

    // What "sleep 300" or sh -c "sleep 5m" says, of any container; else kJobRuns.
    static base::Duration runs_for(const model::Reader& spec) {
        base::Duration longest{};
        spec["containers"].each([&](const model::Reader& container) {
            std::string words;
            for (const char* list : {"command", "args"})
                container[list].each([&](const model::Reader& word) { words.append(word.text()).append(" "); });
            const auto at = words.find("sleep ");
            if (at == std::string::npos) return;
            std::string span = words.substr(at + 6);
            span.resize(std::min(span.find_first_of(" ;&"), span.size()));
            if (span == "infinity") longest = std::max<base::Duration>(longest, std::chrono::hours(24 * 365));
            if (!span.empty() && span.back() >= '0' && span.back() <= '9') span += 's';
            if (const auto read = model::parse_duration(span)) longest = std::max(longest, *read);
        });
        return longest > base::Duration::zero() ? longest : kJobRuns;
    }

    // Pods of Jobs have done their work after kJobRuns, or when they have slept enough.
    static Reconciled end(const Object& pod, base::Time now) {
        const auto* controller = pod.meta.controller();
        if (!controller || controller->kind != "Job") return {};
        std::string trouble;
        const model::Reader document(view_of(pod), trouble);
        const auto status = document["status"];
        const auto started = model::parse_time(status["startTime"].text());
        if (!started) return {};
        const base::Time due = *started + runs_for(document["spec"]);
        if (due > now) return {{}, due};
        const std::string when = model::time_text(now);
        const std::string state =
            fmt::format(R"({{"terminated":{{"exitCode":0,"reason":"Completed","startedAt":"{}","finishedAt":"{}"}}}})",
                        model::time_text(*started), when);
        return one(patch_pod(pod, fmt::format(R"("phase":"Succeeded","conditions":[{}],"containerStatuses":[{}])",
                                              conditions(document, false, "PodCompleted", when),
                                              container_statuses(document, state, false))));
    }

    // Until the next call: its next version is on its way, so the document is not worth keeping.
    static JsonView view_of(const Object& pod) {
        thread_local base::JsonParser parser;
        const auto view = parser.parse(pod.text());
        CHECK(view.ok());  // read_object() has read it
        return *view;
    }
};

class SimulatedNodes final : public Reconciler {
public:
    std::string_view name() const override { return "simulated-nodes"; }
    std::string resource() const override { return "nodes"; }
    std::vector<std::string> watches() const override { return {"nodes", kLeaseResource}; }

    std::vector<Key> concerned(const std::string& resource, const Object& object, const Objects&) const override {
        if (resource == "nodes") return {{"", object.meta.name}};
        if (object.meta.ns != kLeases) return {};
        return {{"", object.meta.name}};
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const auto node = objects.find("nodes", "", target.name);
        if (!node || is_deleting(*node) || node->meta.annotations.get(kSimulatedNode) != "true") return {};
        const auto lease = objects.find(kLeaseResource, std::string(kLeases), target.name);
        const JsonObject spec{
            {"holderIdentity", target.name}, {"leaseDurationSeconds", 40}, {"renewTime", model::micro_time_text(now)}};
        if (!lease) {
            const JsonObject made{
                {"kind", "Lease"},
                {"apiVersion", "coordination.k8s.io/v1"},
                {"metadata", JsonObject{{"name", target.name},
                                        {"namespace", kLeases},
                                        {"ownerReferences", JsonArray{JsonObject{{"apiVersion", "v1"},
                                                                                 {"kind", "Node"},
                                                                                 {"name", target.name},
                                                                                 {"uid", node->meta.uid}}}}}},
                {"spec", spec}};
            return {{model::create_object(kLeaseResource, std::string(kLeases), made)}, now + kRenewEvery};
        }
        const auto renewed = model::parse_time(base::find_string(lease->document(), {"spec", "renewTime"}));
        if (renewed && *renewed + kRenewEvery > now) return {{}, *renewed + kRenewEvery};
        return {{patch_object(kLeaseResource, lease->meta, JsonObject{{"spec", spec}})}, now + kRenewEvery};
    }

private:
    static constexpr std::string_view kLeases = "kube-node-lease";
    static constexpr const char* kLeaseResource = "coordination.k8s.io/leases";
};

}  // namespace

std::unique_ptr<Reconciler> simulated_pods_reconciler() {
    return std::make_unique<SimulatedPods>();
}

std::unique_ptr<Reconciler> simulated_nodes_reconciler() {
    return std::make_unique<SimulatedNodes>();
}

Json simulated_node(const SimulatedNode& wanted, base::Time now) {
    const std::string when = model::time_text(now);
    JsonObject labels{
        {"kubernetes.io/hostname", wanted.name}, {"kubernetes.io/os", "linux"}, {"kubernetes.io/arch", "amd64"}};
    for (const auto& [key, value] : wanted.labels) labels[key] = value;
    JsonObject sizes{{"cpu", wanted.cpu}, {"memory", wanted.memory}, {"ephemeral-storage", "100Gi"}, {"pods", "110"}};
    for (const auto& [resource, amount] : wanted.amounts) sizes[resource] = amount;
    JsonArray conditions;
    for (const auto* type : {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}) {
        const bool ready = std::string_view(type) == "Ready";
        conditions.push_back(JsonObject{{"type", type},
                                        {"status", ready ? "True" : "False"},
                                        {"reason", ready ? "KubeletReady" : "KubeletHasSufficientResources"},
                                        {"message", ready ? "simulated node is ready" : ""},
                                        {"lastHeartbeatTime", when},
                                        {"lastTransitionTime", when}});
    }
    const uint64_t n = hash_of(wanted.name);
    const std::string address = fmt::format("10.0.{}.{}", n % 256, 1 + (n >> 8) % 254);
    return JsonObject{
        {"kind", "Node"},
        {"apiVersion", "v1"},
        {"metadata",
         JsonObject{{"name", wanted.name}, {"labels", labels}, {"annotations", JsonObject{{kSimulatedNode, "true"}}}}},
        {"spec", JsonObject{}},
        {"status", JsonObject{{"capacity", sizes},
                              {"allocatable", sizes},
                              {"conditions", conditions},
                              {"addresses", JsonArray{JsonObject{{"type", "InternalIP"}, {"address", address}},
                                                      JsonObject{{"type", "Hostname"}, {"address", wanted.name}}}},
                              {"nodeInfo", JsonObject{{"architecture", "amd64"},
                                                      {"operatingSystem", "linux"},
                                                      {"osImage", "simulated"},
                                                      {"kernelVersion", "simulated"},
                                                      {"containerRuntimeVersion", "berth://simulated"},
                                                      {"kubeletVersion", model::kServedVersion},
                                                      {"kubeProxyVersion", ""},
                                                      {"machineID", wanted.name},
                                                      {"systemUUID", wanted.name},
                                                      {"bootID", wanted.name}}}}}};
}

}  // namespace berth::control
