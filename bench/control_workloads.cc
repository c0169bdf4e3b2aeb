#include <fmt/format.h>

#include <array>

#include "base/json_view.h"
#include "base/random.h"
#include "bench/measure.h"
#include "bench/workload.h"
#include "control/batch.h"
#include "control/low_node_load.h"
#include "control/node_metric.h"
#include "control/reserved_cores.h"
#include "ledger/intake.h"
#include "model/times.h"

namespace berth::bench {
namespace {

using base::Random;
using base::system_clock;

constexpr auto kMeasured = std::chrono::seconds(1);
constexpr int64_t kPodsPerNode = 10;

// Nodes of 32 cpu and 128Gi with a metric each, and pods of a ReplicaSet: what controllers know of a cluster.
class Fleet {
public:
    explicit Fleet(const BenchOptions& options)
        : nodes(options.nodes > 0 ? options.nodes : 5000),
          pods(options.pods > 0 ? options.pods : nodes * kPodsPerNode),
          random_(options.seed) {
        for (int64_t i = 0; i < nodes; ++i) add_node(i);
        for (int64_t i = 0; i < nodes; ++i) add_pods(i);
    }
    std::string node(int64_t i) const { return fmt::format("node-{}", i); }

    const int64_t nodes, pods;
    const base::Time now = *model::parse_time("2026-01-01T00:01:00Z");
    control::Objects objects;

private:
    void put(const std::string& resource, const std::string& text) {
        const auto shared = std::make_shared<const std::string>(text);
        objects.put(resource, control::read_object(shared, ++revision_));
        for (const auto& kind : ledger::kinds()) {
            if (kind.stored() != resource || kind.reader != ledger::Reader::Counts) continue;
            base::JsonParser parser;
            const auto view = parser.parse(text);
            if (const auto object = kind.read(*view, revision_)) objects.count(kind, *object);
        }
    }
    void add_node(int64_t i) {
        // One in ten has cores outside.
        const std::string notes =
            i % 10 == 0 ? R"({"node.koordinator.sh/reservation":"{\"reservedCPUs\":\"0-3\"}"})" : "{}";
        const std::string amounts = R"({"cpu":"32","memory":"128Gi","pods":"110"})";
        put("nodes", fmt::format(R"({{"kind":"Node","metadata":{{"name":"{0}","uid":"u-{0}","annotations":{1}}},)"
                                 R"("status":{{"capacity":{2},"allocatable":{2}}}}})",
                                 node(i), notes, amounts));
    }
    void add_pods(int64_t i) {
        std::string metrics;
        for (int64_t k = i * pods / nodes; k < (i + 1) * pods / nodes; ++k) {
            put("pods",
                fmt::format(
                    R"({{"kind":"Pod","metadata":{{"namespace":"ns","name":"pod-{0}","uid":"p-{0}","annotations":)"
                    R"({{"scheduling.koordinator.sh/resource-status":"{{\"cpuset\":\"{2}-{3}\"}}"}},"labels":)"
                    R"({{"koordinator.sh/qosClass":"LSR"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":)"
                    R"("ReplicaSet","name":"rs-{4}","uid":"rs-{4}","controller":true}}]}},"spec":{{"nodeName":"{1}",)"
                    R"("priority":9500,"containers":[{{"name":"c","image":"i","resources":{{"requests":{{"cpu":"2",)"
                    R"("memory":"4Gi"}}}}}}]}},"status":{{"phase":"Running","qosClass":"Guaranteed"}}}})",
                    k, node(i), k % kPodsPerNode * 2 + 4, k % kPodsPerNode * 2 + 5, k / 50));
            metrics += fmt::format(R"({}{{"namespace":"ns","name":"pod-{}","podUsage":{{"resources":{{"cpu":"{}m",)"
                                   R"("memory":"2Gi"}}}},"qos":"LSR","priority":"koord-prod"}})",
                                   metrics.empty() ? "" : ",", k, random_.between(200, 2400));
        }
        put(control::kNodeMetrics,
            fmt::format(R"({{"metadata":{{"name":"{}","uid":"m-{}"}},"status":{{"updateTime":"2026-01-01T00:00:30Z",)"
                        R"("nodeMetric":{{"nodeUsage":{{"resources":{{"cpu":"16","memory":"32Gi"}}}},"systemUsage":)"
                        R"({{"resources":{{"cpu":"{}","memory":"2Gi"}}}}}},"podsMetric":[{}]}}}})",
                        node(i), i, random_.between(0, 12), metrics));
    }

    Random random_;
    uint64_t revision_ = 0;
};

// Looks again and again; `writes` is what the last look wanted.
JsonObject look(const Fleet& fleet, const std::vector<control::Key>& targets, const control::Reconciler& reconciler) {
    Latencies latencies;
    size_t writes = 0;
    const Stopwatch watch;
    while (watch.wall() < kMeasured || latencies.count() < 3) {
        const auto before = system_clock().now();
        writes = 0;
        for (const auto& target : targets)
            writes += reconciler.reconcile(target, fleet.objects, fleet.now).writes.size();
        latencies.add(system_clock().now() - before);
    }
    JsonObject out = report(latencies, latencies.count(), watch);
    out["nodes"] = fleet.nodes;
    out["pods"] = fleet.pods;
    out["writes"] = writes;
    return out;
}

std::vector<control::Key> all_nodes(const Fleet& fleet) {
    std::vector<control::Key> out;
    for (int64_t i = 0; i < fleet.nodes; ++i) out.push_back({"", fleet.node(i)});
    return out;
}

Result<JsonObject> batch_pass(const BenchOptions& options) {
    const Fleet fleet(options);
    return look(fleet, all_nodes(fleet), *control::batch_reconciler());
}

Result<JsonObject> reserved_cores_pass(const BenchOptions& options) {
    const Fleet fleet(options);
    return look(fleet, all_nodes(fleet), *control::reserved_cores_reconciler());
}

Result<JsonObject> low_node_load_pass(const BenchOptions& options) {
    const Fleet fleet(options);
    control::LoadRules rules;
    rules.enable = true;
    rules.low = {45, 60};
    rules.high = {65, 80};
    rules.abnormal = 1;
    const auto reconciler = control::low_node_load_reconciler(rules);
    return look(fleet, reconciler->standing(), *reconciler);
}

constexpr std::array kWorkloads{
    Workload{"BatchPass", "batch and mid resources of every node from its metric, one pass (--nodes, --pods)",
             batch_pass},
    Workload{"ReservedCoresPass", "every node is looked at for pods on reserved cores, one pass (--nodes, --pods)",
             reserved_cores_pass},
    Workload{"LowNodeLoadPass", "who leaves a busy node for an idle one, one look at all (--nodes, --pods)",
             low_node_load_pass},
};

}  // namespace

std::span<const Workload> control_workloads() {
    return kWorkloads;
}

}  // namespace berth::bench
