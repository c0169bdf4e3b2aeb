#include "sched/plugins/registry.h"

#include <array>

#include "sched/profile_args.h"

namespace berth::sched {
namespace {

using ledger::Change;
using ledger::changes;
using namespace plugins;
using FilterPtr = std::shared_ptr<const Filter>;
using ScorerPtr = std::shared_ptr<const Scorer>;
using Args = const PluginArgs&;

// Of a factory without arguments.
template <FilterPtr (*make)()>
FilterPtr filter(Args) {
    return make();
}
template <ScorerPtr (*make)()>
ScorerPtr scorer(Args) {
    return make();
}

constexpr ChangeSet kNodeShape = changes({Change::NodeAdded, Change::NodeLabels, Change::NodeTaints});
constexpr ChangeSet kHeldOnNode = changes({Change::NodeAdded, Change::PodRemoved, Change::Reservation});
constexpr ChangeSet kNeighbours =
    kNodeShape | changes({Change::PodRemoved, Change::PodBound, Change::PodLabels, Change::Reservation});

// In kube-scheduler's order and with its weights. A row of the table of nodes is refused by the first filter in this
// order, but what is ours frames the others: its first filter comes before them all, its second after them all.
constexpr std::array kPlugins{
    Plugin{.id = PluginId::Reservation,
           .name = "Reservation",
           .before = filter<reservation_match>,
           .filter = filter<reservation_fit>,
           .cured_by = changes({Change::Reservation, Change::NodeAdded, Change::NodeAllocatable, Change::NodeLabels,
                                Change::PodRemoved, Change::PodLabels}),
           .ours = true},
    Plugin{.id = PluginId::SchedulingGates, .name = "SchedulingGates"},
    Plugin{.id = PluginId::PrioritySort, .name = "PrioritySort"},
    Plugin{.id = PluginId::NodeUnschedulable,
           .name = "NodeUnschedulable",
           .filter = filter<node_unschedulable>,
           .cured_by = changes({Change::NodeAdded, Change::NodeUnschedulable, Change::NodeTaints})},
    Plugin{.id = PluginId::NodeName,
           .name = "NodeName",
           .filter = filter<node_name>,
           .cured_by = changes({Change::NodeAdded})},
    Plugin{.id = PluginId::TaintToleration,
           .name = "TaintToleration",
           .filter = filter<taint_filter>,
           .scorer = scorer<taint_scorer>,
           .weight = 3,
           .cured_by = changes({Change::NodeAdded, Change::NodeTaints})},
    Plugin{.id = PluginId::NodeAffinity,
           .name = "NodeAffinity",
           .before = filter<named_nodes_filter>,
           .filter = [](Args args) { return node_affinity_filter(args.added); },
           .scorer = [](Args args) { return node_affinity_scorer(args.added); },
           .weight = 2,
           .read_args = read_added_affinity,
           .cured_by = changes({Change::NodeAdded, Change::NodeLabels})},
    Plugin{.id = PluginId::NodePorts, .name = "NodePorts", .filter = filter<node_ports>, .cured_by = kHeldOnNode},
    Plugin{.id = PluginId::NodeResourcesFit,
           .name = "NodeResourcesFit",
           .filter = [](Args args) { return fit_filter(args.fit); },
           .scorer = [](Args args) { return fit_scorer(args.strategy); },
           .weight = 1,
           .read_args = read_fit,
           .cured_by = kHeldOnNode | changes({Change::NodeAllocatable})},
    Plugin{.id = PluginId::NodeNUMAResource,
           .name = "NodeNUMAResource",
           .filter = filter<numa_filter>,
           .scorer = scorer<numa_scorer>,
           .weight = 1,
           .cured_by = kHeldOnNode | changes({Change::NodeAllocatable, Change::NodeLabels, Change::Parts})},
    Plugin{.id = PluginId::DeviceShare,
           .name = "DeviceShare",
           .filter = filter<device_filter>,
           .scorer = [](Args args) { return device_scorer(args.devices); },
           .weight = 1,
           .read_args = read_devices,
           .cured_by = kHeldOnNode | changes({Change::NodeAllocatable, Change::Parts})},
    Plugin{.id = PluginId::VolumeRestrictions,
           .name = "VolumeRestrictions",
           .filter = filter<volume_restrictions>,
           .cured_by = kHeldOnNode | changes({Change::Volume})},
    Plugin{.id = PluginId::NodeVolumeLimits,
           .name = "NodeVolumeLimits",
           .filter = filter<volume_limits>,
           .cured_by = kHeldOnNode | changes({Change::Volume})},
    Plugin{.id = PluginId::VolumeBinding,
           .name = "VolumeBinding",
           .before = filter<volume_claims>,
           .filter = filter<volume_binding>,
           .read_args = read_volume_binding,
           .cured_by = kNodeShape | changes({Change::Volume})},
    Plugin{.id = PluginId::VolumeZone,
           .name = "VolumeZone",
           .filter = filter<volume_zone>,
           .cured_by = kNodeShape | changes({Change::Volume})},
    Plugin{.id = PluginId::PodTopologySpread,
           .name = "PodTopologySpread",
           .filter = [](Args args) { return spread_filter(args.spread); },
           .scorer = [](Args args) { return spread_scorer(args.spread); },
           .weight = 2,
           .read_args = read_spread,
           .cured_by = kNeighbours},
    Plugin{.id = PluginId::InterPodAffinity,
           .name = "InterPodAffinity",
           .filter = filter<pod_affinity_filter>,
           .scorer = [](Args args) { return pod_affinity_scorer(args.affinity); },
           .weight = 2,
           .read_args = read_pod_affinity,
           .cured_by = kNeighbours | changes({Change::Namespace})},
    Plugin{
        .id = PluginId::DefaultPreemption, .name = "DefaultPreemption", .read_args = read_preemption, .preempts = true},
    Plugin{.id = PluginId::NodeResourcesBalancedAllocation,
           .name = "NodeResourcesBalancedAllocation",
           .scorer = [](Args args) { return balanced_allocation(args.balanced); },
           .weight = 1,
           .read_args = read_balanced},
    Plugin{.id = PluginId::ImageLocality, .name = "ImageLocality", .scorer = scorer<image_locality>, .weight = 1},
    Plugin{.id = PluginId::DefaultBinder, .name = "DefaultBinder"},
    Plugin{.id = PluginId::Extenders, .name = "Extenders", .ours = true},
    Plugin{.id = PluginId::ShareFit,
           .name = "ShareFit",
           .before = filter<share_fit>,
           .cured_by = changes({Change::Share, Change::Reservation}),
           .ours = true},
};

constexpr bool in_order() {
    for (size_t i = 0; i < kPlugins.size(); ++i) {
        if (static_cast<size_t>(kPlugins[i].id) != i) return false;
    }
    return true;
}
static_assert(in_order(), "a row stands where its PluginId does");

}  // namespace

std::span<const Plugin> all_plugins() {
    return kPlugins;
}

const Plugin& plugin_of(PluginId id) {
    return kPlugins[static_cast<size_t>(id)];
}

std::string_view name_of(PluginId id) {
    return plugin_of(id).name;
}

}  // namespace berth::sched
