#include "node/topology_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/reservation.h"

namespace berth::node {
namespace {

Json detail_of(const Machine& machine) {
    JsonArray detail;
    for (const auto& cpu : machine.cpus)
        detail.push_back(JsonObject{{"id", cpu.id}, {"core", cpu.core}, {"socket", cpu.socket}, {"node", cpu.numa}});
    return JsonObject{{"detail", std::move(detail)}};
}

Json policy_of(const Kubelet& kubelet) {
    JsonObject out{{"policy", kubelet.cpu_policy}};
    if (!kubelet.cpu_options.empty()) {
        JsonObject options;
        for (const auto& [name, value] : kubelet.cpu_options) options[name] = value;
        out["options"] = std::move(options);
    }
    if (!kubelet.reserved.empty()) out["reservedCPUs"] = model::cpu_list_text(kubelet.reserved);
    return out;
}

// What the kubelet's static policy gave to pods that are still here.
JsonArray allocations_of(const TopologyFacts& facts) {
    JsonArray out;
    for (const auto& pod : facts.pods) {
        model::CpuIds cpus;
        for (const auto& given : facts.kubelet.statics) {
            if (given.pod_uid == pod.uid) cpus.insert(cpus.end(), given.cpus.begin(), given.cpus.end());
        }
        if (cpus.empty()) continue;
        std::sort(cpus.begin(), cpus.end());
        cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
        out.push_back(JsonObject{{"namespace", pod.ns},
                                 {"name", pod.name},
                                 {"uid", pod.uid},
                                 {"cpuset", model::cpu_list_text(cpus)},
                                 {"managedByKubelet", true}});
    }
    return out;
}

// As the API says it, from the kubelet's word.
std::string topology_policy(const Kubelet& kubelet) {
    static constexpr std::array kWords{std::pair{"best-effort", "BestEffort"}, std::pair{"restricted", "Restricted"},
                                       std::pair{"single-numa-node", "SingleNUMANode"}};
    for (const auto& [word, said] : kWords) {
        if (kubelet.topology_policy != word) continue;
        return fmt::format("{}{}", said, kubelet.topology_scope == "pod" ? "PodLevel" : "ContainerLevel");
    }
    return "None";
}

Json resource(const std::string& name, const std::string& amount) {
    return JsonObject{{"name", name}, {"capacity", amount}, {"allocatable", amount}, {"available", amount}};
}

std::string bytes(int64_t amount) {
    return Quantity::from_value(amount, Quantity::Format::BinarySI).text();
}

JsonArray zones_of(const TopologyFacts& facts) {
    JsonArray out;
    const auto& numas = facts.machine.numas;
    for (const auto& numa : numas) {
        const auto cpus = std::count_if(facts.machine.cpus.begin(), facts.machine.cpus.end(),
                                        [&](const auto& cpu) { return cpu.numa == numa.id; });
        // Where the source says nothing of memory, the Node's in equal parts.
        const int64_t memory = numa.memory > 0 ? numa.memory
                                               : facts.node.capacity.get(model::kMemory) /
                                                     static_cast<int64_t>(std::max<size_t>(1, numas.size()));
        JsonArray resources{resource("cpu", fmt::format("{}", cpus))};
        if (memory > 0) resources.push_back(resource("memory", bytes(memory)));
        for (const auto& pages : numa.huge)
            resources.push_back(resource("hugepages-" + bytes(pages.size), bytes(pages.size * pages.count)));
        out.push_back(JsonObject{
            {"name", fmt::format("node-{}", numa.id)}, {"type", "Node"}, {"resources", std::move(resources)}});
    }
    return out;
}

JsonObject owner_of(const model::Node& node) {
    JsonObject owner{{"apiVersion", "v1"},
                     {"kind", "Node"},
                     {"name", node.meta.name},
                     {"controller", true},
                     {"blockOwnerDeletion", true}};
    if (!node.meta.uid.empty()) owner["uid"] = node.meta.uid;
    return owner;
}

}  // namespace

Json pools_json(const Pools& pools) {
    JsonArray out;
    for (const auto& pool : pools)
        out.push_back(
            JsonObject{{"socket", pool.socket}, {"node", pool.numa}, {"cpuset", model::cpu_list_text(pool.cpus)}});
    return out;
}

Json topology_object(const TopologyFacts& facts) {
    const Cores& cores = facts.cores;
    JsonObject annotations{
        {"kubelet.koordinator.sh/cpu-manager-policy", base::to_text(policy_of(facts.kubelet))},
        {"node.koordinator.sh/cpu-shared-pools", base::to_text(pools_json(pools_of(facts.machine, ls_cores(cores))))},
        {"node.koordinator.sh/be-cpu-shared-pools",
         base::to_text(pools_json(pools_of(facts.machine, be_cores(cores))))},
        {model::kCpuTopology, base::to_text(detail_of(facts.machine))}};
    if (!cores.reserved.empty()) {
        annotations[model::kNodeReservation] =
            base::to_text(JsonObject{{"reservedCPUs", model::cpu_list_text(cores.reserved)}});
    }
    if (const auto given = allocations_of(facts); !given.empty()) annotations[kPodCpus] = base::to_text(given);
    return JsonObject{{"apiVersion", "topology.node.k8s.io/v1alpha1"},
                      {"kind", "NodeResourceTopology"},
                      {"metadata", JsonObject{{"name", facts.node.meta.name},
                                              {"labels", JsonObject{{"app.kubernetes.io/managed-by", "Koordinator"}}},
                                              {"annotations", std::move(annotations)},
                                              {"ownerReferences", JsonArray{owner_of(facts.node)}}}},
                      {"topologyPolicies", JsonArray{Json(topology_policy(facts.kubelet))}},
                      {"zones", zones_of(facts)}};
}

}  // namespace berth::node
