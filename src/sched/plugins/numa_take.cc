#include "sched/plugins/numa_take.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace berth::sched::plugins {
namespace {

using ledger::CpuBits;
using Layout = ledger::CoreLayout;

// A core of which a thread is off is none: what is asked for in whole cores would not divide.
CpuBits whole_cores(const Layout& layout, const CpuBits& pool) {
    CpuBits out;
    for (const auto& core : layout.cores) {
        if (core.threads == layout.threads && pool.covers(core.cpus)) out.add(core.cpus);
    }
    return out;
}

// Of each core one CPU: of those to be taken first, else the lowest.
CpuBits one_of_each(const Layout& layout, const CpuBits& pool, const CpuBits& first) {
    CpuBits out;
    for (const auto& core : layout.cores) {
        const CpuBits here = core.cpus.within(pool);
        const CpuBits better = here.within(first);
        if (const int32_t cpu = (better.empty() ? here : better).first(); cpu >= 0) out.add(cpu);
    }
    return out;
}

// What may be taken at all.
CpuBits allowed(const Taking& taking) {
    if (!taking.required) return taking.pool;
    const Layout& layout = *taking.node.layout;
    return taking.binding == model::CpuBinding::FullPCPUs ? whole_cores(layout, taking.pool)
                                                          : one_of_each(layout, taking.pool, taking.first);
}

// The pool without the places of others who want to be alone there, too.
CpuBits lonely(const Taking& taking, const CpuBits& pool) {
    if (taking.exclusive == model::CpuExclusive::PCPULevel) return pool.without(taking.node.alone_on_core);
    if (taking.exclusive == model::CpuExclusive::NUMANodeLevel) return pool.without(taking.node.alone_on_numa);
    return pool;
}

// The places to look at, best first: single NUMA nodes, those of `near` before the others, then sockets.
std::vector<CpuBits> places(const Taking& taking, const CpuBits& pool, const CpuBits& near) {
    const Layout& layout = *taking.node.layout;
    std::map<int32_t, CpuBits> sockets;
    for (const auto& numa : layout.numas) sockets[numa.socket].add(numa.cpus);
    const auto rank = [&](const CpuBits& cpus) {
        const int64_t free = cpus.within(pool).count();
        return taking.node.rules.most ? free : -free;
    };
    using Ranked = std::vector<std::pair<std::tuple<bool, int64_t, int64_t, int32_t>, CpuBits>>;
    Ranked numas, wider;
    for (const auto& numa : layout.numas) {
        numas.push_back({{!numa.cpus.meets(near), rank(numa.cpus), rank(sockets[numa.socket]), numa.id}, numa.cpus});
    }
    for (const auto& [id, cpus] : sockets) wider.push_back({{!cpus.meets(near), rank(cpus), 0, id}, cpus});
    std::vector<CpuBits> out;
    for (Ranked* ranked : {&numas, &wider}) {
        std::sort(ranked->begin(), ranked->end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (const auto& [key, cpus] : *ranked) out.push_back(cpus);
    }
    return out;
}

// Whole cores, as many as are missing; then single CPUs of the cores that have fewest free.
class FullTaking {
public:
    FullTaking(const Layout& layout, const CpuBits& pool, int64_t count) : layout_(layout), pool_(pool), left_(count) {}

    void whole(const CpuBits& place) {
        for (const auto& core : layout_.cores) {
            const bool fits = core.threads <= left_ && place.covers(core.cpus) && pool_.covers(core.cpus);
            if (fits) add(core.cpus);
        }
    }
    void single(const CpuBits& place) {
        std::vector<std::pair<int64_t, CpuBits>> cores;
        for (const auto& core : layout_.cores) {
            CpuBits here = core.cpus.within(pool_).within(place);
            if (const int64_t free = here.count(); free > 0) cores.push_back({free, std::move(here)});
        }
        std::stable_sort(cores.begin(), cores.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (auto& [free, here] : cores) {
            for (int32_t cpu = here.first(); cpu >= 0 && left_ > 0; cpu = here.first()) {
                CpuBits one;
                one.add(cpu);
                here.remove(one);
                add(one);
            }
        }
    }
    int64_t left() const { return left_; }
    const CpuBits& taken() const { return taken_; }

private:
    void add(const CpuBits& cpus) {
        taken_.add(cpus);
        pool_.remove(cpus);
        left_ -= cpus.count();
    }

    const Layout& layout_;
    CpuBits pool_;
    CpuBits taken_;
    int64_t left_;
};

CpuBits take_full(const Taking& taking, const CpuBits& pool, const CpuBits& near, int64_t count) {
    const Layout& layout = *taking.node.layout;
    const CpuBits whole = whole_cores(layout, pool);
    const std::vector<CpuBits> all = places(taking, pool, near);
    const int64_t rounded = (count + layout.threads - 1) / layout.threads * layout.threads;
    FullTaking out(layout, pool, count);
    for (const CpuBits& place : all) {
        if (whole.within(place).count() < rounded) continue;
        out.whole(place);
        out.single(place);
        return out.taken();
    }
    const size_t numas = layout.numas.size();
    for (size_t i = 0; i < numas; ++i) out.whole(all[i]);
    for (size_t i = 0; i < numas; ++i) out.single(all[i]);
    return out.taken();
}

CpuBits take_spread(const Taking& taking, const CpuBits& pool, const CpuBits& near, int64_t count) {
    const Layout& layout = *taking.node.layout;
    CpuBits out;
    const auto fill = [&](const CpuBits& place) {
        CpuBits left = pool.within(place).without(out);
        while (count > 0 && !left.empty()) {
            for (const int32_t cpu : one_of_each(layout, left, {}).ids()) {
                if (count-- <= 0) return;
                CpuBits one;
                one.add(cpu);
                out.add(one);
                left.remove(one);
            }
        }
    };
    const std::vector<CpuBits> all = places(taking, pool, near);
    for (const CpuBits& place : all) {
        if (pool.within(place).count() < count) continue;
        fill(place);
        return out;
    }
    for (size_t i = 0; i < layout.numas.size() && count > 0; ++i) fill(all[i]);
    return out;
}

CpuBits take_from(const Taking& taking, const CpuBits& pool, const CpuBits& near, int64_t count) {
    if (count <= 0) return {};
    return taking.binding == model::CpuBinding::SpreadByPCPUs ? take_spread(taking, pool, near, count)
                                                              : take_full(taking, pool, near, count);
}

// Whole cores of which any CPU is to be taken first come with all of theirs.
CpuBits first_of(const Taking& taking, const CpuBits& pool) {
    if (!taking.required || taking.binding != model::CpuBinding::FullPCPUs) return pool.within(taking.first);
    CpuBits out;
    for (const auto& core : taking.node.layout->cores) {
        if (core.cpus.meets(taking.first) && pool.covers(core.cpus)) out.add(core.cpus);
    }
    return out;
}

CpuBits take_in_order(const Taking& taking, const CpuBits& pool, int64_t count) {
    const CpuBits first = first_of(taking, pool);
    const int64_t from_first = std::min(count, first.count());
    CpuBits out = take_from(taking, first, {}, from_first);
    out.add(take_from(taking, pool.without(first), out, count - from_first));
    return out;
}

}  // namespace

int64_t takeable(const Taking& taking) {
    return allowed(taking).count();
}

CpuBits take(const Taking& taking, int64_t count) {
    const CpuBits pool = allowed(taking);
    if (pool.count() < count) return {};
    const CpuBits alone = lonely(taking, pool);
    CpuBits out = take_in_order(taking, alone.count() < count ? pool : alone, count);
    return out.count() == count ? out : CpuBits();
}

}  // namespace berth::sched::plugins
