#include "node/cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.h"
#include "model/cpu_set.h"
#include "model/kinds/path.h"

namespace berth::node {
namespace {

void read_system(const model::Node& node, Cores& cores, std::vector<std::string>& faults) {
    const std::string* text = node.meta.annotations.find(kSystemQos);
    if (text == nullptr) return;
    const auto document = base::parse_json(*text);
    std::string fault;
    if (!document || !document->is_object()) {
        fault = document ? "must be an object" : document.error().message;
    } else {
        cores.system =
            model::cpus_in_both(model::read_cpu_list(model::string_at(*document, ".cpuset"), fault), cores.all);
        const Json* alone = base::find(*document, {"cpusetExclusive"});
        cores.system_alone = alone == nullptr || !alone->is_bool() || alone->get_bool();
    }
    if (!fault.empty())
        faults.push_back(fmt::format("Node \"{}\": annotation \"{}\": {}", node.meta.name, kSystemQos, fault));
}

// Cores of a pod that the machine has; a pod whose cores are reserved keeps them until it is moved.
void take_bound(const NodePod& pod, Cores& cores, std::vector<std::string>& faults) {
    if (!pod.cpus) return;
    const auto unknown = model::cpus_without(*pod.cpus, cores.all);
    if (!unknown.empty()) {
        faults.push_back(fmt::format("pod \"{}\" is bound to CPUs {}, which the machine does not have", pod.full_name(),
                                     model::cpu_list_text(unknown)));
    }
    const auto reserved = model::cpus_in_both(*pod.cpus, cores.reserved);
    if (!reserved.empty()) {
        faults.push_back(fmt::format("pod \"{}\" is bound to the reserved CPUs {} and keeps them until it is moved",
                                     pod.full_name(), model::cpu_list_text(reserved)));
    }
    const auto known = model::cpus_in_both(*pod.cpus, cores.all);
    if (pod.qos == model::Qos::LSE) cores.lse = model::cpus_with(cores.lse, known);
    if (pod.qos == model::Qos::LSR) cores.lsr = model::cpus_with(cores.lsr, known);
}

}  // namespace

model::CpuIds reserved_cores(const Machine& machine, const model::NodeReservation& reservation) {
    if (reservation.cpus) return model::cpus_in_both(*reservation.cpus, machine.ids());
    const int64_t milli = std::max<int64_t>(0, reservation.amounts.get(model::kCpu));
    return model::take_cpus(machine.cpus, static_cast<size_t>(milli / kMilliPerCore + (milli % kMilliPerCore != 0)));
}

Cores cores_of(const Machine& machine, const model::Node& node, const model::NodeReservation& reservation,
               const std::vector<NodePod>& pods, const Kubelet& kubelet, std::vector<std::string>& faults) {
    Cores cores;
    cores.all = machine.ids();
    cores.reserved = reserved_cores(machine, reservation);
    if (reservation.cpus) {
        const auto unknown = model::cpus_without(*reservation.cpus, cores.all);
        if (!unknown.empty())
            faults.push_back(fmt::format("Node \"{}\": annotation \"{}\": reservedCPUs: the machine has no CPU {}",
                                         node.meta.name, "node.koordinator.sh/reservation",
                                         model::cpu_list_text(unknown)));
    }
    read_system(node, cores, faults);
    for (const auto& pod : pods) take_bound(pod, cores, faults);
    for (const auto& given : kubelet.statics)
        cores.statics = model::cpus_with(cores.statics, model::cpus_in_both(given.cpus, cores.all));
    return cores;
}

model::CpuIds be_cores(const Cores& cores) {
    auto out = model::cpus_without(cores.all, cores.lse);
    out = model::cpus_without(out, cores.statics);
    out = model::cpus_without(out, cores.reserved);
    return cores.system_alone ? model::cpus_without(out, cores.system) : out;
}

model::CpuIds ls_cores(const Cores& cores) {
    return model::cpus_without(be_cores(cores), cores.lsr);
}

Pools pools_of(const Machine& machine, const model::CpuIds& cpus) {
    std::map<std::pair<int32_t, int32_t>, model::CpuIds> by_place;
    for (const auto& cpu : machine.cpus) {
        if (std::binary_search(cpus.begin(), cpus.end(), cpu.id)) by_place[{cpu.socket, cpu.numa}].push_back(cpu.id);
    }
    Pools out;
    for (auto& [place, its] : by_place) out.push_back({place.first, place.second, std::move(its)});
    return out;
}

}  // namespace berth::node
