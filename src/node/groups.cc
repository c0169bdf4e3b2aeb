#include "node/groups.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::node {
namespace {

// "-besteffort"; Guaranteed pods have no folder of their class.
std::string_view word_of(model::KubeQos qos) {
    return qos == model::KubeQos::BestEffort ? "besteffort" : qos == model::KubeQos::Burstable ? "burstable" : "";
}

std::string_view scope_of(std::string_view runtime) {
    if (runtime == "containerd") return "cri-containerd";
    return runtime == "cri-o" ? "crio" : runtime;
}

}  // namespace

std::string pods_group(const Hierarchy& tree) {
    return tree.systemd ? "kubepods.slice" : "kubepods";
}

std::string qos_group(const Hierarchy& tree, model::KubeQos qos) {
    const auto word = word_of(qos);
    if (word.empty()) return pods_group(tree);
    return tree.systemd ? fmt::format("{}/kubepods-{}.slice", pods_group(tree), word)
                        : fmt::format("{}/{}", pods_group(tree), word);
}

std::string pod_group(const Hierarchy& tree, const NodePod& pod) {
    if (!tree.systemd) return fmt::format("{}/pod{}", qos_group(tree, pod.kube), pod.uid);
    const auto word = word_of(pod.kube);
    std::string uid = pod.uid;  // a dash would be a level of slices
    std::replace(uid.begin(), uid.end(), '-', '_');
    return fmt::format("{}/kubepods{}{}-pod{}.slice", qos_group(tree, pod.kube), word.empty() ? "" : "-", word, uid);
}

std::string container_group(const Hierarchy& tree, const NodePod& pod, const Container& container) {
    return tree.systemd ? fmt::format("{}/{}-{}.scope", pod_group(tree, pod), scope_of(container.runtime), container.id)
                        : fmt::format("{}/{}", pod_group(tree, pod), container.id);
}

std::string_view parent_group(std::string_view group) {
    const auto slash = group.rfind('/');
    return slash == std::string_view::npos ? std::string_view() : group.substr(0, slash);
}

}  // namespace berth::node
