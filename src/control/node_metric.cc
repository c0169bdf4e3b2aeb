#include "control/node_metric.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/kinds/path.h"
#include "model/quantity.h"
#include "model/times.h"

namespace berth::control {
namespace {

std::optional<Load> used_at(const Json& document, std::initializer_list<std::string_view> path) {
    const Json* resources = base::find(document, path);
    if (resources == nullptr) return std::nullopt;
    const auto cpu = amount_at(*resources, "cpu", true), memory = amount_at(*resources, "memory", false);
    if (!cpu || !memory) return std::nullopt;
    return Load{*cpu, *memory};
}

model::PriorityBand band_at(const Json& pod) {
    using model::PriorityBand;
    const auto said = model::string_at(pod, ".priority");
    for (const auto band : {PriorityBand::Mid, PriorityBand::Batch, PriorityBand::Free}) {
        if (said == model::text_of(band)) return band;
    }
    return PriorityBand::Prod;
}

}  // namespace

Load& Load::operator+=(const Load& other) {
    cpu += other.cpu;
    memory += other.memory;
    return *this;
}

Load& Load::operator-=(const Load& other) {
    cpu = std::max<int64_t>(0, cpu - other.cpu);
    memory = std::max<int64_t>(0, memory - other.memory);
    return *this;
}

std::optional<int64_t> amount_at(const Json& resources, const char* name, bool is_cpu) {
    const Json* value = base::find(resources, {name});
    if (value == nullptr) return std::nullopt;
    const auto amount = Quantity::parse(value->is_string() ? std::string(value->get_string()) : base::to_text(*value));
    if (!amount) return std::nullopt;
    return std::max<int64_t>(0, is_cpu ? amount->milli() : amount->value());
}

NodeMetric read_node_metric(const Json& document) {
    NodeMetric out;
    if (const auto time = model::parse_time(std::string(model::string_at(document, ".status.updateTime"))))
        out.updated = *time;
    const auto node = used_at(document, {"status", "nodeMetric", "nodeUsage", "resources"});
    if (!node) out.updated.reset();  // without it nothing is known
    out.node = node.value_or(Load());
    Load pods;
    for (const auto& pod : model::list_at(document, ".status.podsMetric")) {
        const auto used = used_at(pod, {"podUsage", "resources"});
        if (!used) continue;
        pods = {pods.cpu + used->cpu, pods.memory + used->memory};
        const Labels said{{std::string(model::kQosClass), std::string(model::string_at(pod, ".qos"))}};
        out.pods[fmt::format("{}/{}", model::string_at(pod, ".namespace"), model::string_at(pod, ".name"))] = {
            *used, band_at(pod), model::qos_of(said, model::KubeQos::Burstable)};
    }
    const Load rest{std::max<int64_t>(0, out.node.cpu - pods.cpu), std::max<int64_t>(0, out.node.memory - pods.memory)};
    out.system = used_at(document, {"status", "nodeMetric", "systemUsage", "resources"}).value_or(rest);
    for (const auto& host : model::list_at(document, ".status.hostApplicationMetric")) {
        const auto used = used_at(host, {"usage", "resources"});
        const auto band = band_at(host);
        if (!used || (band != model::PriorityBand::Prod && band != model::PriorityBand::Mid)) continue;
        out.system = {out.system.cpu + used->cpu, out.system.memory + used->memory};
    }
    out.reclaimable = used_at(document, {"status", "prodReclaimableMetric", "resource", "resources"});
    return out;
}

}  // namespace berth::control
