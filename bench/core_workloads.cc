// The scheduler's workloads in core mode, see docs/reference/performance.md.
#include <fmt/format.h>

#include <array>

#include "bench/core.h"

namespace berth::bench {
namespace {

SharedSpec shared(model::PodSpec spec) {
    return std::make_shared<const model::PodSpec>(std::move(spec));
}

// The same spec for every pod.
std::function<SharedSpec(size_t)> always(model::PodSpec spec) {
    return [spec = shared(std::move(spec))](size_t) { return spec; };
}

Result<JsonObject> scheduling_basic(const BenchOptions& options) {
    if (!options.variant.empty() && options.variant != "shares") return base::bad_request("the variant is shares");
    return run_core({.node = plain_node, .spec = always(plain_spec()), .shares = options.variant == "shares"}, options);
}

// Specs that differ in what they request: by default each is met once.
Result<JsonObject> many_classes(const BenchOptions& options) {
    auto random = std::make_shared<base::Random>(options.seed);
    const auto spec = [random, classes = options.classes](size_t number) {
        const uint64_t kind = classes > 0 ? random->below(static_cast<uint64_t>(classes)) : number;
        model::PodSpec made = plain_spec();
        made.scoring_cpu_milli = static_cast<int64_t>(50 + kind * 7919 % 100);
        made.scoring_memory = (int64_t{200} << 20) + static_cast<int64_t>(kind % (uint64_t{1} << 20)) * 512;
        made.requests.set(model::kCpu, made.scoring_cpu_milli);
        made.requests.set(model::kMemory, made.scoring_memory);
        return shared(std::move(made));
    };
    return run_core({.pods = 50'000, .node = plain_node, .initial_spec = always(plain_spec()), .spec = spec}, options);
}

Result<JsonObject> node_affinity(const BenchOptions& options) {
    model::PodSpec spec = plain_spec();
    spec.required_nodes = {{{{{"topology.kubernetes.io/zone", "In", {"zone1", "zone2"}}}, {}}}};
    return run_core({.node = plain_node, .spec = always(std::move(spec))}, options);
}

// Scaled scores: two zones are preferred, unequally.
Result<JsonObject> preferred_node_affinity(const BenchOptions& options) {
    model::PodSpec spec = plain_spec();
    spec.preferred_nodes = {{60, {{{"topology.kubernetes.io/zone", "In", {"zone1"}}}, {}}},
                            {30, {{{"topology.kubernetes.io/zone", "In", {"zone2"}}}, {}}}};
    return run_core({.node = plain_node, .spec = always(std::move(spec))}, options);
}

// One pod for each node, as the DaemonSet controller makes them.
Result<JsonObject> daemonset(const BenchOptions& options) {
    CoreWorkload workload{.nodes = 15'000, .initial = 5000, .pods = 30'000, .node = plain_node};
    const auto nodes = static_cast<size_t>(options.nodes > 0 ? options.nodes : workload.nodes);
    workload.initial_spec = always(plain_spec());
    workload.spec = [nodes](size_t number) {
        model::PodSpec spec = plain_spec();
        spec.required_nodes = {{{{}, {{"metadata.name", "In", {plain_node(number % nodes).meta.name}}}}}};
        return shared(std::move(spec));
    };
    return run_core(workload, options);
}

constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kHostname = "kubernetes.io/hostname";

model::PodTerm near_term(const char* color, const char* key) {
    model::PodTerm term;
    term.selector = Selector({{"color", model::Requirement::Op::In, {color}}});
    term.namespaces = {"default"};
    term.topology_key = key;
    return term;
}

model::PodSpec colored(const char* color) {
    model::PodSpec spec = plain_spec();
    spec.labels.set("color", color);
    return spec;
}

Result<JsonObject> pod_affinity(const BenchOptions& options) {
    model::PodSpec spec = colored("blue");
    spec.affinity = {near_term("blue", kZone)};
    return run_core({.pods = 5000, .node = plain_node, .spec = always(std::move(spec))}, options);
}

// At most one green pod on a node.
Result<JsonObject> pod_anti_affinity(const BenchOptions& options) {
    model::PodSpec spec = colored("green");
    spec.anti_affinity = {near_term("green", kHostname)};
    return run_core({.initial = 1000, .pods = 2000, .node = plain_node, .spec = always(std::move(spec))}, options);
}

Result<JsonObject> preferred_pod_affinity(const BenchOptions& options) {
    model::PodSpec spec = colored("red");
    spec.preferred_affinity = {{1, near_term("red", kHostname)}};
    return run_core({.pods = 5000, .node = plain_node, .spec = always(std::move(spec))}, options);
}

Result<JsonObject> preferred_pod_anti_affinity(const BenchOptions& options) {
    model::PodSpec spec = colored("yellow");
    spec.preferred_anti_affinity = {{1, near_term("yellow", kHostname)}};
    return run_core({.pods = 5000, .node = plain_node, .spec = always(std::move(spec))}, options);
}

// Terms that reach into every namespace with a label.
Result<JsonObject> ns_selector(const BenchOptions& options, bool anti) {
    model::PodSpec spec = colored("blue");
    model::PodTerm term = near_term("blue", anti ? kHostname : kZone);
    term.namespaces.clear();
    term.ns_selector = Selector({{"team", model::Requirement::Op::In, {"devops"}}});
    (anti ? spec.anti_affinity : spec.affinity) = {term};
    CoreWorkload workload{.initial = 1000, .pods = 2000, .node = plain_node, .spec = always(std::move(spec))};
    workload.prepare = [](ledger::Ledger& ledger) {
        ledger.put(model::Namespace{"default", Labels{{"team", "devops"}}});
    };
    return run_core(workload, options);
}
Result<JsonObject> ns_selector_affinity(const BenchOptions& options) {
    return ns_selector(options, false);
}
Result<JsonObject> ns_selector_anti_affinity(const BenchOptions& options) {
    return ns_selector(options, true);
}

// Variants: hard (default), soft, default (the system's constraints, by a Service).
Result<JsonObject> topology_spreading(const BenchOptions& options) {
    model::PodSpec spec = colored("blue");
    const Selector blue({{"color", model::Requirement::Op::In, {"blue"}}});
    CoreWorkload workload{.pods = 5000, .node = plain_node, .initial_spec = always(plain_spec())};
    if (options.variant.empty() || options.variant == "hard" || options.variant == "soft") {
        const bool hard = options.variant != "soft";
        spec.spread = {{5, kZone, hard, blue, std::nullopt}, {50, kHostname, hard, blue, std::nullopt}};
    } else if (options.variant == "default") {
        workload.prepare = [blue](ledger::Ledger& ledger) {
            ledger.put(model::Workload{model::WorkloadKind::Service, "default", "blue", blue});
        };
    } else {
        return base::bad_request("the variants are hard, soft and default");
    }
    workload.spec = always(std::move(spec));
    return run_core(workload, options);
}

// Five kinds of pods are there already; plain pods come.
Result<JsonObject> mixed_base_pod(const BenchOptions& options) {
    std::vector<SharedSpec> kinds{shared(plain_spec())};
    model::PodSpec spec = colored("blue");
    spec.affinity = {near_term("blue", kZone)};
    kinds.push_back(shared(spec));
    spec = colored("green");
    spec.anti_affinity = {near_term("green", kHostname)};
    kinds.push_back(shared(spec));
    spec = colored("red");
    spec.preferred_affinity = {{1, near_term("red", kHostname)}};
    kinds.push_back(shared(spec));
    spec = colored("yellow");
    spec.preferred_anti_affinity = {{1, near_term("yellow", kHostname)}};
    kinds.push_back(shared(spec));
    return run_core({.initial = 10'000,
                     .pods = 5000,
                     .node = plain_node,
                     .initial_spec = [kinds](size_t number) { return kinds[number % kinds.size()]; },
                     .spec = always(plain_spec())},
                    options);
}

// Every tenth pod fits nowhere and is told why.
Result<JsonObject> unschedulable(const BenchOptions& options) {
    model::PodSpec large = plain_spec();
    large.requests.set(model::kCpu, 9000);
    large.scoring_cpu_milli = 9000;
    const auto spec = [small = shared(plain_spec()), large = shared(std::move(large))](size_t number) {
        return number % 10 == 9 ? large : small;
    };
    return run_core(
        {.initial = 20'000, .node = plain_node, .initial_spec = always(plain_spec()), .spec = spec, .may_fail = true},
        options);
}

// Every node is full of four small pods; each large one takes the room of three of them.
Result<JsonObject> preemption(const BenchOptions& options) {
    model::PodSpec low = plain_spec();
    low.requests.set(model::kCpu, 900);
    low.scoring_cpu_milli = 900;
    model::PodSpec high = low;
    high.requests.set(model::kCpu, 3000);
    high.scoring_cpu_milli = 3000;
    high.priority = 10;
    CoreWorkload workload{.initial = 20'000, .pods = 5000, .node = plain_node};
    if (options.nodes > 0) workload.initial = 4 * options.nodes;
    if (options.nodes > 0) workload.pods = options.nodes;
    workload.initial_spec = always(std::move(low));
    workload.spec = always(std::move(high));
    workload.preempts = true;
    return run_core(workload, options);
}

// A node changes its labels, and one goes and comes back, every 500 decisions.
Result<JsonObject> mixed_churn(const BenchOptions& options) {
    CoreWorkload workload{.pods = 10'000, .node = plain_node, .spec = always(plain_spec())};
    const auto nodes = static_cast<size_t>(options.nodes > 0 ? options.nodes : workload.nodes);
    workload.churn = [nodes](ledger::Ledger& ledger, size_t decision) {
        if (decision % 500 != 499) return;
        model::Node changed = plain_node(decision % nodes);
        changed.meta.labels.set("generation", fmt::format("{}", decision));
        ledger.put(std::make_shared<const model::Node>(std::move(changed)));
        const model::Node gone = plain_node(decision * 7 % nodes);
        ledger.remove_node(gone.meta.name);
        ledger.put(std::make_shared<const model::Node>(gone));
    };
    return run_core(workload, options);
}

// Machines of 2 sockets, each 2 NUMA nodes of 16 cores of 2 threads: 128 CPUs.
model::Node large_node(size_t number) {
    model::Node node = plain_node(number);
    node.allocatable.set(model::kCpu, 128'000);
    node.allocatable.set(model::kMemory, int64_t{512} << 30);
    return node;
}

// Pods of 2 or 4 cores of their own.
Result<JsonObject> core_binding(const BenchOptions& options) {
    CoreWorkload workload{.initial = 2000, .pods = 20'000, .node = large_node};
    const auto nodes = static_cast<size_t>(options.nodes > 0 ? options.nodes : workload.nodes);
    workload.prepare = [nodes](ledger::Ledger& ledger) {
        model::NodeTopology topology;
        for (int32_t id = 0; id < 128; ++id) topology.cpus.push_back({id, id % 64, id % 64 / 16, id % 64 / 32});
        for (size_t i = 0; i < nodes; ++i) {
            topology.meta.name = plain_node(i).meta.name;
            ledger.put(std::make_shared<const model::NodeTopology>(topology));
        }
    };
    std::array<SharedSpec, 2> specs;
    for (size_t i = 0; i < specs.size(); ++i) {
        model::PodSpec spec = plain_spec();
        spec.cores.own_cores = true;
        spec.scoring_cpu_milli = 2000 * static_cast<int64_t>(i + 1);
        spec.requests.set(model::kCpu, spec.scoring_cpu_milli);
        specs[i] = shared(std::move(spec));
    }
    workload.spec = [specs](size_t number) { return specs[number % specs.size()]; };
    return run_core(workload, options);
}

// Of the same machines, with 8 GPUs each: pods of half a GPU, of one, of two, and of a tenth by memory.
Result<JsonObject> device_share(const BenchOptions& options) {
    CoreWorkload workload{.initial = 2000, .pods = 20'000, .node = large_node};
    const auto nodes = static_cast<size_t>(options.nodes > 0 ? options.nodes : workload.nodes);
    workload.prepare = [nodes](ledger::Ledger& ledger) {
        model::Device device;
        for (int32_t minor = 0; minor < 8; ++minor) {
            model::DeviceUnit unit;
            unit.minor = minor;
            unit.healthy = true;
            unit.total = {model::kWholeDevice, model::kWholeDevice, int64_t{80} << 30};
            unit.numa = minor / 2;
            unit.pcie = fmt::format("{}", minor / 2);
            device.units.push_back(std::move(unit));
        }
        for (size_t i = 0; i < nodes; ++i) {
            device.meta.name = plain_node(i).meta.name;
            ledger.put(std::make_shared<const model::Device>(device));
        }
    };
    const auto& names = model::device_resources();
    const std::array<std::pair<model::ResourceId, int64_t>, 4> asked{
        {{names.gpu, 50}, {names.gpu, 100}, {names.gpu, 200}, {names.memory, int64_t{8} << 30}}};
    std::array<SharedSpec, asked.size()> specs;
    for (size_t i = 0; i < specs.size(); ++i) {
        model::PodSpec spec = plain_spec();
        spec.requests.set(asked[i].first, asked[i].second);
        spec.devices = model::read_device_wish(spec.requests, {});
        specs[i] = shared(std::move(spec));
    }
    workload.spec = [specs](size_t number) { return specs[number % specs.size()]; };
    return run_core(workload, options);
}

constexpr std::array kWorkloads{
    Workload{"SchedulingBasic", "pods of one class; --variant shares", scheduling_basic},
    Workload{"ManyClasses", "pods of --classes classes; by default each its own", many_classes},
    Workload{"NodeAffinity", "a required node term", node_affinity, "SchedulingNodeAffinity"},
    Workload{"PreferredNodeAffinity", "preferred node terms", preferred_node_affinity},
    Workload{"Daemonset", "each pod names its node", daemonset, "SchedulingDaemonset"},
    Workload{"PodAffinity", "required affinity by zone", pod_affinity, "SchedulingPodAffinity"},
    Workload{"PodAntiAffinity", "required anti-affinity by hostname", pod_anti_affinity, "SchedulingPodAntiAffinity"},
    Workload{"PreferredPodAffinity", "preferred affinity by hostname", preferred_pod_affinity,
             "SchedulingPreferredPodAffinity"},
    Workload{"PreferredPodAntiAffinity", "preferred anti-affinity by hostname", preferred_pod_anti_affinity,
             "SchedulingPreferredPodAntiAffinity"},
    Workload{"NSSelectorPodAffinity", "affinity over namespaces by label", ns_selector_affinity,
             "SchedulingRequiredPodAffinityWithNSSelector"},
    Workload{"NSSelectorPodAntiAffinity", "anti-affinity over namespaces by label", ns_selector_anti_affinity,
             "SchedulingRequiredPodAntiAffinityWithNSSelector"},
    Workload{"TopologySpreading", "zones and hostnames; --variant hard, soft or default", topology_spreading},
    Workload{"MixedSchedulingBasePod", "plain pods among others with affinity", mixed_base_pod},
    Workload{"Unschedulable", "a tenth of the pods fit nowhere", unschedulable},
    Workload{"Preemption", "each pod takes the room of three less important ones", preemption, "PreemptionBasic"},
    Workload{"CoreBinding", "pods that get cores of their own, on machines of 128 CPUs", core_binding},
    Workload{"DeviceShare", "pods that get GPUs, whole and in parts, on machines of 8", device_share},
    Workload{"MixedChurn", "nodes change, go and come back", mixed_churn, "SchedulingWithMixedChurn"},
};

}  // namespace

std::span<const Workload> core_workloads() {
    return kWorkloads;
}

}  // namespace berth::bench
