#include "model/cpu_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/json.h"
#include "model/annotation.h"

namespace berth::model {
namespace {

// Far more than a machine has whose pods are placed by them; what is weighed for a pod grows with them.
constexpr size_t kMostNumaNodes = 128;

Result<int32_t> number(const Json& entry, std::string_view name) {
    const Json* value = base::find(entry, {name});
    if (value == nullptr || !value->is_int64() || value->get_int64() < 0 || value->get_int64() > kMaxCpuId) {
        return annotation_error(kCpuTopology, fmt::format("{} must be from 0 to {}", name, kMaxCpuId));
    }
    return static_cast<int32_t>(value->get_int64());
}

// What a CPU belongs to at one level, so that places of one level compare by socket, NUMA node and core.
using Place = std::tuple<int32_t, int32_t, int32_t>;
Place socket_of(const Cpu& cpu) {
    return {cpu.socket, 0, 0};
}
Place numa_of(const Cpu& cpu) {
    return {0, cpu.numa, 0};
}
Place core_of(const Cpu& cpu) {
    return {cpu.socket, 0, cpu.core};
}

std::map<Place, size_t> counted(const CpuTopology& cpus, Place (*place)(const Cpu&)) {
    std::map<Place, size_t> out;
    for (const Cpu& cpu : cpus) ++out[place(cpu)];
    return out;
}

class Taking {
public:
    Taking(const CpuTopology& machine, size_t count) : machine_(machine), free_(machine), missing_(count) {}

    // Places of a level that are wholly free, as long as a whole one is missing.
    void whole(Place (*place)(const Cpu&)) {
        const auto sizes = counted(machine_, place);
        std::map<Place, CpuTopology> inside;
        for (const Cpu& cpu : free_) inside[place(cpu)].push_back(cpu);
        for (const Cpu& first : sorted()) {
            const auto here = inside.find(place(first));
            if (here == inside.end()) continue;  // it has been looked at
            const bool fits = here->second.size() == sizes.at(here->first) && here->second.size() <= missing_;
            for (const Cpu& cpu : here->second) {
                if (fits) take(cpu);
            }
            inside.erase(here);
        }
        drop_taken();
    }
    void single() {
        for (const Cpu& cpu : sorted()) {
            if (missing_ > 0) take(cpu);
        }
        drop_taken();
    }
    CpuIds result() {
        std::sort(taken_.begin(), taken_.end());
        return std::move(taken_);
    }

private:
    void take(const Cpu& cpu) {
        taken_.push_back(cpu.id);
        --missing_;
    }
    void drop_taken() {
        std::sort(taken_.begin(), taken_.end());
        std::erase_if(free_, [&](const Cpu& cpu) { return std::binary_search(taken_.begin(), taken_.end(), cpu.id); });
    }
    CpuTopology sorted() const {
        auto sockets = counted(free_, socket_of);
        auto numas = counted(free_, numa_of);
        auto cores = counted(free_, core_of);
        using Key = std::tuple<size_t, int32_t, size_t, int32_t, size_t, int32_t, int32_t>;
        std::vector<std::pair<Key, Cpu>> ranked;
        ranked.reserve(free_.size());
        for (const Cpu& cpu : free_) {
            ranked.emplace_back(Key(sockets[socket_of(cpu)], cpu.socket, numas[numa_of(cpu)], cpu.numa,
                                    cores[core_of(cpu)], cpu.core, cpu.id),
                                cpu);
        }
        std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        CpuTopology out;
        for (auto& [key, cpu] : ranked) out.push_back(cpu);
        return out;
    }

    const CpuTopology& machine_;
    CpuTopology free_;
    CpuIds taken_;
    size_t missing_;
};

// A core lies in one NUMA node. One NUMA node may lie in several sockets: machines without NUMA say so.
bool consistent(const CpuTopology& cpus) {
    std::map<Place, int32_t> numas;
    return std::all_of(cpus.begin(), cpus.end(),
                       [&](const Cpu& cpu) { return numas.emplace(core_of(cpu), cpu.numa).first->second == cpu.numa; });
}

}  // namespace

Result<CpuTopology> read_cpu_topology(std::string_view text) {
    const auto document = base::parse_json(text);
    const Json* detail = document ? base::find(*document, {"detail"}) : nullptr;
    if (detail == nullptr || !detail->is_array()) {
        return annotation_error(kCpuTopology, document ? "detail must be a list" : document.error().message);
    }
    CpuTopology out;
    for (const Json& entry : detail->get_array()) {
        out.push_back({TRY(number(entry, "id")), TRY(number(entry, "core")), TRY(number(entry, "node")),
                       TRY(number(entry, "socket"))});
    }
    std::sort(out.begin(), out.end(), [](const Cpu& a, const Cpu& b) { return a.id < b.id; });
    const auto twice =
        std::adjacent_find(out.begin(), out.end(), [](const Cpu& a, const Cpu& b) { return a.id == b.id; });
    if (twice != out.end()) return annotation_error(kCpuTopology, fmt::format("CPU {} is there twice", twice->id));
    if (!consistent(out)) return annotation_error(kCpuTopology, "a core is in two NUMA nodes");
    const size_t numas = counted(out, numa_of).size();
    if (numas > kMostNumaNodes) {
        return annotation_error(kCpuTopology,
                                fmt::format("there are {} NUMA nodes, at most {} may be", numas, kMostNumaNodes));
    }
    return out;
}

CpuIds take_cpus(const CpuTopology& machine, size_t count) {
    Taking taking(machine, std::min(count, machine.size()));
    taking.whole(socket_of);
    taking.whole(numa_of);
    taking.whole(core_of);
    taking.single();
    return taking.result();
}

}  // namespace berth::model
