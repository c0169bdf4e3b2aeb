#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/labels.h"

namespace berth::model {

inline constexpr std::string_view kResourceSpec = "scheduling.koordinator.sh/resource-spec";
inline constexpr std::string_view kNumaTopologySpec = "scheduling.koordinator.sh/numa-topology-spec";

// Whole physical cores, or one thread of each as long as there are cores.
enum class CpuBinding : uint8_t { None, FullPCPUs, SpreadByPCPUs };
// What others with the same wish should not have a CPU of: the same core, the same NUMA node. A preference.
enum class CpuExclusive : uint8_t { None, PCPULevel, NUMANodeLevel };
enum class NumaPolicy : uint8_t { None, BestEffort, Restricted, SingleNUMANode };
// "FullPCPUs", ...; empty for None.
std::string_view name_of(CpuBinding binding);
std::string_view name_of(NumaPolicy policy);
NumaPolicy numa_policy_named(std::string_view name);  // None: it is no such name

// What a pod says of the cores that it wants, beside how many: LSE and LSR pods get cores of their own.
struct CoreWish {
    enum class Band : uint8_t { Unsaid, Prod, Other };  // of priorities, by its label; else the number says it
    bool own_cores = false;                             // by its QoS class
    Band band = Band::Unsaid;
    CpuBinding required = CpuBinding::None;
    CpuBinding preferred = CpuBinding::FullPCPUs;
    CpuExclusive exclusive = CpuExclusive::None;
    NumaPolicy numa = NumaPolicy::None;
    bool shares_numa = false;  // singleNUMANodeExclusive: Preferred
    std::string fault;         // an annotation that cannot be understood: the pod goes nowhere
    bool operator==(const CoreWish&) const = default;
};

CoreWish read_core_wish(const Labels& labels, const Labels& annotations);

}  // namespace berth::model
