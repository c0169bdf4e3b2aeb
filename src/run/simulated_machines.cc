#include "run/simulated_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "model/cpu_topology.h"
#include "model/quantity.h"

namespace berth::run {
namespace {

constexpr int32_t kMostGpus = 64;
constexpr int32_t kOnOneSwitch = 2;
constexpr std::string_view kModelLabel = "node.koordinator.sh/gpu-model";
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kMemory{{{"A10", "24Gi"},
                                                                                {"A100", "80Gi"},
                                                                                {"H100", "80Gi"},
                                                                                {"L40S", "48Gi"},
                                                                                {"P100", "16Gi"},
                                                                                {"T4", "16Gi"},
                                                                                {"V100", "32Gi"}}};

// The NUMA node of the i-th GPU and its socket.
std::pair<int32_t, int32_t> place_of(const std::optional<node::Machine>& machine, int32_t i, int32_t count) {
    if (!machine || machine->numas.empty()) return {0, 0};
    const auto numas = static_cast<int64_t>(machine->numas.size());
    const int32_t numa = machine->numas[static_cast<size_t>(int64_t{i} * numas / count)].id;
    const auto cpu =
        std::find_if(machine->cpus.begin(), machine->cpus.end(), [&](const auto& one) { return one.numa == numa; });
    return {numa, cpu == machine->cpus.end() ? 0 : cpu->socket};
}

}  // namespace

Result<SimulatedGpus> read_simulated_gpus(const std::string& text) {
    SimulatedGpus out;
    const auto colon = text.find(':');
    const std::string number = text.substr(0, colon);
    const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), out.count);
    const bool whole = fault == std::errc() && end == number.data() + number.size();
    if (!whole || out.count < 0 || out.count > kMostGpus) {
        return base::bad_request(
            fmt::format("--node-gpus: \"{}\" is not a number from 0 to {}, or one and a model", text, kMostGpus));
    }
    if (colon == std::string::npos) return out;
    out.model = text.substr(colon + 1);
    if (out.model.empty()) return base::bad_request(fmt::format("--node-gpus: \"{}\" names no model", text));
    for (const auto& [model, memory] : kMemory) {
        if (model == out.model) out.memory = memory;
    }
    return out;
}

void add_gpus(const SimulatedGpus& gpus, control::SimulatedNode& node) {
    if (gpus.count == 0) return;
    const std::string percents = fmt::format("{}", 100 * gpus.count);
    const int64_t bytes = model::Quantity::parse(gpus.memory)->value() * gpus.count;
    node.amounts = {
        {"nvidia.com/gpu", fmt::format("{}", gpus.count)},
        {"koordinator.sh/gpu", percents},
        {"koordinator.sh/gpu.shared", percents},
        {"koordinator.sh/gpu-core", percents},
        {"koordinator.sh/gpu-memory-ratio", percents},
        {"koordinator.sh/gpu-memory", model::Quantity::from_value(bytes, model::Quantity::Format::BinarySI).text()}};
    if (!gpus.model.empty()) node.labels.emplace_back(kModelLabel, gpus.model);
}

Json device_of(const SimulatedGpus& gpus, const std::optional<node::Machine>& machine, const std::string& name) {
    JsonArray devices;
    for (int32_t i = 0; i < gpus.count; ++i) {
        const auto [numa, socket] = place_of(machine, i, gpus.count);
        JsonObject device{{"type", "gpu"},
                          {"minor", i},
                          {"id", fmt::format("GPU-{}-{}", name, i)},
                          {"health", true},
                          {"resources", JsonObject{{"koordinator.sh/gpu-core", "100"},
                                                   {"koordinator.sh/gpu-memory-ratio", "100"},
                                                   {"koordinator.sh/gpu-memory", gpus.memory}}},
                          {"topology", JsonObject{{"socketID", socket},
                                                  {"nodeID", numa},
                                                  {"pcieID", fmt::format("{}", i / kOnOneSwitch)},
                                                  {"busID", fmt::format("0000:{:02x}:00.0", i + 1)}}}};
        if (!gpus.model.empty()) device["labels"] = JsonObject{{kModelLabel, gpus.model}};
        devices.push_back(std::move(device));
    }
    return JsonObject{{"kind", "Device"},
                      {"apiVersion", "scheduling.koordinator.sh/v1alpha1"},
                      {"metadata", JsonObject{{"name", name}}},
                      {"spec", JsonObject{{"devices", std::move(devices)}}}};
}

Json topology_of(const node::Machine& machine, const std::string& name) {
    JsonArray detail;
    for (const auto& cpu : machine.cpus) {
        detail.push_back(JsonObject{{"id", cpu.id}, {"core", cpu.core}, {"socket", cpu.socket}, {"node", cpu.numa}});
    }
    JsonArray zones;
    for (const auto& numa : machine.numas) {
        const auto cpus = std::count_if(machine.cpus.begin(), machine.cpus.end(),
                                        [&](const auto& cpu) { return cpu.numa == numa.id; });
        const std::string amount = fmt::format("{}", cpus);
        const JsonObject cpu{{"name", "cpu"}, {"capacity", amount}, {"allocatable", amount}, {"available", amount}};
        zones.push_back(
            JsonObject{{"name", fmt::format("node-{}", numa.id)}, {"type", "Node"}, {"resources", JsonArray{cpu}}});
    }
    const JsonObject notes{{model::kCpuTopology, base::to_text(JsonObject{{"detail", std::move(detail)}})},
                           {control::kSimulatedNode, "true"}};
    return JsonObject{{"kind", "NodeResourceTopology"},
                      {"apiVersion", "topology.node.k8s.io/v1alpha1"},
                      {"metadata", JsonObject{{"name", name}, {"annotations", notes}}},
                      {"topologyPolicies", JsonArray{"None"}},
                      {"zones", std::move(zones)}};
}

}  // namespace berth::run
