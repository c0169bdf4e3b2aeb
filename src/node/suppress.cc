#include "node/suppress.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/cpu_set.h"

namespace berth::node {
namespace {

constexpr int64_t kMicrosPerMilli = kPeriod / kMilliPerCore;
constexpr int64_t kLeastCpus = 2;

using CoreId = std::pair<int32_t, int32_t>;  // socket, core

// `count` of these.
class Choice {
public:
    Choice(const Machine& machine, const model::CpuIds& from) {
        std::map<CoreId, size_t> sizes;
        for (const auto& cpu : machine.cpus) ++sizes[{cpu.socket, cpu.core}];
        std::map<CoreId, model::CpuIds> free;
        for (const auto& cpu : machine.cpus) {
            if (std::binary_search(from.begin(), from.end(), cpu.id)) free[{cpu.socket, cpu.core}].push_back(cpu.id);
        }
        for (auto& [core, cpus] : free) {
            auto& list = cpus.size() == sizes[core] ? whole_[core.first] : part_;
            list.push_back(std::move(cpus));
        }
        const auto lowest_first = [](const auto& a, const auto& b) { return a.front() < b.front(); };
        for (auto& [socket, list] : whole_) std::sort(list.begin(), list.end(), lowest_first);
        std::sort(part_.begin(), part_.end(), lowest_first);
    }
    model::CpuIds take(size_t count) {
        take_whole(count);
        for (const auto& core : part_) take_singles(core, count);
        for (const auto& [socket, list] : whole_) {
            for (const auto& core : list) take_singles(core, count);
        }
        std::sort(taken_.begin(), taken_.end());
        return std::move(taken_);
    }

private:
    // One of each socket in turn.
    void take_whole(size_t& count) {
        for (bool any = true; any;) {
            any = false;
            for (auto& [socket, list] : whole_) {
                if (list.empty() || list.front().size() > count) continue;
                any = true;
                take_singles(list.front(), count);
                list.erase(list.begin());
            }
        }
    }
    void take_singles(const model::CpuIds& core, size_t& count) {
        for (const int32_t cpu : core) {
            if (count == 0) return;
            taken_.push_back(cpu);
            --count;
        }
    }

    std::map<int32_t, std::vector<model::CpuIds>> whole_;  // by socket
    std::vector<model::CpuIds> part_;
    model::CpuIds taken_;
};

}  // namespace

int64_t allowed_milli(int64_t capacity, int64_t reserved, const Slo& slo, const std::vector<NodePod>& pods,
                      const Usage& usage) {
    std::set<std::string> best_effort;
    for (const auto& pod : pods) {
        if (pod.qos == model::Qos::BE) best_effort.insert(pod.full_name());
    }
    int64_t others = 0;  // pods that nobody knows count as such
    for (const auto& [name, used] : usage.pods) others += best_effort.contains(name) ? 0 : used.cpu;
    const int64_t allowed = capacity * slo.cpu_percent / 100 - others - std::max(usage.system().cpu, reserved);
    return std::max<int64_t>({0, allowed, capacity * slo.cpu_min_percent / 100});
}

int64_t next_quota(int64_t machine_milli, int64_t target_milli, std::optional<int64_t> now) {
    const int64_t target = std::max(kLeastQuota, target_milli * kMicrosPerMilli);
    if (!now || *now < 0) return target;
    const int64_t machine = machine_milli * kMicrosPerMilli;
    const int64_t change = target - *now;
    if (std::abs(change) < machine / 100 && target != kLeastQuota) return *now;
    return *now + std::min(change, machine / 10);
}

model::CpuIds be_cpus(const Machine& machine, const Cores& cores, int64_t allowed,
                      const std::optional<model::CpuIds>& now) {
    const auto candidates = be_cores(cores);
    const auto lsr = model::cpus_in_both(candidates, cores.lsr);
    const auto shared = model::cpus_without(candidates, lsr);
    auto want = std::max(kLeastCpus, allowed / kMilliPerCore);
    if (now && !now->empty()) {
        const auto step = static_cast<int64_t>((machine.cpus.size() + 9) / 10);
        want = std::max(kLeastCpus, std::min(want, static_cast<int64_t>(now->size()) + step));
    }
    const size_t count = std::min(static_cast<size_t>(want), candidates.size());
    if (count == 0) return {};
    const size_t from_lsr = count * lsr.size() / candidates.size();
    return model::cpus_with(Choice(machine, lsr).take(from_lsr), Choice(machine, shared).take(count - from_lsr));
}

}  // namespace berth::node
