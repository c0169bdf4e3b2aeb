#include "node/evict.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace berth::node {
namespace {

// What best-effort pods may use now: as CPUs, and as a quota where there is one; or what the Node lends them.
int64_t limit_of(const Situation& situation) {
    const auto& usage = situation.usage;
    const auto lent = model::intern_resource("kubernetes.io/batch-cpu");
    if (situation.slo.by_allocatable && lent && situation.node.allocatable.has(*lent))
        return situation.node.allocatable.get(*lent);
    int64_t limit = static_cast<int64_t>(situation.machine.cpus.size()) * kMilliPerCore;
    if (usage.cpuset && !usage.cpuset->empty())
        limit = std::min(limit, static_cast<int64_t>(usage.cpuset->size()) * kMilliPerCore);
    if (usage.quota && *usage.quota >= 0) limit = std::min(limit, *usage.quota * kMilliPerCore / kPeriod);
    return limit;
}

int64_t asked(const std::vector<NodePod>& pods) {
    int64_t sum = 0;
    for (const auto& pod : pods) {
        if (pod.qos == model::Qos::BE && !pod.ends) sum += pod.batch_cpu_request;
    }
    return sum;
}

int64_t used(const Situation& situation) {
    int64_t sum = 0;
    for (const auto& pod : situation.pods) {
        if (pod.qos == model::Qos::BE) sum += situation.usage.of(pod).cpu;
    }
    return sum;
}

std::vector<size_t> in_order(const Situation& situation, int64_t Used::* what) {
    std::vector<size_t> out;
    for (size_t i = 0; i < situation.pods.size(); ++i) {
        if (situation.pods[i].qos == model::Qos::BE && !situation.pods[i].ends) out.push_back(i);
    }
    const auto rank = [&](size_t i) {
        const auto& pod = situation.pods[i];
        return std::tuple(pod.priority, pod.sub_priority, -(situation.usage.of(pod).*what), pod.full_name());
    };
    std::sort(out.begin(), out.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
    return out;
}

}  // namespace

// limit / asked below the lower percentage while most of the limit is used.
bool is_starved(const Situation& situation, const Plan&) {
    const Slo& slo = situation.slo;
    const int64_t want = asked(situation.pods);
    if (!slo.enable || !slo.satisfaction_lower || !slo.satisfaction_upper || want == 0) return false;
    const int64_t limit = limit_of(situation);
    return limit * 100 < want * *slo.satisfaction_lower && used(situation) * 100 >= limit * slo.be_usage_percent;
}

std::vector<Eviction> evictions(const Situation& situation, const Plan& plan, base::Duration starved) {
    std::vector<Eviction> out;
    const Slo& slo = situation.slo;
    const int64_t capacity = situation.node.capacity.get(model::kMemory);
    int64_t memory = situation.usage.node.memory;
    // Those on their way out give theirs back: nobody else goes for it.
    for (const auto& pod : situation.pods) memory -= pod.ends ? situation.usage.of(pod).memory : 0;
    if (slo.enable && capacity > 0 && memory * 100 > capacity * slo.memory_evict_percent) {
        for (const size_t i : in_order(situation, &Used::memory)) {
            if (memory * 100 <= capacity * slo.memory_evict_lower_percent) break;
            memory -= situation.usage.of(situation.pods[i]).memory;
            out.push_back({i, fmt::format("the node uses more than {} % of its memory", slo.memory_evict_percent)});
        }
        return out;
    }
    if (!is_starved(situation, plan) || starved < std::chrono::seconds(slo.window_seconds)) return out;
    const int64_t limit = limit_of(situation);
    int64_t want = asked(situation.pods);
    for (const size_t i : in_order(situation, &Used::cpu)) {
        if (limit * 100 >= want * *slo.satisfaction_upper) break;
        if (situation.pods[i].batch_cpu_request == 0) continue;
        want -= situation.pods[i].batch_cpu_request;
        out.push_back(
            {i, fmt::format("best-effort pods have less than {} % of the cpu they ask for", *slo.satisfaction_lower)});
    }
    return out;
}

}  // namespace berth::node
