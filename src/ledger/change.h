#pragma once

#include <cstdint>
#include <initializer_list>

namespace berth::ledger {

// What happened in the cluster, as far as it may help somebody who waits. Bits of a set.
enum class Change : uint32_t {
    NodeAdded = 1 << 0,
    NodeAllocatable = 1 << 1,
    NodeLabels = 1 << 2,
    NodeTaints = 1 << 3,
    NodeUnschedulable = 1 << 4,
    PodRemoved = 1 << 5,   // bound pods that went, ended or shrank, alone or with their node
    PodBound = 1 << 6,     // a pod came to a node: affinity may hold now
    PodLabels = 1 << 7,    // of a bound pod
    Reservation = 1 << 8,  // appeared, became available, released room
    Volume = 1 << 9,       // PV, PVC, StorageClass, CSINode, CSI capacity, VolumeAttachment
    Namespace = 1 << 10,
    Share = 1 << 11,  // a namespace may have more; those who wait for that alone are told by name
    Parts = 1 << 12,  // which cores and devices a node has
};

using ChangeSet = uint32_t;
inline constexpr ChangeSet kAnyChange = UINT32_MAX;

constexpr ChangeSet changes(std::initializer_list<Change> listed) {
    ChangeSet set = 0;
    for (const Change change : listed) set |= static_cast<ChangeSet>(change);
    return set;
}

}  // namespace berth::ledger
