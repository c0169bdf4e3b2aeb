#include <fmt/format.h>

#include <array>

#include "base/random.h"
#include "bench/measure.h"
#include "bench/workload.h"
#include "run/share_desk.h"
#include "share/answer.h"
#include "share/problem.h"

namespace berth::bench {
namespace {

using base::Random;
using base::system_clock;

constexpr size_t kResources = 16;
constexpr auto kMeasured = std::chrono::seconds(1);

size_t consumers_of(const BenchOptions& options) {
    return options.pods > 0 ? static_cast<size_t>(options.pods) : 10000;
}

// Half of them with a guarantee, each asks for 1 to 4 of 16 resources with pods of one size; about two thirds of what
// is asked for is there. --variant tree: a hundred areas in ten areas.
share::Problem random_problem(size_t count, bool tree, Random& random) {
    std::vector<model::ResourceId> resources;
    for (size_t i = 0; i < kResources; ++i)
        resources.push_back(*model::intern_resource(fmt::format("example.com/r{:02}", i)));
    share::Problem problem;
    model::Resources asked;
    for (size_t i = 0; i < count; ++i) {
        share::Consumer consumer;
        consumer.name = fmt::format("namespace-{:06}", i);
        if (tree) consumer.parent = fmt::format("inner-{:02}", random.below(100));
        consumer.weight = random.between(1, 10);
        share::Leaf leaf;
        model::Resources size;
        for (uint64_t k = random.below(4) + 1; k > 0; --k)
            size.set(resources[random.below(kResources)], random.between(1, 100));
        const int64_t running = random.between(0, 20), waiting = random.between(1, 20);
        leaf.pods = {{size, running, true}, {size, waiting, false}};
        if (running == 0) leaf.pods.erase(leaf.pods.begin());
        size.for_each([&](model::ResourceId id, int64_t amount) {
            leaf.demand.set(id, amount * (running + waiting));
            if (i % 2 == 0) consumer.reserved.set(id, amount * 5);
        });
        asked.add(leaf.demand);
        consumer.leaves.push_back(std::move(leaf));
        problem.consumers.push_back(std::move(consumer));
    }
    for (size_t i = 0; tree && i < 110; ++i) {
        share::Consumer area;
        area.name = i < 100 ? fmt::format("inner-{:02}", i) : fmt::format("outer-{:02}", i - 100);
        if (i < 100) area.parent = fmt::format("outer-{:02}", i % 10);
        problem.consumers.push_back(std::move(area));
    }
    asked.for_each([&](model::ResourceId id, int64_t amount) { problem.capacity.set(id, amount * 2 / 3); });
    return problem;
}

JsonObject told(const BenchOptions& options, const Latencies& latencies, const Stopwatch& watch) {
    JsonObject out = report(latencies, latencies.count(), watch);
    out["consumers"] = consumers_of(options);
    out["resources"] = kResources;
    out["variant"] = options.variant == "tree" ? "tree" : "flat";
    return out;
}

// Rules 1 to 4, every time for another capacity; what the consumers are called and ask for is in place.
Result<JsonObject> solve_all(const BenchOptions& options) {
    Random random(options.seed);
    auto problem = random_problem(consumers_of(options), options.variant == "tree", random);
    const auto begun = system_clock().now();
    share::Solver solver(std::move(problem));
    const auto built = system_clock().now() - begun;
    Latencies latencies;
    const Stopwatch watch;
    while (watch.wall() < kMeasured || latencies.count() < 3) {
        // Another capacity, so that nothing of the last solution is of use.
        model::Resources capacity = solver.problem().capacity;
        capacity.for_each([&](model::ResourceId id, int64_t amount) {
            capacity.set(id, latencies.count() % 2 == 0 ? amount + 1 : amount - 1);
        });
        solver.set_capacity(std::move(capacity));
        const auto before = system_clock().now();
        solver.solve();
        latencies.add(system_clock().now() - before);
    }
    JsonObject out = told(options, latencies, watch);
    out["build_us"] = rounded(static_cast<double>(built.count()) / 1000);
    return out;
}

// A pod of a consumer comes, goes, starts or ends, so that about as much is asked for as before.
share::Leaf changed(share::Leaf leaf, Random& random) {
    share::PodRun& waiting = leaf.pods.back();
    share::PodRun& running = leaf.pods.front();
    const auto ask = [&](int64_t count) {
        waiting.size.for_each([&](model::ResourceId id, int64_t amount) { leaf.demand.add(id, amount * count); });
    };
    const bool both = leaf.pods.size() > 1;
    const uint64_t what = random.below(both ? 4 : 2);
    if (what == 0 || waiting.count == 1) {
        ++waiting.count;
        ask(1);
    } else if (what == 1) {
        --waiting.count;
        ask(-1);
    } else if (what == 2) {
        --waiting.count;
        ++running.count;
    } else if (running.count > 1) {
        --running.count;
        ask(-1);
    }
    return leaf;
}

// One consumer's pods change, and it is told what it deserves. Those that move nobody's level (share/change.h) are told
// apart from those after which all is solved anew.
Result<JsonObject> solve_change(const BenchOptions& options) {
    Random random(options.seed);
    const size_t count = consumers_of(options);
    share::Solver solver(random_problem(count, options.variant == "tree", random));
    solver.solve();
    Latencies all, alone, anew;
    const Stopwatch watch;
    while (watch.wall() < kMeasured || all.count() < 3) {
        const size_t who = random.below(count);
        share::Leaf leaf = changed(solver.problem().consumers[who].leaves.front(), random);
        const uint64_t times = solver.times();
        const auto before = system_clock().now();
        solver.change(who, 0, std::move(leaf));
        solver.solve();
        const auto deserved = solver.deserved(who);
        const auto took = system_clock().now() - before;
        all.add(took);
        (solver.times() == times ? alone : anew).add(took);
    }
    JsonObject out = told(options, all, watch);
    const auto tell = [&](const std::string& kind, const Latencies& latencies) {
        out[kind + "_percent"] =
            rounded(100 * static_cast<double>(latencies.count()) / static_cast<double>(all.count()));
        out[kind + "_p50_us"] = rounded(latencies.percentile(50));
        out[kind + "_p99_us"] = rounded(latencies.percentile(99));
    };
    tell("alone", alone);
    tell("anew", anew);
    return out;
}

// A question of kube-scheduler: a pod, and the names of all nodes.
std::string question(const share::ScenePod& pod, const std::string& names) {
    return fmt::format(
        R"({{"Pod":{{"metadata":{{"name":"{}","namespace":"{}","uid":"{}","labels":{{"app":"web"}}}},"spec":{{"containers":)"
        R"([{{"name":"main","image":"app","resources":{{"requests":{{"cpu":"1","memory":"1Gi"}}}}}}]}}}},"Nodes":null,{}}})",
        pod.name, pod.ns, pod.uid, names);
}

share::Scene extender_scene(const BenchOptions& options, Random& random) {
    share::Scene scene;
    auto& node = scene.nodes.emplace_back();
    node.name = "all";
    node.allocatable = {{model::kCpu, 1'000'000'000}, {model::kMemory, int64_t{1} << 50}};
    const size_t tenants = 1000;
    for (size_t i = 0; i < consumers_of(options); ++i) {
        auto& pod = scene.pods.emplace_back();
        pod.ns = fmt::format("namespace-{:04}", random.below(tenants));
        pod.name = fmt::format("pod-{:06}", i);
        pod.uid = fmt::format("uid-{:06}", i);
        pod.size = {{model::kCpu, 1000}, {model::kMemory, int64_t{1} << 30}};
        pod.placed = random.chance(1, 2);
        if (pod.placed) pod.node = 0;
        pod.may_stand = {0};
    }
    return scene;
}

// What a scheduler waits for, without the network: pods that a cycle has seen, or (--variant unseen) none has.
Result<JsonObject> ask_extender(const BenchOptions& options) {
    Random random(options.seed);
    const share::Scene scene = extender_scene(options, random);
    const share::Settings settings;
    run::ShareDesk desk;
    desk.show(scene, settings, share::answer(scene, settings), system_clock().now());
    const int64_t nodes = options.nodes > 0 ? options.nodes : 5000;
    std::string names = R"("NodeNames":[)";
    for (int64_t i = 0; i < nodes; ++i) names += fmt::format(R"({}"node-{:05}.cluster.example")", i > 0 ? "," : "", i);
    names += "]";
    const bool unseen = options.variant == "unseen";
    std::vector<size_t> waiting;
    for (size_t i = 0; i < scene.pods.size(); ++i) {
        if (!scene.pods[i].placed) waiting.push_back(i);
    }
    Latencies latencies;
    const Stopwatch watch;
    while (watch.wall() < kMeasured || latencies.count() < 3) {
        share::ScenePod pod = scene.pods[waiting[random.below(waiting.size())]];
        if (unseen) pod.uid = fmt::format("new-{}", latencies.count());
        const std::string body = question(pod, names);
        const auto before = system_clock().now();
        const auto reply = desk.filter(body, before);
        latencies.add(system_clock().now() - before);
        if (reply.code != 200) return base::internal(reply.body);
    }
    JsonObject out = report(latencies, latencies.count(), watch);
    out["names"] = nodes;
    out["pods"] = scene.pods.size();
    out["variant"] = unseen ? "unseen" : "seen";
    return out;
}

constexpr std::array kWorkloads{
    Workload{
        "ShareExtender",
        "a scheduler asks the arbitrator about one of --pods (10,000) pods of 1,000 namespaces with --nodes (5,000) "
        "names; --variant unseen: about pods that no cycle has seen",
        ask_extender},
    Workload{"ShareSolve",
             "what --pods consumers (10,000) deserve of 16 resources, each time of another capacity; --variant tree",
             solve_all},
    Workload{
        "ShareChange",
        "a pod of one consumer of --pods (10,000) comes, goes, starts or ends, and it is told what it deserves; alone: "
        "changes that move nobody's level, anew: the others; --variant tree",
        solve_change},
};

}  // namespace

std::span<const Workload> share_workloads() {
    return kWorkloads;
}

}  // namespace berth::bench
