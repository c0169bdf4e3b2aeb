#include "ledger/cores.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/check.h"
#include "base/saturating.h"

namespace berth::ledger {
namespace {

constexpr int64_t kMilli = 1000;

std::shared_ptr<const CoreLayout> layout_of(const model::CpuTopology& cpus) {
    if (cpus.empty()) return nullptr;
    auto out = std::make_shared<CoreLayout>();
    std::map<int32_t, int32_t> numas;  // id -> socket
    for (const auto& cpu : cpus) numas.emplace(cpu.numa, cpu.socket);
    for (const auto& [id, socket] : numas) out->numas.push_back({id, socket, {}});
    std::map<std::tuple<int32_t, int32_t, int32_t>, CoreLayout::Core> cores;
    for (const auto& cpu : cpus) {
        const auto place = std::distance(numas.begin(), numas.find(cpu.numa));
        auto& core = cores[{cpu.socket, cpu.numa, cpu.core}];
        core.numa = static_cast<int32_t>(place);
        core.cpus.add(cpu.id);
        ++core.threads;
        out->numas[static_cast<size_t>(place)].cpus.add(cpu.id);
        out->all.add(cpu.id);
    }
    for (auto& [place, core] : cores) {
        out->threads = std::max(out->threads, core.threads);
        out->cores.push_back(std::move(core));
    }
    return out;
}

CpuBits cpus_of(const NodeCores::Member& member) {
    return CpuBits(member.which->cores.cpus);
}

// What the record says of a NUMA node; its cores there, if it names no amounts.
model::Resources amount_on(const NodeCores::Member& member, const CoreLayout::Numa& numa) {
    const auto& cores = member.which->cores;
    for (const auto& [node, amount] : cores.numa) {
        if (node == numa.id) return amount;
    }
    const int64_t cpus = cores.numa.empty() ? cpus_of(member).within(numa.cpus).count() : 0;
    return cpus == 0 ? model::Resources() : model::Resources{{model::kCpu, cpus * kMilli}};
}

bool pays(const NodeCores::Member& pod, ReservationIndex index) {
    return std::find(pod.from.begin(), pod.from.end(), index) != pod.from.end();
}

}  // namespace

bool NodeCores::demanding() const {
    return rules.numa != model::NumaPolicy::None || rules.required != model::CpuBinding::None ||
           rules.amplified_milli != kMilli || (object && object->full_pcpus_only);
}

void NodeCores::recompute() {
    kept = free = by_pods = alone_on_core = alone_on_numa = CpuBits();
    free_cpus = whole = started = bound_milli = 0;
    numa.assign(layout ? layout->numas.size() : 0, {});
    if (object) {
        for (const auto* list : {&object->reserved, &object->kubelet, &object->system}) kept.add(CpuBits(*list));
    }
    kept.add(CpuBits(reserved));
    CpuBits by_reservations;
    for (const Member& member : members) {
        (member.reservation ? by_reservations : by_pods).add(cpus_of(member));
        count(member);
    }
    CpuBits taken = by_pods;
    taken.add(by_reservations);
    bound_milli = taken.count() * kMilli;
    find_faults();
    if (!layout) return;
    free = layout->all.without(kept).without(taken);
    free_cpus = free.count();
    for (const auto& core : layout->cores) {
        const int64_t here = core.cpus.within(free).count();
        if (here > 0) ++started;
        if (here == layout->threads) whole += here;
    }
    count_numa();
}

void NodeCores::count(const Member& member) {
    if (!layout || member.exclusive == model::CpuExclusive::None) return;
    const CpuBits cpus = cpus_of(member);
    for (const auto& core : layout->cores) {
        if (core.cpus.within(cpus).empty()) continue;
        if (member.exclusive == model::CpuExclusive::PCPULevel) {
            alone_on_core.add(core.cpus);
        } else {
            alone_on_numa.add(layout->numas[static_cast<size_t>(core.numa)].cpus);
        }
    }
}

void NodeCores::count_numa() {
    for (size_t i = 0; i < numa.size(); ++i) {
        const auto& place = layout->numas[i];
        const auto after = std::upper_bound(object->zones.begin(), object->zones.end(), place.id,
                                            [](int32_t id, const auto& zone) { return id < zone.node; });
        const bool told = after != object->zones.begin() && std::prev(after)->node == place.id;
        if (told) numa[i].total = std::prev(after)->amount;
        const int64_t given = place.cpus.without(kept).count() * kMilli;
        numa[i].total.set(model::kCpu, std::min(given, numa[i].total.get(model::kCpu, given)));
        for (const Member& member : members) {
            if (amount_on(member, place).empty()) continue;
            const bool alone = member.which->cores.numa.size() == 1;
            (alone ? numa[i].single : numa[i].shared) = true;
        }
    }
    left_.clear();
    std::vector<const Member*> pods;
    for (const Member& member : members) {
        if (!member.reservation) {
            pods.push_back(&member);
            continue;
        }
        Left& left = left_.emplace_back(member.index, std::vector<model::Resources>());
        for (const auto& place : layout->numas) left.on.push_back(amount_on(member, place));
    }
    std::sort(pods.begin(), pods.end(), [](const Member* a, const Member* b) {
        const auto key = [](const Member* pod) { return std::tuple(pod->from.size(), std::string_view(pod->order)); };
        return key(a) < key(b);
    });
    for (const Member* pod : pods) {
        for (size_t i = 0; i < numa.size(); ++i) take(*pod, i);
    }
    for (const Left& left : left_) {
        for (size_t i = 0; i < numa.size(); ++i) numa[i].used.add(left.on[i]);
    }
}

void NodeCores::take(const Member& pod, size_t place) {
    model::Resources amount = amount_on(pod, layout->numas[place]);
    numa[place].used.add(amount);
    for (const ReservationIndex payer : pod.from) {
        const auto left =
            std::find_if(left_.begin(), left_.end(), [&](const Left& l) { return l.reservation == payer; });
        if (left == left_.end()) continue;
        const model::Resources rest = amount;
        rest.for_each([&](ResourceId id, int64_t asked) {
            const int64_t part = std::min(asked, left->on[place].get(id));
            if (part <= 0) return;
            left->on[place].add(id, -part);
            amount.add(id, -part);
        });
    }
}

void NodeCores::find_faults() {
    fault = Fault::None;
    fault_cpu = -1;
    fault_member = 0;
    const auto is = [&](Fault what, size_t member, int32_t cpu) {
        if (fault != Fault::None) return;
        fault = what;
        fault_member = member;
        fault_cpu = cpu;
    };
    if (object && !object->fault.empty()) is(Fault::Topology, 0, -1);
    if (!rules.fault.empty()) is(Fault::Rules, 0, -1);
    CpuBits seen;
    for (size_t i = 0; i < members.size(); ++i) {
        if (!members[i].which->fault.empty()) is(Fault::Unreadable, i, -1);
        const CpuBits cpus = cpus_of(members[i]);
        if (layout && !layout->all.covers(cpus)) is(Fault::Beyond, i, cpus.without(layout->all).first());
        if (members[i].reservation) continue;
        if (const CpuBits both = cpus.within(seen); !both.empty()) is(Fault::Twice, i, both.first());
        seen.add(cpus);
    }
    CpuBits reserved_by_others;
    for (size_t i = 0; i < members.size(); ++i) {
        if (!members[i].reservation) continue;
        const CpuBits cpus = cpus_of(members[i]);
        if (const CpuBits both = cpus.within(reserved_by_others); !both.empty()) is(Fault::Twice, i, both.first());
        reserved_by_others.add(cpus);
        for (const Member& pod : members) {
            if (pod.reservation || pays(pod, members[i].index)) continue;
            if (const CpuBits both = cpus.within(cpus_of(pod)); !both.empty()) is(Fault::Twice, i, both.first());
        }
    }
}

CpuBits NodeCores::remaining(ReservationIndex index) const {
    for (const Member& member : members) {
        if (member.reservation && member.index == index) return cpus_of(member).without(by_pods);
    }
    return {};
}

int64_t NodeCores::remaining(ReservationIndex index, size_t place, ResourceId id) const {
    for (const Left& left : left_) {
        if (left.reservation == index) return left.on[place].get(id);
    }
    return 0;
}

// ---- all nodes

void Cores::put(std::shared_ptr<const model::NodeTopology> topology) {
    Known& known = known_[topology->meta.name];
    if (!known.layout || known.object->cpus != topology->cpus) known.layout = layout_of(topology->cpus);
    known.object = std::move(topology);
}

bool Cores::remove(std::string_view node, std::string_view uid) {
    const auto found = known_.find(node);
    if (found == known_.end() || (!uid.empty() && found->second.object->meta.uid != uid)) return false;
    known_.erase(found);
    return true;
}

NodeCores& Cores::made(Row row) {
    if (rows_.size() <= row) rows_.resize(row + 1);
    if (!rows_[row]) rows_[row] = std::make_unique<NodeCores>();
    return *rows_[row];
}

void Cores::see(Row row, const model::Node& node) {
    const auto known = known_.find(node.meta.name);
    model::NodeCoreRules rules = model::core_rules_of(node);
    const bool says = known != known_.end() || rules != model::NodeCoreRules();
    if (!says && at(row) == nullptr) return;
    NodeCores& cores = made(row);
    demanding_ -= cores.demanding() ? 1 : 0;
    cores.rules = std::move(rules);
    cores.object = known == known_.end() ? nullptr : known->second.object;
    cores.layout = known == known_.end() ? nullptr : known->second.layout;
    cores.reserved = cores.object ? model::reserved_cpus(node, cores.object->cpus) : model::CpuIds();
    demanding_ += cores.demanding() ? 1 : 0;
    cores.recompute();
}

void Cores::forget(Row row) {
    if (at(row) == nullptr) return;
    demanding_ -= rows_[row]->demanding() ? 1 : 0;
    rows_[row].reset();
}

void Cores::enter(Row row, NodeCores::Member member) {
    NodeCores& cores = made(row);
    cores.members.push_back(std::move(member));
    cores.recompute();
}

void Cores::leave(Row row, bool reservation, uint32_t index) {
    NodeCores& cores = made(row);
    const auto found = std::find_if(cores.members.begin(), cores.members.end(), [&](const auto& member) {
        return member.reservation == reservation && member.index == index;
    });
    CHECK(found != cores.members.end());
    cores.members.erase(found);
    cores.recompute();
}

}  // namespace berth::ledger
