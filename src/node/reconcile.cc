#include "node/reconcile.h"

#include <algorithm>
#include <map>

namespace berth::node {
namespace {

// "cri-containerd-<id>.scope" or "<id>".
std::optional<Container> container_of(std::string_view group) {
    constexpr std::string_view kScope = ".scope", kCri = "cri-containerd", kCrio = "crio";
    if (is_container_id(group)) return Container{{}, {}, std::string(group), 0};
    if (!group.ends_with(kScope)) return std::nullopt;
    group.remove_suffix(kScope.size());
    const auto dash = group.rfind('-');
    if (dash == std::string_view::npos || !is_container_id(group.substr(dash + 1))) return std::nullopt;
    const auto prefix = group.substr(0, dash);
    const auto runtime = prefix == kCri ? "containerd" : prefix == kCrio ? "cri-o" : prefix;
    return Container{{}, std::string(runtime), std::string(group.substr(dash + 1)), 0};
}

// In v2 a group without a list of its own has its parent's.
model::CpuIds cpus_in(const std::string& text) {
    std::string fault;
    return model::read_cpu_list(text, fault);
}

}  // namespace

Reconciled reconcile(Tree& tree, const Goals& goals) {
    Reconciled out;
    const auto tell = [&](const Error& error) {
        if (error.reason != Reason::NotFound) out.troubles.push_back(error.message);
    };
    Goals there;
    std::map<std::string, GroupNow, std::less<>> found;
    for (const auto& goal : goals) {
        GroupNow has;
        const auto cpus = goal.cpus ? tree.read(goal.group, File::Cpuset) : Result<std::string>(std::string());
        const auto quota = goal.quota ? tree.read(goal.group, File::Quota) : Result<std::string>(std::string());
        if (!cpus || (!goal.cpus && !quota)) {
            tell(cpus ? quota.error() : cpus.error());
            continue;
        }
        if (goal.cpus) has.cpus = cpus_in(*cpus);
        if (goal.quota && quota) has.quota = read_quota(tree.hierarchy(), *quota);
        found[goal.group] = std::move(has);
        there.push_back(goal);
    }
    const auto now = [&](const std::string& group) { return found[group]; };
    for (const auto& write : writes_for(tree.hierarchy(), there, now)) {
        const auto file = write.file == cpuset_file() ? File::Cpuset : File::Quota;
        const Status done = tree.write(write.group, file, write.value);
        if (done) ++out.writes;
        if (!done) tell(done.error());
    }
    return out;
}

void add_containers(Tree& tree, NodePod& pod) {
    if (pod.uid.empty()) return;
    const auto names = tree.children(pod_group(tree.hierarchy(), pod));
    if (!names) return;
    for (const auto& name : *names) {
        auto found = container_of(name);
        const bool named = !found || std::any_of(pod.containers.begin(), pod.containers.end(),
                                                 [&](const auto& each) { return each.id == found->id; });
        if (!named) pod.containers.push_back(std::move(*found));
    }
}

void read_current(Tree& tree, Usage& usage) {
    const auto group = qos_group(tree.hierarchy(), model::KubeQos::BestEffort);
    const auto cpus = tree.read(group, File::Cpuset);
    usage.cpuset = cpus ? std::optional(cpus_in(*cpus)) : std::nullopt;
    if (usage.cpuset && usage.cpuset->empty()) usage.cpuset.reset();
    const auto quota = tree.read(group, File::Quota);
    usage.quota = quota ? read_quota(tree.hierarchy(), *quota) : std::nullopt;
}

Goals restored(const Situation& situation) {
    Goals out{{qos_group(situation.tree, model::KubeQos::BestEffort), situation.machine.ids(), kNoQuota}};
    const auto& kubelet = situation.kubelet;
    for (const auto& pod : situation.pods) {
        if (pod.uid.empty()) continue;
        const auto quota = [&](int64_t milli) -> std::optional<int64_t> {
            if (!pod.cpus) return std::nullopt;  // only these lost theirs
            return milli == 0 ? kNoQuota : milli * kPeriod / kMilliPerCore;
        };
        Goal whole{pod_group(situation.tree, pod), situation.machine.ids(), quota(pod.limit_milli())};
        if (kubelet.is_static()) whole.cpus.reset();
        out.push_back(whole);
        for (const auto& container : pod.containers) {
            const bool kept = std::any_of(kubelet.statics.begin(), kubelet.statics.end(), [&](const auto& given) {
                return given.pod_uid == pod.uid && given.container == container.name;
            });
            if (!kept)
                out.push_back({container_group(situation.tree, pod, container), situation.machine.ids(),
                               quota(container.limit_milli)});
        }
    }
    return out;
}

}  // namespace berth::node
