#include "model/core_wish.h"

#include <fmt/format.h>

#include <array>

#include "model/annotation.h"

namespace berth::model {
namespace {

constexpr std::string_view kQosLabel = "koordinator.sh/qosClass";
constexpr std::string_view kBandLabel = "koordinator.sh/priority-class";
constexpr std::array<std::string_view, 3> kBindings{"", "FullPCPUs", "SpreadByPCPUs"};
constexpr std::array<std::string_view, 3> kExclusives{"", "PCPULevel", "NUMANodeLevel"};
constexpr std::array<std::string_view, 4> kNumaPolicies{"", "BestEffort", "Restricted", "SingleNUMANode"};

// Its place among the names; `otherwise` for a missing, an empty and a neutral one.
template <class Enum, size_t N>
Enum named(const Reader& field, const std::array<std::string_view, N>& names, std::string_view neutral,
           Enum otherwise) {
    const auto text = field.text();
    if (text.empty() || text == neutral) return otherwise;
    for (size_t i = 1; i < N; ++i) {
        if (text == names[i]) return static_cast<Enum>(i);
    }
    field.wrong(fmt::format("must be one of {}, but is \"{}\"", fmt::join(names.begin() + 1, names.end(), ", "), text));
    return otherwise;
}

}  // namespace

std::string_view name_of(CpuBinding binding) {
    return kBindings[static_cast<size_t>(binding)];
}

std::string_view name_of(NumaPolicy policy) {
    return kNumaPolicies[static_cast<size_t>(policy)];
}

NumaPolicy numa_policy_named(std::string_view name) {
    for (size_t i = 1; i < kNumaPolicies.size(); ++i) {
        if (kNumaPolicies[i] == name) return static_cast<NumaPolicy>(i);
    }
    return NumaPolicy::None;
}

CoreWish read_core_wish(const Labels& labels, const Labels& annotations) {
    CoreWish out;
    if (const std::string* qos = labels.find(kQosLabel)) out.own_cores = *qos == "LSE" || *qos == "LSR";
    if (const std::string* band = labels.find(kBandLabel); band && !band->empty()) {
        out.band = *band == "koord-prod" ? CoreWish::Band::Prod : CoreWish::Band::Other;
    }
    if (annotations.empty()) return out;
    Status read;
    if (const std::string* text = annotations.find(kResourceSpec); text && !text->empty()) {
        read = read_annotation(kResourceSpec, *text, [&](const Reader& root) {
            out.required = named(root["requiredCPUBindPolicy"], kBindings, "Default", CpuBinding::None);
            out.preferred = named(root["preferredCPUBindPolicy"], kBindings, "Default", CpuBinding::FullPCPUs);
            out.exclusive = named(root["preferredCPUExclusivePolicy"], kExclusives, "None", CpuExclusive::None);
        });
    }
    if (const std::string* text = annotations.find(kNumaTopologySpec); text && !text->empty() && read) {
        read = read_annotation(kNumaTopologySpec, *text, [&](const Reader& root) {
            out.numa = named(root["numaTopologyPolicy"], kNumaPolicies, "None", NumaPolicy::None);
            out.shares_numa = root["singleNUMANodeExclusive"].text() == "Preferred";
        });
    }
    if (!read) out.fault = read.error().message;
    return out;
}

}  // namespace berth::model
