#pragma once

#include <string>
#include <string_view>

#include "node/node_pod.h"

namespace berth::node {

// How a machine's cgroup tree is laid out.
struct Hierarchy {
    bool v2 = false;
    bool systemd = false;  // slices, else plain folders
};

// Groups are named below the tree's root, or each controller's in v1: "kubepods/besteffort/pod<uid>", or
// "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod<uid>.slice".
std::string pods_group(const Hierarchy& tree);
std::string qos_group(const Hierarchy& tree, model::KubeQos qos);
std::string pod_group(const Hierarchy& tree, const NodePod& pod);
std::string container_group(const Hierarchy& tree, const NodePod& pod, const Container& container);
// "" where the group is the root's own.
std::string_view parent_group(std::string_view group);

}  // namespace berth::node
