#include "plain.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace berth::properties {
namespace {

using model::Node;
using model::PodSpec;

std::optional<int64_t> integer(const std::string& text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
    return value;
}

bool holds(const model::NodeSelectorRequirement& requirement, const std::string* value) {
    const auto& values = requirement.values;
    const bool listed = value && std::find(values.begin(), values.end(), *value) != values.end();
    if (requirement.op == "In") return listed;
    if (requirement.op == "NotIn") return !listed;
    if (requirement.op == "Exists") return value != nullptr;
    if (requirement.op == "DoesNotExist") return value == nullptr;
    if (!value || !integer(*value) || !integer(values.front())) return false;
    return requirement.op == "Gt" ? *integer(*value) > *integer(values.front())
                                  : *integer(*value) < *integer(values.front());
}

// All of its conditions; a term without conditions matches no node.
bool matches(const model::NodeSelectorTerm& term, const Node& node) {
    if (term.match_expressions.empty() && term.match_fields.empty()) return false;
    for (const auto& requirement : term.match_expressions) {
        if (!holds(requirement, node.meta.labels.find(requirement.key))) return false;
    }
    for (const auto& requirement : term.match_fields) {
        if (!holds(requirement, &node.meta.name)) return false;
    }
    return true;
}

bool tolerated(const model::Taint& taint, const std::vector<model::Toleration>& tolerations) {
    for (const auto& toleration : tolerations) {
        if (!toleration.effect.empty() && toleration.effect != taint.effect) continue;
        if (!toleration.key.empty() && toleration.key != taint.key) continue;
        if (toleration.op == "Exists") return true;
        if ((toleration.op.empty() || toleration.op == "Equal") && !toleration.key.empty() &&
            toleration.value == taint.value)
            return true;
    }
    return false;
}

bool selected(const PodSpec& spec, const Node& node) {
    for (const auto& [key, value] : spec.node_selector) {
        const std::string* found = node.meta.labels.find(key);
        if (!found || *found != value) return false;
    }
    if (!spec.required_nodes) return true;
    return std::any_of(spec.required_nodes->begin(), spec.required_nodes->end(),
                       [&](const auto& term) { return matches(term, node); });
}

bool admitted(const PodSpec& spec, const Node& node) {
    if (!spec.node_name.empty() && spec.node_name != node.meta.name) return false;
    const model::Taint cordon{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
    if (node.unschedulable && !tolerated(cordon, spec.tolerations)) return false;
    for (const auto& taint : node.taints) {
        if (taint.effect != "PreferNoSchedule" && !tolerated(taint, spec.tolerations)) return false;
    }
    return selected(spec, node);
}

bool clash(const model::HostPort& a, const model::HostPort& b) {
    return a.port == b.port && a.protocol == b.protocol && (a.ip == b.ip || a.ip == "0.0.0.0" || b.ip == "0.0.0.0");
}

bool has_image(const Node& node, const std::string& image) {
    for (const auto& entry : node.images) {
        if (std::count(entry.names.begin(), entry.names.end(), image) > 0) return true;
    }
    return false;
}

int64_t allocatable(const Node& node, const std::string& resource) {
    int64_t amount = 0;
    node.allocatable.for_each([&](model::ResourceId id, int64_t value) {
        if (model::resource_name(id) == resource) amount = value;
    });
    return amount;
}

int64_t least_allocated(int64_t cpus, int64_t cpu, int64_t bytes, int64_t memory) {
    std::vector<int64_t> points;
    for (const auto& [capacity, asked] : {std::pair(cpus, cpu), std::pair(bytes, memory)}) {
        if (capacity == 0) continue;
        const __int128_t rest = asked > capacity ? 0 : static_cast<__int128_t>(capacity) - asked;
        points.push_back(static_cast<int64_t>(rest * 100 / capacity));
    }
    int64_t sum = 0;
    for (const int64_t each : points) sum += each;
    return points.empty() ? 0 : sum / static_cast<int64_t>(points.size());
}

int64_t balanced(int64_t cpus, double cpu, int64_t bytes, double memory) {
    if (cpus == 0 || bytes == 0) return 100;
    const double f1 = std::min(cpu / static_cast<double>(cpus), 1.0);
    const double f2 = std::min(memory / static_cast<double>(bytes), 1.0);
    return static_cast<int64_t>((1 - std::fabs((f1 - f2) / 2)) * 100);
}

int64_t taint_count(const PodSpec& spec, const Node& node) {
    int64_t count = 0;
    for (const auto& taint : node.taints) {
        if (taint.effect == "PreferNoSchedule" && !tolerated(taint, spec.tolerations)) ++count;
    }
    return count;
}

int64_t preference(const PodSpec& spec, const Node& node) {
    int64_t sum = 0;
    for (const auto& preferred : spec.preferred_nodes) {
        if (matches(preferred.term, node)) sum += preferred.weight;
    }
    return sum;
}

}  // namespace

std::map<std::string, PlainCluster::Sums> PlainCluster::sums() const {
    std::map<std::string, Sums> all;
    for (const auto& [uid, pod] : pods) {
        Sums& sum = all[pod.node];
        pod.spec->requests.for_each(
            [&](model::ResourceId id, int64_t amount) { sum.used[std::string(model::resource_name(id))] += amount; });
        sum.scored_cpu += pod.spec->scoring_cpu_milli;
        sum.scored_memory += pod.spec->scoring_memory;
        sum.ports.insert(sum.ports.end(), pod.spec->ports.begin(), pod.spec->ports.end());
    }
    return all;
}

bool PlainCluster::fits(const PodSpec& spec, const Node& node, const Sums& sums) const {
    bool enough = true;
    spec.requests.for_each([&](model::ResourceId id, int64_t amount) {
        const std::string name(model::resource_name(id));
        const auto used = sums.used.find(name);
        const int64_t taken = used == sums.used.end() ? 0 : used->second;
        if (amount > 0 && amount > allocatable(node, name) - taken) enough = false;
    });
    for (const auto& wanted : spec.ports) {
        for (const auto& held : sums.ports) enough = enough && !clash(wanted, held);
    }
    return enough;
}

// Each image on the node counts its size times the part of all nodes that have it; 23 MiB is 0, 1000 MiB a container
// 100. The size is the same on all nodes here.
int64_t PlainCluster::image_points(const PodSpec& spec, const Node& node) const {
    constexpr int64_t kMiB = 1024 * 1024;
    int64_t sum = 0;
    for (const auto& image : spec.images) {
        if (!has_image(node, image)) continue;
        int64_t size = 0;
        double having = 0;
        for (const auto& [name, other] : nodes) having += has_image(other, image) ? 1 : 0;
        for (const auto& entry : node.images) {
            if (std::count(entry.names.begin(), entry.names.end(), image) > 0) size = entry.size;
        }
        sum += static_cast<int64_t>(static_cast<double>(size) * (having / static_cast<double>(nodes.size())));
    }
    if (spec.images.empty()) return 0;
    const int64_t most = 1000 * kMiB * static_cast<int64_t>(spec.images.size());
    return 100 * (std::min(std::max(sum, 23 * kMiB), most) - 23 * kMiB) / (most - 23 * kMiB);
}

PlainCluster::Answer PlainCluster::evaluate(const PodSpec& spec) const {
    const auto all = sums();
    Answer answer;
    int64_t most_taints = 0;
    int64_t most_preferred = 0;
    const auto sums_of = [&](const std::string& name) {
        const auto found = all.find(name);
        return found == all.end() ? Sums() : found->second;
    };
    for (const auto& [name, node] : nodes) {
        if (!admitted(spec, node) || !fits(spec, node, sums_of(name))) continue;
        answer.feasible[name] = 0;
        most_taints = std::max(most_taints, taint_count(spec, node));
        most_preferred = std::max(most_preferred, preference(spec, node));
    }
    for (auto& [name, total] : answer.feasible) {
        const Node& node = nodes.at(name);
        Sums sum = sums_of(name);
        const int64_t cpus = allocatable(node, "cpu");
        const int64_t bytes = allocatable(node, "memory");
        const int64_t cpu = spec.requests.get(model::kCpu);
        const int64_t memory = spec.requests.get(model::kMemory);
        total += 3 * (most_taints == 0 ? 100 : 100 - 100 * taint_count(spec, node) / most_taints);
        total += 2 * (most_preferred == 0 ? 0 : 100 * preference(spec, node) / most_preferred);
        total += least_allocated(cpus, sum.scored_cpu + spec.scoring_cpu_milli, bytes,
                                 sum.scored_memory + spec.scoring_memory);
        if (cpu != 0 || memory != 0) {
            total += balanced(cpus, static_cast<double>(sum.used["cpu"]) + static_cast<double>(cpu), bytes,
                              static_cast<double>(sum.used["memory"]) + static_cast<double>(memory));
        }
        total += image_points(spec, node);
        if (answer.chosen.empty() || total > answer.feasible.at(answer.chosen)) answer.chosen = name;
    }
    return answer;
}

}  // namespace berth::properties
