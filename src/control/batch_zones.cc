#include "control/batch_zones.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "model/kinds/path.h"
#include "model/times.h"

namespace berth::control {
namespace {

constexpr std::array<const char*, 2> kNames{"kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"};
constexpr int64_t kMilli = 1000;

int64_t part(int64_t amount, size_t parts) {
    const auto of = static_cast<int64_t>(std::max<size_t>(1, parts));
    return amount / of + (amount % of > 0);
}

std::set<int32_t> numas_with(const ledger::CoreLayout& layout, const ledger::CpuBits& cpus) {
    std::set<int32_t> out;
    for (const auto& numa : layout.numas) {
        if (numa.cpus.meets(cpus)) out.insert(numa.id);
    }
    return out;
}

// The place of a resource in a zone's list; nullptr: it has none.
JsonObject* resource_in(JsonArray& resources, std::string_view name) {
    for (auto& each : resources) {
        if (each.is_object() && model::string_at(each, ".name") == name) return &each.get_object();
    }
    return nullptr;
}

// "node-0" is NUMA node 0; nullptr: the amounts say nothing of it.
const std::pair<int64_t, int64_t>* amounts_for(const Json& zone, const ZoneAmounts& amounts) {
    for (const auto& [numa, amount] : amounts) {
        if (model::string_at(zone, ".type") == "Node" &&
            model::string_at(zone, ".name") == std::string_view(fmt::format("node-{}", numa)))
            return &amount;
    }
    return nullptr;
}

struct Difference {
    bool any = false, large = false;
};

// Puts an amount into a zone, where it is another one.
void put(JsonArray& resources, const char* name, int64_t amount, int64_t percent, Difference& difference) {
    JsonObject* said = resource_in(resources, name);
    const auto before = said ? amount_at(Json(*said), "allocatable", false) : std::nullopt;
    if (before == amount) return;
    difference.any = true;
    difference.large = difference.large || !before || std::abs(amount - *before) > *before * percent / 100;
    const std::string text = fmt::format("{}", amount);
    const JsonObject now{{"name", name}, {"capacity", text}, {"allocatable", text}, {"available", text}};
    if (said) {
        *said = now;
    } else {
        resources.push_back(now);
    }
}

void clear(JsonArray& resources, Difference& difference) {
    for (const auto* name : kNames) {
        if (resource_in(resources, name) != nullptr) put(resources, name, 0, 0, difference);
    }
}

}  // namespace

std::vector<int32_t> numas_of(const model::Which* which, const ledger::NodeCores* cores) {
    std::set<int32_t> out;
    if (which == nullptr) return {};
    for (const auto& numa : which->cores.numa) out.insert(numa.node);
    if (out.empty() && cores != nullptr && cores->layout)
        out = numas_with(*cores->layout, ledger::CpuBits(which->cores.cpus));
    return {out.begin(), out.end()};
}

BatchInput zone_input(const BatchInput& node, const BatchZone& zone, int64_t zones) {
    const auto count = static_cast<size_t>(std::max<int64_t>(1, zones));
    BatchInput out;
    out.capacity = zone.capacity;
    out.kubelet_reserved = part(node.kubelet_reserved, count);
    out.reserved = zone.reserved.value_or(part(node.reserved, count));
    out.system_used = part(node.system_used, count);
    out.node_used = part(node.node_used, count);
    out.listed = part(node.listed, count);
    out.is_cpu = node.is_cpu;
    for (const auto& pod : node.pods) {
        const bool here =
            pod.numas.empty() || std::find(pod.numas.begin(), pod.numas.end(), zone.numa) != pod.numas.end();
        if (!here) continue;
        const size_t parts = pod.numas.empty() ? count : pod.numas.size();
        BatchPod its = pod;
        its.request = part(pod.request, parts);
        if (pod.used) its.used = part(*pod.used, parts);
        out.pods.push_back(std::move(its));
    }
    return out;
}

ZoneAmounts zone_amounts(const BatchInput& cpu, const BatchInput& memory, const ledger::NodeCores& cores,
                         const BatchStrategy& strategy) {
    ZoneAmounts out;
    if (!cores.object) return out;
    const auto& zones = cores.object->zones;
    const auto count = static_cast<int64_t>(zones.size());
    ledger::CpuBits reserved(cores.object->reserved);
    reserved.add(ledger::CpuBits(cores.reserved));
    for (const auto& zone : zones) {
        if (!zone.amount.has(model::kCpu) || !zone.amount.has(model::kMemory)) continue;
        BatchZone of_cpu{zone.amount.get(model::kCpu), std::nullopt, zone.node};
        const BatchZone of_memory{zone.amount.get(model::kMemory), std::nullopt, zone.node};
        if (cores.layout && !reserved.empty()) {
            for (const auto& numa : cores.layout->numas) {
                if (numa.id == zone.node) of_cpu.reserved = numa.cpus.within(reserved).count() * kMilli;
            }
        }
        out[zone.node] = {batch_amount(zone_input(cpu, of_cpu, count), strategy.cpu),
                          batch_amount(zone_input(memory, of_memory, count), strategy.memory)};
    }
    return out;
}

std::optional<Write> zones_write(const Object& topology, const ZoneAmounts* amounts, const BatchStrategy& strategy,
                                 base::Time now, std::optional<base::Time>& again) {
    JsonArray zones = model::list_at(topology.document(), ".zones");
    Difference difference;
    for (auto& zone : zones) {
        Json* list = zone.is_object() ? zone.get_object().if_contains("resources") : nullptr;
        if (list == nullptr || !list->is_array()) continue;
        auto& resources = list->get_array();
        const auto* amount = amounts ? amounts_for(zone, *amounts) : nullptr;
        if (amount == nullptr) {
            clear(resources, difference);
            continue;
        }
        put(resources, kNames[0], amount->first, strategy.diff_percent, difference);
        put(resources, kNames[1], amount->second, strategy.diff_percent, difference);
    }
    if (!difference.any) return std::nullopt;
    const auto* text = topology.meta.annotations.find(kZonesWritten);
    const auto written = text ? model::parse_time(*text) : Result<base::Time>(base::Time());
    if (amounts && !difference.large && text && written && now < *written + strategy.refresh) {
        again = std::min(again.value_or(*written + strategy.refresh), *written + strategy.refresh);
        return std::nullopt;
    }
    const JsonObject notes{{kZonesWritten, model::time_text(now)}};
    return if_unchanged(patch_object(kTopologies, topology.meta,
                                     JsonObject{{"metadata", JsonObject{{"annotations", notes}}}, {"zones", zones}}),
                        topology.meta);
}

}  // namespace berth::control
