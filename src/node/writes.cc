#include "node/writes.h"

#include <fmt/format.h>

#include <charconv>
#include <set>

#include "model/cpu_set.h"
#include "node/suppress.h"

namespace berth::node {
namespace {

// Those that have groups with goals below them; the tree is small at the top and wide at the bottom.
std::set<std::string, std::less<>> parents_of(const Goals& goals) {
    std::set<std::string, std::less<>> out;
    for (const auto& goal : goals) {
        if (!goal.cpus) continue;
        for (auto up = parent_group(goal.group); !up.empty(); up = parent_group(up)) out.emplace(up);
    }
    return out;
}

}  // namespace

std::string_view cpuset_file() {
    return "cpuset.cpus";
}

std::string_view quota_file(const Hierarchy& tree) {
    return tree.v2 ? "cpu.max" : "cpu.cfs_quota_us";
}

std::string quota_text(const Hierarchy& tree, int64_t quota) {
    if (!tree.v2) return fmt::format("{}", quota);
    return quota < 0 ? fmt::format("max {}", kPeriod) : fmt::format("{} {}", quota, kPeriod);
}

std::optional<int64_t> read_quota(const Hierarchy& tree, std::string_view text) {
    if (tree.v2 && text.starts_with("max")) return kNoQuota;
    int64_t quota = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quota);
    const bool ends = end == text.data() + text.size() || *end == ' ' || *end == '\n';
    if (error != std::errc() || !ends) return std::nullopt;
    return quota;
}

std::vector<CgroupWrite> writes_for(const Hierarchy& tree, const Goals& goals, const Now& now) {
    std::vector<CgroupWrite> out;
    const auto parents = parents_of(goals);
    std::vector<std::optional<model::CpuIds>> has(goals.size());
    const auto write = [&](size_t i, const model::CpuIds& cpus) {
        out.push_back({goals[i].group, std::string(cpuset_file()), model::cpu_list_text(cpus)});
        has[i] = cpus;
    };
    for (size_t i = 0; i < goals.size(); ++i) {
        const Goal& goal = goals[i];
        const GroupNow current = now(goal.group);
        has[i] = current.cpus;
        if (goal.quota && current.quota != goal.quota)
            out.push_back({goal.group, std::string(quota_file(tree)), quota_text(tree, *goal.quota)});
        if (!goal.cpus || !current.cpus || model::has_cpus(*current.cpus, *goal.cpus)) continue;
        write(i, parents.contains(goal.group) ? model::cpus_with(*current.cpus, *goal.cpus) : *goal.cpus);
    }
    for (size_t i = goals.size(); i-- > 0;) {
        if (goals[i].cpus && has[i] != goals[i].cpus) write(i, *goals[i].cpus);
    }
    return out;
}

}  // namespace berth::node
