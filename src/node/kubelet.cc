#include "node/kubelet.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/kinds/path.h"
#include "model/quantity.h"
#include "node/machine.h"

namespace berth::node {
namespace {

Result<model::CpuIds> cpus_at(const Json& value, std::string_view field) {
    std::string fault;
    if (!value.is_string())
        return base::bad_request(fmt::format("{}: {} is no list of CPUs", field, base::to_text(value)));
    auto cpus = model::read_cpu_list(std::string_view(value.get_string()), fault);
    if (!fault.empty()) return base::bad_request(fmt::format("{}: {}", field, fault));
    return cpus;
}

Result<Quantity> reserved_at(const Json& document, const char* group, const char* resource) {
    const Json* value = base::find(document, {group, resource});
    if (value == nullptr) return Quantity();
    const std::string text = value->is_string() ? std::string(value->get_string()) : base::to_text(*value);
    const auto quantity = Quantity::parse(text);
    if (!quantity || quantity->is_negative())
        return base::bad_request(fmt::format("{}.{}: \"{}\" is no amount", group, resource, text));
    return *quantity;
}

void take_text(const Json& document, std::string_view path, std::string& out) {
    if (const auto text = model::string_at(document, path); !text.empty()) out = text;
}

}  // namespace

Status read_kubelet_config(const Json& document, Kubelet& out) {
    if (!document.is_object()) return base::bad_request("a KubeletConfiguration must be an object");
    take_text(document, ".cpuManagerPolicy", out.cpu_policy);
    take_text(document, ".cgroupDriver", out.cgroup_driver);
    take_text(document, ".cgroupRoot", out.cgroup_root);
    take_text(document, ".topologyManagerPolicy", out.topology_policy);
    take_text(document, ".topologyManagerScope", out.topology_scope);
    for (const auto& option : model::members_at(document, ".cpuManagerPolicyOptions")) {
        out.cpu_options[option.key()] =
            option.value().is_string() ? std::string(option.value().get_string()) : base::to_text(option.value());
    }
    Quantity cpu, memory;
    for (const auto* group : {"kubeReserved", "systemReserved"}) {
        cpu += TRY(reserved_at(document, group, "cpu"));
        memory += TRY(reserved_at(document, group, "memory"));
    }
    out.reserved_milli = cpu.milli();
    out.reserved_memory = memory.value();
    if (const Json* cpus = base::find(document, {"reservedSystemCPUs"}); cpus != nullptr && *cpus != Json("")) {
        out.reserved = TRY(cpus_at(*cpus, "reservedSystemCPUs"));
        out.reserved_milli = static_cast<int64_t>(out.reserved.size()) * kMilliPerCore;
    }
    return {};
}

Status read_cpu_manager_state(const Json& document, Kubelet& out) {
    if (!document.is_object()) return base::bad_request("the CPU manager's state must be an object");
    take_text(document, ".policyName", out.cpu_policy);
    for (const auto& pod : model::members_at(document, ".entries")) {
        if (!pod.value().is_object())
            return base::bad_request(
                fmt::format("entries.{}: {} is no object", pod.key_c_str(), base::to_text(pod.value())));
        for (const auto& container : pod.value().get_object()) {
            const std::string field = fmt::format("entries.{}.{}", pod.key_c_str(), container.key_c_str());
            out.statics.push_back({pod.key(), container.key(), TRY(cpus_at(container.value(), field))});
        }
    }
    return {};
}

}  // namespace berth::node
