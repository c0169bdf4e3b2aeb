#include "node/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/cpu_set.h"
#include "model/node_reservation.h"
#include "node/topology_object.h"

namespace berth::node {
namespace {

// The whole machine where the Node does not say, so that an amount beyond it is seen.
model::Node with_capacity(const Situation& situation) {
    model::Node node = situation.node;
    if (!node.capacity.has(model::kCpu))
        node.capacity.set(model::kCpu, static_cast<int64_t>(situation.machine.cpus.size()) * kMilliPerCore);
    // Nobody knows how much it has: nothing is too much.
    if (!node.capacity.has(model::kMemory)) node.capacity.set(model::kMemory, int64_t{1} << 60);
    return node;
}

// By the annotation's cores, or by the kubelet: as it is told, or as the Node shows.
int64_t reserved_milli(const model::Node& node, const Kubelet& kubelet, const Cores& cores) {
    const int64_t shown =
        node.allocatable.has(model::kCpu) ? node.capacity.get(model::kCpu) - node.allocatable.get(model::kCpu) : 0;
    return std::max({static_cast<int64_t>(cores.reserved.size()) * kMilliPerCore, kubelet.reserved_milli, shown});
}

class Wanted {
public:
    Wanted(const Situation& situation, Plan& plan) : in_(situation), out_(plan) {}

    void suppress(const model::Node& node) {
        const int64_t capacity = node.capacity.get(model::kCpu);
        auto& found = out_.suppressed;
        found.milli =
            allowed_milli(capacity, reserved_milli(node, in_.kubelet, out_.cores), in_.slo, in_.pods, in_.usage);
        found.quota = next_quota(capacity, found.milli, in_.usage.quota);
        found.cpus = be_cpus(in_.machine, out_.cores, found.milli, in_.usage.cpuset);
        out_.nothing_left = found.cpus.empty();
        if (!out_.nothing_left) return;
        found.quota = kLeastQuota;
        out_.faults.push_back(fmt::format(
            "Node \"{}\": no core is left for best-effort pods: their cpuset stays, and they get the least quota",
            node.meta.name));
    }
    // Switching the policy, or disabling it, gives back what the other one took.
    void best_effort() {
        Goal goal{qos_group(in_.tree, model::KubeQos::BestEffort), be_cores(out_.cores), kNoQuota};
        if (out_.nothing_left) {
            goal.cpus.reset();
            goal.quota = kLeastQuota;
        } else if (in_.slo.enable && in_.slo.by_quota) {
            goal.quota = out_.suppressed.quota;
        } else if (in_.slo.enable) {
            goal.cpus = out_.suppressed.cpus;
        }
        out_.goals.push_back(goal);
        if (in_.tree.v2 || !goal.cpus) return;  // there, groups without a cpuset have their parent's
        for (const auto& pod : in_.pods) {
            if (pod.kube != model::KubeQos::BestEffort || pod.uid.empty() || pod.cpus) continue;
            out_.goals.push_back({pod_group(in_.tree, pod), goal.cpus, std::nullopt});
            for (const auto& container : pod.containers)
                out_.goals.push_back({container_group(in_.tree, pod, container), goal.cpus, std::nullopt});
        }
    }
    void others() {
        for (const auto& pod : in_.pods) {
            if (pod.uid.empty() || (pod.kube == model::KubeQos::BestEffort && !pod.cpus)) continue;
            one(pod);
        }
    }

private:
    // The order in which a pod's cores are found: its own, those of its NUMA nodes, the system's, the shared ones.
    model::CpuIds cpus_of(const NodePod& pod) const {
        const Cores& cores = out_.cores;
        if (pod.cpus) return model::cpus_in_both(*pod.cpus, cores.all);
        const auto shared = ls_cores(cores);
        if (!pod.numas.empty()) {
            model::CpuIds near;
            for (const auto& cpu : in_.machine.cpus) {
                if (std::find(pod.numas.begin(), pod.numas.end(), cpu.numa) != pod.numas.end()) near.push_back(cpu.id);
            }
            const auto both = model::cpus_in_both(shared, near);
            if (!both.empty()) return both;
        }
        if (pod.qos == model::Qos::System && !cores.system.empty())
            return model::cpus_without(cores.system, cores.reserved);
        return shared;
    }
    void one(const NodePod& pod) {
        const auto cpus = cpus_of(pod);
        if (cpus.empty()) {
            out_.faults.push_back(
                fmt::format("pod \"{}\": no core is left for it: its cpuset stays as it is", pod.full_name()));
            return;
        }
        std::optional<int64_t> quota;
        if (pod.cpus) quota = kNoQuota;
        std::set<std::string_view> kept;  // the kubelet's own
        for (const auto& given : in_.kubelet.statics) {
            if (given.pod_uid == pod.uid && !pod.cpus) kept.insert(given.container);
        }
        // Under its static policy the kubelet writes every container's cpuset: a narrower pod would refuse it.
        if (!in_.kubelet.is_static()) {
            out_.goals.push_back({pod_group(in_.tree, pod), cpus, quota});
        } else if (quota) {
            out_.goals.push_back({pod_group(in_.tree, pod), std::nullopt, quota});
        }
        for (const auto& container : pod.containers) {
            if (!kept.contains(container.name))
                out_.goals.push_back({container_group(in_.tree, pod, container), cpus, quota});
        }
    }

