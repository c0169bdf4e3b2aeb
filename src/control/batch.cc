#include "control/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "control/batch_zones.h"
#include "control/node_metric.h"
#include "control/pods.h"
#include "ledger/view.h"
#include "model/kinds/path.h"
#include "model/node_reservation.h"
#include "model/times.h"

namespace berth::control {
namespace {

constexpr int64_t kMilli = 1000;
constexpr std::array<const char*, 4> kLent{"kubernetes.io/batch-cpu", "kubernetes.io/batch-memory",
                                           "kubernetes.io/mid-cpu", "kubernetes.io/mid-memory"};

bool is_dear(const BatchPod& pod) {
    return pod.band == model::PriorityBand::Prod || pod.band == model::PriorityBand::Mid;
}

int64_t share(int64_t amount, int64_t percent) {
    return amount / 100 * percent + amount % 100 * percent / 100;
}

int64_t counted(const BatchPod& pod, const BatchInput& input, BatchPolicy policy) {
    if (policy == BatchPolicy::Request || !pod.used) return pod.request;
    if (policy == BatchPolicy::MaxUsageRequest) return std::max(pod.request, *pod.used);
    return pod.qos == model::Qos::LSE && input.is_cpu ? pod.request : *pod.used;
}

// The pods of a node with what they were seen to use; what nobody knows any more counts by what its metric says.
std::pair<std::vector<BatchPod>, std::vector<BatchPod>> pods_of(const ledger::View& ledger, ledger::Row row,
                                                                NodeMetric metric) {
    std::vector<BatchPod> cpu, memory;
    const auto put = [&](BatchPod pod, Load request, const NodeMetric::Pod* seen) {
        pod.request = request.cpu;
        if (seen) pod.used = seen->used.cpu;
        cpu.push_back(pod);
        pod.request = request.memory;
        if (seen) pod.used = seen->used.memory;
        memory.push_back(pod);
    };
    for (const auto index : ledger.at(row).pods) {
        const auto& pod = ledger.pod(index);
        const Load request{pod.spec->requests.get(model::kCpu), pod.spec->requests.get(model::kMemory)};
        const auto kube =
            request.cpu == 0 && request.memory == 0 ? model::KubeQos::BestEffort : model::KubeQos::Burstable;
        BatchPod out;
        out.qos = model::qos_of(pod.spec->labels, kube);
        out.band = model::band_of(pod.spec->labels, pod.priority, out.qos);
        out.numas = numas_of(pod.which.get(), ledger.cores().at(row));
        const auto seen = metric.pods.find(fmt::format("{}/{}", pod.ns(), std::string_view(pod.name)));
        put(out, request, seen == metric.pods.end() ? nullptr : &seen->second);
        if (seen != metric.pods.end()) metric.pods.erase(seen);
    }
    for (const auto& [name, seen] : metric.pods) put({seen.qos, seen.band, 0, std::nullopt, {}}, {}, &seen);
    return {std::move(cpu), std::move(memory)};
}

int64_t listed(const model::NodeReservation& reservation, const char* name) {
    if (reservation.cpus_only) return 0;
    const auto id = model::intern_resource(name);
    return id ? reservation.amounts.get(*id) : 0;
}

using Amounts = std::array<int64_t, kLent.size()>;

struct Inputs {
    BatchInput cpu, memory;
};

Inputs inputs_of(const model::Node& node, const ledger::View& ledger, ledger::Row row, const NodeMetric& metric) {
    const auto reservation = model::view_of(node).reservation;
    auto [cpu_pods, memory_pods] = pods_of(ledger, row, metric);
    const auto kept = [&](model::ResourceId id) {
        return node.allocatable.has(id) ? std::max<int64_t>(0, node.capacity.get(id) - node.allocatable.get(id)) : 0;
    };
    const int64_t milli = reservation.amounts.get(model::kCpu);
    const int64_t cores =
        reservation.cpus ? static_cast<int64_t>(reservation.cpus->size()) : milli / kMilli + (milli % kMilli != 0);
    BatchInput cpu{node.capacity.get(model::kCpu),
                   kept(model::kCpu),
                   cores * kMilli,
                   metric.system.cpu,
                   metric.node.cpu,
                   std::nullopt,
                   listed(reservation, kLent[0]),
                   std::move(cpu_pods),
                   true};
    BatchInput memory{node.capacity.get(model::kMemory),
                      kept(model::kMemory),
                      reservation.cpus_only ? 0 : reservation.amounts.get(model::kMemory),
                      metric.system.memory,
                      metric.node.memory,
                      std::nullopt,
                      listed(reservation, kLent[1]),
                      std::move(memory_pods),
                      false};
    if (metric.reclaimable) {
        cpu.prod_reclaimable = metric.reclaimable->cpu;
        memory.prod_reclaimable = metric.reclaimable->memory;
    }
    return {std::move(cpu), std::move(memory)};
}

Amounts amounts_of(const Inputs& in, const BatchStrategy& strategy) {
    return {batch_amount(in.cpu, strategy.cpu), batch_amount(in.memory, strategy.memory),
            mid_amount(in.cpu, strategy.cpu), mid_amount(in.memory, strategy.memory)};
}

// What the Node says now; nullopt where it says nothing.
std::array<std::optional<int64_t>, kLent.size()> said_by(const Json& node) {
    std::array<std::optional<int64_t>, kLent.size()> out;
    for (size_t i = 0; i < kLent.size(); ++i) {
        for (const auto* part : {"capacity", "allocatable"}) {
            if (const Json* all = base::find(node, {"status", part})) {
                if (const auto amount = amount_at(*all, kLent[i], false)) out[i] = amount;
            }
        }
    }
    return out;
}

const Json* condition_of(const Json& node) {
    for (const auto& condition : model::list_at(node, ".status.conditions")) {
        if (model::string_at(condition, ".type") == kBatchCondition) return &condition;
    }
    return nullptr;
}

Write write_of(const model::Meta& meta, const Amounts* amounts, std::string_view why, base::Time now) {
    JsonObject resources;
    for (size_t i = 0; i < kLent.size(); ++i)
        resources[kLent[i]] = amounts ? Json(fmt::format("{}", (*amounts)[i])) : Json(nullptr);
    const auto at = model::time_text(now);
    const JsonObject condition{{"type", kBatchCondition},
                               {"status", amounts ? "True" : "False"},
                               {"reason", amounts ? "Computed" : "Removed"},
                               {"message", why},
                               {"lastHeartbeatTime", at},
                               {"lastTransitionTime", at}};
    Write write = if_unchanged(
        patch_status("nodes", meta,
                     {{"capacity", resources}, {"allocatable", resources}, {"conditions", JsonArray{condition}}}),
        meta);
    write.verb = Write::Verb::StrategicPatch;  // the other conditions stay
    return write;
}

class BatchReconciler final : public Reconciler {
public:
    std::string_view name() const override { return "batch"; }
    std::string resource() const override { return "nodes"; }
    std::vector<std::string> watches() const override { return {"nodes", kNodeMetrics, kTopologies}; }
    bool counts() const override { return true; }

