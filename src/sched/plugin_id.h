#pragma once

#include <cstdint>
#include <string_view>

namespace berth::sched {

// Who takes part in a decision: one row each in plugins/registry.cc, in this order.
enum class PluginId : uint8_t {
    Reservation,
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    NodeNUMAResource,
    DeviceShare,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    Extenders,
    ShareFit,
};

// As people and configurations spell it.
std::string_view name_of(PluginId id);

}  // namespace berth::sched
