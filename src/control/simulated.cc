// Nodes without machines: bound pods become Running with an address, those of Jobs end after a while, deleted ones go
// when their grace is over; nodes stay Ready and renew their Leases.
#include "control/simulated.h"

#include <fmt/format.h>

#include "control/pods.h"
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

JsonArray container_statuses(const Json& pod, std::string_view list, const JsonObject& state, bool running) {
    JsonArray out;
    const Json* containers = base::find(pod, {"spec", list});
    if (!containers || !containers->is_array()) return out;
    for (const auto& container : containers->as_array()) {
        const auto image = base::find_string(container, {"image"});
        out.push_back(JsonObject{{"name", base::find_string(container, {"name"})},
                                 {"image", image},
                                 {"imageID", image},
                                 {"ready", running},
                                 {"started", running},
                                 {"restartCount", 0},
                                 {"state", state}});
    }
    return out;
}

JsonArray conditions(const Json& pod, bool ready, std::string_view reason, const std::string& when) {
    JsonArray out;
    if (const Json* old = base::find(pod, {"status", "conditions"}); old && old->is_array()) {
        for (const auto& condition : old->as_array()) {
            if (base::find_string(condition, {"type"}) == "PodScheduled") out.push_back(condition);
        }
    }
    for (const auto* type : {"PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"}) {
        const bool holds = ready || std::string_view(type) == "Initialized";
        JsonObject condition{{"type", type},
                             {"status", holds ? "True" : "False"},
                             {"lastProbeTime", nullptr},
                             {"lastTransitionTime", when}};
        if (!holds) condition["reason"] = reason;
        out.push_back(std::move(condition));
    }
    return out;
}

class SimulatedPods final : public Reconciler {
public:
    std::string_view name() const override { return "simulated-pods"; }
    std::string resource() const override { return "pods"; }
    std::vector<std::string> watches() const override { return {"pods", "nodes"}; }

    std::vector<Ward> concerned(const std::string& resource, const Object& object, const Objects&) const override {
        if (resource != "pods" || object.node.empty()) return {};
        return {{object.meta.ns, object.meta.name}};
    }

    Outcome reconcile(const Ward& target, const Objects& objects, base::Time now) const override {
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
    static Outcome one(Action action) {
        Outcome outcome;
        outcome.actions.push_back(std::move(action));
        return outcome;
    }

    static Outcome leave(const Object& pod, base::Time now) {
        if (*pod.meta.deleted > now && !is_terminal(pod)) return {{}, pod.meta.deleted};
        auto action = delete_object("pods", pod.meta.ns, pod.meta.name, pod.meta.uid);
        action.body.as_object()["gracePeriodSeconds"] = 0;
        return one(std::move(action));
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

    static Action run(const Object& pod, const std::string& host, base::Time now) {
        // Its next version is on its way, so the document is not worth keeping.
        const base::JsonScope memory;
        const Json document = base::parse_json(pod.text()).value();
        const std::string when = model::time_text(now);
        const std::string address = address_of(pod.meta.uid);
        const JsonObject state{{"running", JsonObject{{"startedAt", when}}}};
        return patch_status("pods", pod.meta.ns, pod.meta.name, pod.meta.uid,
                            {{"phase", "Running"},
                             {"hostIP", host},
                             {"hostIPs", JsonArray{JsonObject{{"ip", host}}}},
                             {"podIP", address},
                             {"podIPs", JsonArray{JsonObject{{"ip", address}}}},
                             {"startTime", when},
                             {"conditions", conditions(document, true, "", when)},
                             {"containerStatuses", container_statuses(document, "containers", state, true)}});
    }

    // Pods of Jobs have done their work after kJobRuns.
    static Outcome end(const Object& pod, base::Time now) {
        const auto* controller = pod.meta.controller();
        if (!controller || controller->kind != "Job") return {};
        const auto started = model::parse_time(base::find_string(pod.document(), {"status", "startTime"}));
        if (!started) return {};
        const base::Time due = *started + kJobRuns;
        if (due > now) return {{}, due};
        const std::string when = model::time_text(now);
        const JsonObject state{{"terminated", JsonObject{{"exitCode", 0},
                                                         {"reason", "Completed"},
                                                         {"startedAt", model::time_text(*started)},
                                                         {"finishedAt", when}}}};
        return {
            {patch_status("pods", pod.meta.ns, pod.meta.name, pod.meta.uid,
                          {{"phase", "Succeeded"},
                           {"conditions", conditions(pod.document(), false, "PodCompleted", when)},
                           {"containerStatuses", container_statuses(pod.document(), "containers", state, false)}})}};
    }
};

class SimulatedNodes final : public Reconciler {
public:
    std::string_view name() const override { return "simulated-nodes"; }
    std::string resource() const override { return "nodes"; }
    std::vector<std::string> watches() const override { return {"nodes", "coordination.k8s.io/leases"}; }

    std::vector<Ward> concerned(const std::string& resource, const Object& object, const Objects&) const override {
        if (resource == "nodes") return {{"", object.meta.name}};
        if (object.meta.ns != kLeases) return {};
        return {{"", object.meta.name}};
    }

    Outcome reconcile(const Ward& target, const Objects& objects, base::Time now) const override {
        const auto node = objects.find("nodes", "", target.name);
        if (!node || is_deleting(*node) || node->meta.annotations.get(kSimulatedNode) != "true") return {};
        const auto lease = objects.find("coordination.k8s.io/leases", std::string(kLeases), target.name);
        const JsonObject spec{
            {"holderIdentity", target.name}, {"leaseDurationSeconds", 40}, {"renewTime", model::micro_time_text(now)}};
        if (!lease) {
            Action action{
                Action::Verb::Create, "coordination.k8s.io/leases", "v1", std::string(kLeases), "", "", nullptr};
            action.body = JsonObject{
                {"kind", "Lease"},
                {"apiVersion", "coordination.k8s.io/v1"},
                {"metadata", JsonObject{{"name", target.name},
                                        {"namespace", kLeases},
                                        {"ownerReferences", JsonArray{JsonObject{{"apiVersion", "v1"},
                                                                                 {"kind", "Node"},
                                                                                 {"name", target.name},
                                                                                 {"uid", node->meta.uid}}}}}},
                {"spec", spec}};
            return {{std::move(action)}, now + kRenewEvery};
        }
        const auto renewed = model::parse_time(base::find_string(lease->document(), {"spec", "renewTime"}));
        if (renewed && *renewed + kRenewEvery > now) return {{}, *renewed + kRenewEvery};
        Action action{Action::Verb::MergePatch,
                      "coordination.k8s.io/leases",
                      "v1",
                      std::string(kLeases),
                      target.name,
                      "",
                      nullptr};
        action.body = JsonObject{{"spec", spec}};
        return {{std::move(action)}, now + kRenewEvery};
    }

private:
    static constexpr std::string_view kLeases = "kube-node-lease";
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
    const JsonObject sizes{
        {"cpu", wanted.cpu}, {"memory", wanted.memory}, {"ephemeral-storage", "100Gi"}, {"pods", "110"}};
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
