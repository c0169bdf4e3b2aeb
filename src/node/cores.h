#pragma once

#include <string>
#include <vector>

#include "model/cpu_list.h"
#include "model/node.h"
#include "model/node_reservation.h"
#include "node/kubelet.h"
#include "node/machine.h"
#include "node/node_pod.h"

namespace berth::node {

// Who has which cores of a machine.
struct Cores {
    model::CpuIds all;
    model::CpuIds reserved;    // for processes outside Kubernetes
    model::CpuIds lse, lsr;    // of pods that are bound to cores
    model::CpuIds statics;     // of the kubelet's static policy
    model::CpuIds system;      // of SYSTEM pods
    bool system_alone = true;  // nobody else may use those
};

// The cores of the shared pools in one NUMA node of one socket; never none.
struct Pool {
    int32_t socket = 0;
    int32_t numa = 0;
    model::CpuIds cpus;
    bool operator==(const Pool&) const = default;
};
using Pools = std::vector<Pool>;  // by socket and NUMA node

inline constexpr std::string_view kSystemQos = "node.koordinator.sh/system-qos-resource";

// The cores that a reservation keeps out: those that it lists and that the machine has, else as many as its amount
// needs, counted over all CPUs whatever pods hold. E.g. 2500m on the seed's machine of 24: "0-1,12".
model::CpuIds reserved_cores(const Machine& machine, const model::NodeReservation& reservation);

Cores cores_of(const Machine& machine, const model::Node& node, const model::NodeReservation& reservation,
               const std::vector<NodePod>& pods, const Kubelet& kubelet, std::vector<std::string>& faults);

// all - LSE - LSR - the kubelet's - reserved - the system's own.
model::CpuIds ls_cores(const Cores& cores);
// The same with the LSR pods' cores, which best-effort pods use while their owners are idle.
model::CpuIds be_cores(const Cores& cores);

Pools pools_of(const Machine& machine, const model::CpuIds& cpus);

}  // namespace berth::node
