#include "model/node_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "model/annotation.h"
#include "model/cpu_set.h"
#include "model/node_reservation.h"
#include "model/pod_resources.h"
#include "model/quantity.h"
#include "model/reservation.h"
#include "model/resource_names.h"

namespace berth::model {
namespace {

constexpr std::string_view kBindPolicy = "node.koordinator.sh/cpu-bind-policy";
constexpr std::string_view kTopologyPolicy = "node.koordinator.sh/numa-topology-policy";
constexpr std::string_view kStrategy = "node.koordinator.sh/numa-allocate-strategy";
constexpr std::string_view kAmplification = "node.koordinator.sh/resource-amplification-ratio";
constexpr int64_t kMilli = 1000;
constexpr int64_t kMostAmplified = 100 * kMilli;

CpuIds read_cpus(const Reader& field) {
    std::string fault;
    CpuIds out = read_cpu_list(field.text(), fault);
    if (!fault.empty()) field.wrong(fault);
    return out;
}

// Calls read(Reader) on the annotation, if there is one; the first that cannot be read is the topology's fault.
template <class F>
void note(NodeTopology& out, std::string_view key, F read) {
    const std::string* text = out.meta.annotations.find(key);
    if (text == nullptr || text->empty()) return;
    const Status status = read_annotation(key, *text, read);
    if (!status && out.fault.empty()) out.fault = status.error().message;
}

void read_notes(NodeTopology& out) {
    if (const std::string* text = out.meta.annotations.find(kCpuTopology)) {
        auto cpus = read_cpu_topology(*text);
        if (cpus) {
            out.cpus = *std::move(cpus);
        } else {
            out.fault = cpus.error().message;
        }
    }
    note(out, kNodeReservation, [&](const Reader& root) { out.reserved = read_cpus(root["reservedCPUs"]); });
    note(out, kKubeletCpuManager, [&](const Reader& root) {
        out.kubelet = read_cpus(root["reservedCPUs"]);
        const Reader options = root["options"];
        out.full_pcpus_only = root["policy"].text() == "static" && options["full-pcpus-only"].text() == "true";
    });
    note(out, kPodCpuAllocs, [&](const Reader& root) {
        std::string all, fault;
        root.each([&](const Reader& item) {
            if (item["managedByKubelet"].flag())
                all += fmt::format("{}{}", all.empty() ? "" : ",", item["cpuset"].text());
        });
        out.kubelet = cpus_with(out.kubelet, read_cpu_list(all, fault));
        if (!fault.empty()) root.wrong(fault);
    });
    note(out, kSystemQos, [&](const Reader& root) {
        if (root["cpusetExclusive"].flag(true)) out.system = read_cpus(root["cpuset"]);
    });
}

// "node-0" is NUMA node 0.
bool read_zone(const Reader& from, NumaAmount& out) {
    constexpr std::string_view kPrefix = "node-";
    const auto name = from["name"].text();
    if (from["type"].text() != "Node" || !name.starts_with(kPrefix)) return false;
    const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), out.node);
    if (error != std::errc() || end != name.data() + name.size() || out.node < 0) return false;
    const Reader resources = from["resources"];
    size_t named = 0;
    resources.each([&](const Reader& item) {
        if (++named > kMostNamed) return;
        const Reader amount = item["allocatable"];
        const auto id = intern_asked_resource(item["name"].text());
        const auto quantity = Quantity::parse(amount.text());
        if (!id || !quantity || quantity->is_negative()) return amount.wrong("must be a quantity that is not negative");
        out.amount.set(*id, amount_of(*id, *quantity));
    });
    if (named > kMostNamed) resources.wrong(fmt::format("names {} resources, at most {} may be", named, kMostNamed));
    return true;
}

}  // namespace

Result<NodeTopology> read_node_topology(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    NodeTopology out;
    out.meta = read_meta(root);
    read_notes(out);
    const Reader zones = root["zones"];
    zones.each([&](const Reader& item) {
        NumaAmount zone;
        if (read_zone(item, zone)) out.zones.push_back(std::move(zone));
    });
    std::sort(out.zones.begin(), out.zones.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
    if (!trouble.empty() && out.fault.empty()) out.fault = trouble;
    return out;
}

NodeCoreRules core_rules_of(const Node& node) {
    NodeCoreRules out;
    const auto label = [&](std::string_view key) {
        const std::string* value = node.meta.labels.find(key);
        return value ? std::string_view(*value) : std::string_view();
    };
    const auto policy = label(kBindPolicy);
    if (policy == "FullPCPUsOnly") out.required = CpuBinding::FullPCPUs;
    if (policy == "SpreadByPCPUs") out.required = CpuBinding::SpreadByPCPUs;
    out.numa = numa_policy_named(label(kTopologyPolicy));
    out.most = label(kStrategy) == "MostAllocated";
    const std::string* text = node.meta.annotations.find(kAmplification);
    if (text == nullptr || text->empty()) return out;
    const Status read = read_annotation(kAmplification, *text, [&](const Reader& root) {
        const Reader cpu = root["cpu"];
        if (!cpu.present()) return;
        const auto ratio = Quantity::parse(cpu.text_or_number());
        const int64_t milli = ratio ? amount_of(kCpu, *ratio) : 0;
        if (milli < kMilli || milli > kMostAmplified) return cpu.wrong("must be a ratio from 1 to 100");
        out.amplified_milli = milli;
    });
    if (!read) out.fault = read.error().message;
    return out;
}

CpuIds reserved_cpus(const Node& node, const CpuTopology& machine) {
    if (!node.meta.annotations.has(kNodeReservation) && !node.meta.annotations.has(kReservationApplied)) return {};
    const NodeReservation reserved = view_of(node).reservation;
    if (reserved.cpus) return *reserved.cpus;
    const int64_t milli = std::max<int64_t>(0, reserved.amounts.get(kCpu));
    return take_cpus(machine, static_cast<size_t>(milli / kMilli + (milli % kMilli > 0 ? 1 : 0)));
}

}  // namespace berth::model