    std::vector<Key> concerned(const std::string& resource, const Object& object,
                               const Objects& objects) const override {
        if (resource == "nodes" || resource == kNodeMetrics || resource == kTopologies) return {{"", object.meta.name}};
        if (resource == "pods" && !object.node.empty() && objects.find(kNodeMetrics, "", object.node))
            return {{"", object.node}};
        return {};
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const auto node = objects.find("nodes", "", target.name);
        const auto metric = objects.find(kNodeMetrics, "", target.name);
        const auto row = objects.ledger().row_of(target.name);
        if (!node || !metric || row == ledger::kNoRow) return {};
        std::string fault;
        const auto strategy = strategy_of(node->meta.annotations, node->meta.labels, fault);
        const auto said = said_by(node->document());
        const bool says_any = std::any_of(said.begin(), said.end(), [](const auto& each) { return each.has_value(); });
        const NodeMetric read = read_node_metric(metric->document());
        Reconciled out;
        const auto topology = objects.find(kTopologies, "", target.name);
        const auto tell_zones = [&](const ZoneAmounts* zones) {
            if (!topology) return;
            if (auto write = zones_write(*topology, zones, strategy, now, out.again))
                out.writes.push_back(std::move(*write));
        };
        const auto remove = [&](std::string_view why) {
            if (says_any) out.writes.push_back(write_of(node->meta, nullptr, why, now));
            tell_zones(nullptr);
            return out;
        };
        if (!strategy.enable) return remove("colocation is disabled");
        if (!read.updated || *read.updated + strategy.degrade <= now) return remove("the NodeMetric is too old");
        out.again = *read.updated + strategy.degrade;
        const Inputs inputs = inputs_of(objects.ledger().node(row), objects.ledger(), row, read);
        const auto amounts = amounts_of(inputs, strategy);
        if (const auto* cores = objects.ledger().cores().at(row)) {
            const auto zones = zone_amounts(inputs.cpu, inputs.memory, *cores, strategy);
            tell_zones(&zones);
        }
        const auto written = written_at(node->document());
        if (differs(said, amounts, strategy.diff_percent) || !written || *written + strategy.refresh <= now) {
            if (!same(said, amounts) || !written) out.writes.push_back(write_of(node->meta, &amounts, fault, now));
        } else if (!same(said, amounts)) {
            out.again = std::min(*out.again, *written + strategy.refresh);
        }
        return out;
    }

private:
    using Said = std::array<std::optional<int64_t>, kLent.size()>;
    static bool same(const Said& said, const Amounts& amounts) {
        return std::equal(said.begin(), said.end(), amounts.begin());
    }
    // |new - old| > old x a tenth, of any.
    static bool differs(const Said& said, const Amounts& amounts, int64_t percent) {
        for (size_t i = 0; i < amounts.size(); ++i) {
            if (!said[i] || std::abs(amounts[i] - *said[i]) > share(*said[i], percent)) return true;
        }
        return false;
    }
    static std::optional<base::Time> written_at(const Json& node) {
        const Json* condition = condition_of(node);
        if (condition == nullptr || model::string_at(*condition, ".status") != "True") return std::nullopt;
        const auto time = model::parse_time(std::string(model::string_at(*condition, ".lastHeartbeatTime")));
        return time ? std::optional(*time) : std::nullopt;
    }
};

class StrategyText {
public:
    StrategyText(const Json& document, std::string& fault) : document_(document), fault_(fault) {}
    std::optional<int64_t> number(const char* name, int64_t most) {
        const Json* value = base::find(document_, {name});
        if (value == nullptr || value->is_null()) return std::nullopt;
        if (value->is_int64() && value->get_int64() >= 0 && value->get_int64() <= most) return value->get_int64();
        wrong(fmt::format("{}: {} is not from 0 to {}", name, base::to_text(*value), most));
        return std::nullopt;
    }
    void policy(const char* name, BatchPolicy& out) {
        const auto said = base::find_string(document_, {name});
        if (said == "usage") out = BatchPolicy::Usage;
        if (said == "maxUsageRequest") out = BatchPolicy::MaxUsageRequest;
        if (said == "request") out = BatchPolicy::Request;
        if (!said.empty() && said != "usage" && said != "maxUsageRequest" && said != "request")
            wrong(fmt::format("{}: \"{}\" is neither usage, request nor maxUsageRequest", name, said));
    }
    void wrong(std::string_view what) {
        if (fault_.empty()) fault_ = fmt::format("annotation \"{}\": {}", kColocation, what);
    }

private:
    const Json& document_;
    std::string& fault_;
};

void read_strategy(const Json& document, BatchStrategy& out, std::string& fault) {
    constexpr int64_t kMost = 1'000'000;
    StrategyText text(document, fault);
    if (const Json* enable = base::find(document, {"enable"}); enable != nullptr && enable->is_bool())
        out.enable = enable->get_bool();
    const auto take = [&](const char* name, int64_t& to, int64_t most) { to = text.number(name, most).value_or(to); };
    take("cpuReclaimThresholdPercent", out.cpu.reclaim_percent, kMost);
    take("memoryReclaimThresholdPercent", out.memory.reclaim_percent, kMost);
    take("midCPUThresholdPercent", out.cpu.mid_percent, 100);
    take("midMemoryThresholdPercent", out.memory.mid_percent, 100);
    out.cpu.most_percent = text.number("batchCPUThresholdPercent", 100);
    out.memory.most_percent = text.number("batchMemoryThresholdPercent", 100);
    if (const auto percent = text.number("midUnallocatedPercent", 100))
        out.cpu.mid_unallocated_percent = out.memory.mid_unallocated_percent = *percent;
    text.policy("cpuCalculatePolicy", out.cpu.policy);
    if (out.cpu.policy == BatchPolicy::Request) {
        text.wrong("cpuCalculatePolicy: request is memory's only");
        out.cpu.policy = BatchPolicy::Usage;
    }
    text.policy("memoryCalculatePolicy", out.memory.policy);
    if (const auto minutes = text.number("degradeTimeMinutes", kMost)) out.degrade = std::chrono::minutes(*minutes);
    if (const auto seconds = text.number("updateTimeThresholdSeconds", kMost))
        out.refresh = std::chrono::seconds(*seconds);
}

// "0.65", by which a label replaces a percentage.
void read_ratio(const Labels& labels, std::string_view key, int64_t& percent, std::string& fault) {
    const std::string* text = labels.find(key);
    if (text == nullptr) return;
    const auto ratio = Quantity::parse(*text);
    if (ratio && !ratio->is_negative() && ratio->milli() <= kMilli) {
        percent = ratio->milli() / 10;
    } else if (fault.empty()) {
        fault = fmt::format("label \"{}\": \"{}\" is not from 0 to 1", key, *text);
    }
}

}  // namespace

int64_t batch_amount(const BatchInput& input, const BatchRules& rules) {
    const int64_t margin = share(input.capacity, 100 - rules.reclaim_percent);
    const int64_t reserved = std::max(input.reserved, input.kubelet_reserved);
    const bool by_request = rules.policy == BatchPolicy::Request;
    int64_t left = input.capacity - margin - (by_request ? reserved : std::max(input.system_used, reserved));
    for (const auto& pod : input.pods) {
        if (is_dear(pod)) left -= counted(pod, input, rules.policy);
    }
    left = std::max<int64_t>(0, left);
    if (rules.most_percent) left = std::min(left, share(input.capacity, *rules.most_percent));
    return std::max<int64_t>(0, left - input.listed);
}

int64_t mid_amount(const BatchInput& input, const BatchRules& rules) {
    int64_t asked = 0;
    for (const auto& pod : input.pods) asked += pod.band == model::PriorityBand::Prod ? pod.request : 0;
    const int64_t system = std::max({input.system_used, input.reserved, input.kubelet_reserved});
    const int64_t unallocated = std::max<int64_t>(0, input.capacity - system - asked);
    const int64_t unused = std::max<int64_t>(0, input.capacity - input.node_used);
    const int64_t reclaimable = std::min(std::max<int64_t>(0, input.prod_reclaimable.value_or(0)), unused);
    return std::min(reclaimable + share(unallocated, rules.mid_unallocated_percent),
                    share(input.capacity, rules.mid_percent));
}

BatchStrategy strategy_of(const Labels& annotations, const Labels& labels, std::string& fault) {
    BatchStrategy out;
    out.cpu.reclaim_percent = 60;
    if (const std::string* text = annotations.find(kColocation)) {
        const auto document = base::parse_json(*text);
        if (document && document->is_object()) {
            read_strategy(*document, out, fault);
        } else {
            fault = fmt::format("annotation \"{}\": {}", kColocation,
                                document ? "must be an object" : document.error().message);
        }
    }
    read_ratio(labels, "node.koordinator.sh/cpu-reclaim-ratio", out.cpu.reclaim_percent, fault);
    read_ratio(labels, "node.koordinator.sh/memory-reclaim-ratio", out.memory.reclaim_percent, fault);
    return out;
}

std::unique_ptr<Reconciler> batch_reconciler() {
    return std::make_unique<BatchReconciler>();
}

}  // namespace berth::control