    const Situation& in_;
    Plan& out_;
};

// What is known without looking: the best-effort pods' limits; every other group has the whole machine, as it is made.
GroupNow as_told(const Situation& in, const Plan& plan, const std::string& group) {
    const auto best_effort = qos_group(in.tree, model::KubeQos::BestEffort);
    if (group != best_effort && !group.starts_with(best_effort + "/")) return {plan.cores.all, std::nullopt};
    GroupNow out{in.usage.cpuset ? *in.usage.cpuset : plan.cores.all, std::nullopt};
    if (group == best_effort) out.quota = in.usage.quota;
    return out;
}

}  // namespace

Plan plan(const Situation& situation) {
    Plan out;
    const model::Node node = with_capacity(situation);
    const model::NodeView view = model::view_of(node);
    for (const auto& fault : view.faults)
        out.faults.push_back(fmt::format("Node \"{}\": {}", node.meta.name, fault.message));
    out.cores = cores_of(situation.machine, node, view.reservation, situation.pods, situation.kubelet, out.faults);
    out.topology = topology_object({situation.machine, situation.node, out.cores, situation.kubelet, situation.pods});
    Wanted wanted(situation, out);
    wanted.suppress(node);
    wanted.best_effort();
    wanted.others();
    return out;
}

Json plan_document(const Situation& situation, const Plan& plan, const std::vector<std::string>& faults) {
    JsonArray writes, said;
    const auto now = [&](const std::string& group) { return as_told(situation, plan, group); };
    for (const auto& write : writes_for(situation.tree, plan.goals, now))
        writes.push_back(JsonObject{{"group", write.group}, {"file", write.file}, {"value", write.value}});
    for (const auto& fault : faults) said.push_back(Json(fault));
    for (const auto& fault : plan.faults) said.push_back(Json(fault));
    const auto& machine = situation.machine;
    return JsonObject{{"reservedCPUs", model::cpu_list_text(plan.cores.reserved)},
                      {"pools", JsonObject{{"ls", pools_json(pools_of(machine, ls_cores(plan.cores)))},
                                           {"be", pools_json(pools_of(machine, be_cores(plan.cores)))}}},
                      {"topology", plan.topology},
                      {"suppress", JsonObject{{"milli", plan.suppressed.milli},
                                              {"quota", plan.suppressed.quota},
                                              {"cpuset", model::cpu_list_text(plan.suppressed.cpus)}}},
                      {"writes", std::move(writes)},
                      {"faults", std::move(said)}};
}

}  // namespace berth::node
