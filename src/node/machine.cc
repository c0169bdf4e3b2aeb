#include "node/machine.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>

namespace berth::node {
namespace {

constexpr std::string_view kSynthetic = "synthetic:";
constexpr size_t kLargestFile = size_t{16} << 20;

struct Destroy {
    void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;

Error unusable(const std::string& source, std::string_view why) {
    return base::bad_request(fmt::format("topology \"{}\": {}", source, why));
}

Result<Topology> load(const std::string& source) {
    hwloc_topology_t made = nullptr;
    if (hwloc_topology_init(&made) != 0) return unusable(source, "hwloc has no memory");
    Topology topology(made);
    if (source.starts_with(kSynthetic)) {
        if (hwloc_topology_set_synthetic(made, source.c_str() + kSynthetic.size()) != 0) {
            return unusable(source, "hwloc cannot read it; such as \"synthetic:socket:2 numa:2 core:10 pu:2\"");
        }
    } else if (source != "live") {
        if (hwloc_topology_set_xml(made, source.c_str()) != 0) return unusable(source, std::strerror(errno));
    }
    // What this process may use is not the question: the agent stands in a cgroup of its own.
    hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (hwloc_topology_load(made) != 0) return unusable(source, "hwloc cannot load it");
    return topology;
}

int32_t logical(const hwloc_obj* of) {
    return of == nullptr ? 0 : static_cast<int32_t>(of->logical_index);
}

std::vector<hwloc_obj_t> numas_of(hwloc_topology_t topology) {
    std::vector<hwloc_obj_t> out;
    hwloc_obj_t at = nullptr;
    while ((at = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, at)) != nullptr) out.push_back(at);
    std::sort(out.begin(), out.end(), [](auto* a, auto* b) { return a->os_index < b->os_index; });
    return out;
}

// Cores and sockets are numbered as they stand in the tree, so that a core's number is its own in the whole machine;
// CPUs and NUMA nodes as the kernel numbers them. Where several NUMA nodes are local, the first: the others are memory
// of another kind.
Result<Machine> machine_of(hwloc_topology_t topology, const std::string& source) {
    const auto numas = numas_of(topology);
    Machine out;
    std::set<int32_t> used;
    hwloc_obj_t pu = nullptr;
    while ((pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != nullptr) {
        if (pu->os_index > static_cast<unsigned>(model::kMaxCpuId)) {
            return unusable(source, fmt::format("CPU {} is beyond {}", pu->os_index, model::kMaxCpuId));
        }
        const auto local = std::find_if(numas.begin(), numas.end(), [&](auto* numa) {
            return hwloc_bitmap_isset(numa->cpuset, pu->os_index) != 0;
        });
        const auto id = local == numas.end() ? 0 : static_cast<int32_t>((*local)->os_index);
        const auto* core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
        const auto* socket = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, pu);
        out.cpus.push_back(
            {static_cast<int32_t>(pu->os_index), logical(core == nullptr ? pu : core), id, logical(socket)});
        used.insert(id);
    }
    if (out.cpus.empty()) return unusable(source, "it has no CPU");
    std::sort(out.cpus.begin(), out.cpus.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    for (const int32_t id : used) {
        NumaNode numa{id, 0, {}};
        for (const auto* each : numas) {
            if (static_cast<int32_t>(each->os_index) != id) continue;
            const auto& memory = each->attr->numanode;
            numa.memory = static_cast<int64_t>(memory.local_memory);
            for (unsigned i = 1; i < memory.page_types_len; ++i) {
                const auto& pages = memory.page_types[i];
                if (pages.count == 0) continue;
                numa.huge.push_back({static_cast<int64_t>(pages.size), static_cast<int64_t>(pages.count)});
            }
        }
        out.numas.push_back(std::move(numa));
    }
    return out;
}

Result<Machine> read_detail(const std::string& source) {
    std::ifstream in(source, std::ios::binary);
    if (!in) return unusable(source, std::strerror(errno));
    std::string text(kLargestFile + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(in.gcount()));
    if (text.size() > kLargestFile) return unusable(source, "more than 16 MiB");
    auto cpus = model::read_cpu_topology(text);
    if (!cpus) return unusable(source, cpus.error().message);
    if (cpus->empty()) return unusable(source, "it has no CPU");
    Machine out{std::move(*cpus), {}};
    std::set<int32_t> used;
    for (const auto& cpu : out.cpus) used.insert(cpu.numa);
    for (const int32_t id : used) out.numas.push_back({id, 0, {}});
    return out;
}

}  // namespace

model::CpuIds Machine::ids() const {
    model::CpuIds out;
    for (const auto& cpu : cpus) out.push_back(cpu.id);
    return out;
}

Result<Machine> read_machine(const std::string& source) {
    if (source.ends_with(".json")) return read_detail(source);
    if (source != "live" && !source.ends_with(".xml") && !source.starts_with(kSynthetic)) {
        return unusable(source, "must be live, FILE.xml, FILE.json or synthetic:DESCRIPTION");
    }
    const Topology topology = TRY(load(source));
    return machine_of(topology.get(), source);
}

}  // namespace berth::node
