#include "random_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace berth::properties {
namespace {

using base::Random;

constexpr std::array kKeys{"zone", "disk", "rack", "size"};
constexpr std::array kEffects{"NoSchedule", "NoExecute", "PreferNoSchedule"};

std::string value(Random& random) {
    return random.chance(1, 8) ? "word" : fmt::format("{}", random.below(4));
}

const char* key(Random& random) {
    return kKeys[random.below(kKeys.size())];
}

model::ResourceId gpu() {
    return model::intern_resource("example.com/gpu").value();
}

std::string image(uint64_t number) {
    return fmt::format("image-{}:1", number);
}

model::NodeSelectorRequirement requirement(Random& random) {
    static constexpr std::array kOps{"In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};
    const std::string op = kOps[random.below(kOps.size())];
    model::NodeSelectorRequirement made{key(random), op, {}};
    if (op == "Gt" || op == "Lt") made.values = {fmt::format("{}", random.below(4))};
    if (op == "In" || op == "NotIn") {
        for (uint64_t i = 0; i <= random.below(3); ++i) made.values.push_back(value(random));
    }
    return made;
}

model::NodeSelectorTerm term(Random& random, size_t nodes, bool fields) {
    model::NodeSelectorTerm made;
    for (uint64_t i = 0; i < random.below(3); ++i) made.match_expressions.push_back(requirement(random));
    if (fields && random.chance(1, 4)) {
        made.match_fields.push_back(
            {"metadata.name", random.chance(3, 4) ? "In" : "NotIn", {node_name(random.below(nodes))}});
    }
    return made;
}

void add_node_terms(Random& random, size_t nodes, model::PodSpec& spec) {
    if (random.chance(1, 4)) spec.node_selector.set(key(random), value(random));
    if (random.chance(1, 4)) {
        spec.required_nodes.emplace();
        for (uint64_t i = 0; i < random.below(4); ++i) spec.required_nodes->push_back(term(random, nodes, true));
    }
    if (random.chance(1, 3)) {
        for (uint64_t i = 0; i <= random.below(3); ++i) {
            spec.preferred_nodes.push_back({static_cast<int32_t>(random.between(1, 100)), term(random, nodes, false)});
        }
    }
    for (uint64_t i = 0; i < random.below(3); ++i) {
        model::Toleration made;
        if (random.chance(5, 6)) made.key = key(random);
        made.op = made.key.empty() || random.chance(1, 2) ? "Exists" : "Equal";
        if (made.op == "Equal") made.value = value(random);
        if (random.chance(1, 2)) made.effect = kEffects[random.below(kEffects.size())];
        spec.tolerations.push_back(made);
    }
    if (random.chance(1, 30)) spec.tolerations.push_back({"node.kubernetes.io/unschedulable", "Exists", "", "", {}});
    if (random.chance(1, 60)) spec.node_name = node_name(random.below(nodes));
}

void add_requests(Random& random, model::PodSpec& spec) {
    const bool cpu = random.chance(7, 8);
    const bool memory = random.chance(7, 8);
    // Round amounts hit the borders of the formulas, odd ones the spaces between.
    const int64_t milli = random.chance(1, 2) ? 100 * random.between(0, 10) : random.between(0, 1500);
    const int64_t bytes = random.chance(1, 2) ? random.between(0, 8) << 28 : random.between(0, int64_t{3} << 30);
    if (cpu) spec.requests.set(model::kCpu, milli);
    if (memory) spec.requests.set(model::kMemory, bytes);
    spec.scoring_cpu_milli = cpu ? milli : 100;
    spec.scoring_memory = memory ? bytes : int64_t{200} << 20;
    spec.requests.set(model::kPods, 1);
    if (random.chance(1, 8)) spec.requests.set(model::kEphemeralStorage, random.between(0, 50) << 30);
    if (random.chance(1, 8)) spec.requests.set(gpu(), random.between(0, 2));
}

model::PodTerm pod_term(Random& random) {
    model::PodTerm made;
    made.selector = Selector({{"app", model::Requirement::Op::In, {fmt::format("{}", random.below(5))}}});
    made.namespaces = {"default"};
    made.topology_key = key(random);
    return made;
}

void add_near_terms(Random& random, model::PodSpec& spec) {
    if (random.chance(1, 3)) {
        for (uint64_t i = 0; i <= random.below(2); ++i) {
            model::SpreadConstraint made;
            made.max_skew = static_cast<int32_t>(random.between(1, 4));
            made.topology_key = key(random);
            made.hard = random.chance(1, 2);
            made.selector = pod_term(random).selector;
            if (made.hard && random.chance(1, 4)) made.min_domains = 3;
            made.honor_affinity = random.chance(3, 4);
            made.honor_taints = random.chance(1, 4);
            spec.spread.push_back(made);
        }
    }
    if (random.chance(1, 6)) spec.affinity.push_back(pod_term(random));
    if (random.chance(1, 6)) spec.anti_affinity.push_back(pod_term(random));
    if (random.chance(1, 6)) {
        spec.preferred_affinity.push_back({static_cast<int32_t>(random.between(1, 100)), pod_term(random)});
    }
    if (random.chance(1, 6)) {
        spec.preferred_anti_affinity.push_back({static_cast<int32_t>(random.between(1, 100)), pod_term(random)});
    }
}

}  // namespace

std::string node_name(size_t number) {
    return fmt::format("node-{}", number * 7919 % 100003);
}

model::Node random_node(Random& random, std::string name) {
    model::Node node;
    node.meta.name = std::move(name);
    for (const char* each : kKeys) {
        if (random.chance(2, 3)) node.meta.labels.set(each, value(random));
    }
    for (uint64_t i = 0; random.chance(1, 4) && i < 3; ++i) {
        node.taints.push_back({key(random), value(random), kEffects[random.below(kEffects.size())]});
    }
    node.unschedulable = random.chance(1, 20);
    if (!random.chance(1, 40)) node.allocatable.set(model::kCpu, random.chance(1, 2) ? 4000 : random.between(0, 64000));
    if (!random.chance(1, 40)) {
        node.allocatable.set(model::kMemory,
                             random.chance(1, 2) ? int64_t{32} << 30 : random.between(0, int64_t{1} << 38));
    }
    if (!random.chance(1, 40)) node.allocatable.set(model::kPods, random.chance(1, 2) ? 110 : random.between(0, 12));
    if (random.chance(1, 2)) node.allocatable.set(model::kEphemeralStorage, int64_t{100} << 30);
    if (random.chance(1, 4)) node.allocatable.set(gpu(), random.between(0, 8));
    for (uint64_t number = 0; number < 4; ++number) {
        const auto size = static_cast<int64_t>((number * number + 1) * (120 << 20));
        if (random.chance(1, 3)) node.images.push_back({{image(number)}, size});
    }
    return node;
}

std::shared_ptr<const model::PodSpec> random_spec(Random& random, size_t nodes) {
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = "default";
    spec->labels.set("app", fmt::format("{}", random.below(5)));
    add_requests(random, *spec);
    add_node_terms(random, nodes, *spec);
    if (random.chance(1, 6)) {
        static constexpr std::array kAddresses{"0.0.0.0", "127.0.0.1", "10.0.0.1"};
        spec->ports.push_back({static_cast<int32_t>(random.between(80, 82)),
                               random.chance(1, 4) ? model::Protocol::UDP : model::Protocol::TCP,
                               kAddresses[random.below(kAddresses.size())]});
    }
    for (uint64_t i = 0; i < random.below(3); ++i) spec->images.push_back(image(random.below(6)));
    return spec;
}

std::shared_ptr<const model::PodSpec> random_near_spec(Random& random, size_t nodes) {
    auto spec = std::make_shared<model::PodSpec>(*random_spec(random, nodes));
    add_near_terms(random, *spec);
    return spec;
}

}  // namespace berth::properties
