#include "sched/plugins/numa_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/int128.h"
#include "base/saturating.h"

namespace berth::sched::plugins {
namespace {

using ledger::CpuBits;
using Places = std::vector<size_t>;  // of the layout's NUMA nodes, rising

constexpr int64_t kMilli = 1000;
constexpr int64_t kHundred = 100;

int64_t free_on(const Taking& taking, const ledger::Charges& charges, size_t place, ResourceId id) {
    const auto& numa = taking.node.numa[place];
    int64_t free = base::saturating_subtract(numa.total.get(id), numa.used.get(id));
    for (const auto& charge : charges) {
        free = base::saturating_add(free, taking.node.remaining(charge.reservation, place, id));
    }
    return free;
}

// What is asked for and counted by NUMA node.
std::vector<std::pair<ResourceId, int64_t>> wants_of(const PlaceAsk& ask) {
    std::vector<std::pair<ResourceId, int64_t>> out;
    ask.spec.requests.for_each([&](ResourceId id, int64_t amount) {
        const auto& all = ask.taking.node.numa;
        const bool counted = std::any_of(all.begin(), all.end(), [&](const auto& n) { return n.total.has(id); });
        if (amount > 0 && counted) out.emplace_back(id, amount);
    });
    return out;
}

// Every place gets the same, in whole units, as long as it has that much; the first ones get what is left over.
std::vector<int64_t> split(int64_t amount, int64_t unit, const std::vector<int64_t>& free) {
    std::vector<int64_t> out(free.size());
    while (amount > 0) {
        std::vector<size_t> open;
        for (size_t i = 0; i < free.size(); ++i) {
            if (out[i] + unit <= free[i]) open.push_back(i);
        }
        if (open.empty()) break;
        const int64_t share = std::max(unit, amount / static_cast<int64_t>(open.size()) / unit * unit);
        for (const size_t i : open) {
            const int64_t part = std::min({share, amount, (free[i] - out[i]) / unit * unit});
            out[i] += part;
            amount -= part;
        }
        if (amount > 0 && amount < unit) break;
    }
    if (amount > 0) out.clear();
    return out;
}

Taking on_place(const Taking& taking, size_t place) {
    Taking out = taking;
    out.first.keep(taking.node.layout->numas[place].cpus);
    out.pool.keep(taking.node.layout->numas[place].cpus);
    return out;
}

// What each NUMA node could give: of all sets of them it is asked for, so it is worked out once.
std::vector<int64_t> takeable_on_each(const PlaceAsk& ask) {
    std::vector<int64_t> out(ask.taking.node.numa.size());
    for (size_t place = 0; ask.cpus > 0 && place < out.size(); ++place) {
        out[place] = takeable(on_place(ask.taking, place));
    }
    return out;
}

// How many CPUs from which of these places. False: they are not there.
bool share_cpus(const PlaceAsk& ask, const Places& places, const std::vector<int64_t>& takeable,
                model::CoreRecord& record) {
    const bool whole = ask.taking.required && ask.taking.binding == model::CpuBinding::FullPCPUs;
    std::vector<int64_t> free;
    for (const size_t place : places) free.push_back(takeable[place]);
    const auto parts = split(ask.cpus, whole ? ask.taking.node.layout->threads : 1, free);
    for (size_t i = 0; i < parts.size(); ++i) {
        record.numa[i].amount.erase(model::kCpu);
        if (parts[i] > 0) record.numa[i].amount.set(model::kCpu, parts[i] * kMilli);
    }
    return !parts.empty();
}

// All of it on these places, of each something; none: it is not there. Which CPUs it is remains to be chosen.
std::optional<model::CoreRecord> amounts_on(const PlaceAsk& ask, const Places& places,
                                            const std::vector<int64_t>& takeable) {
    model::CoreRecord out;
    for (const size_t place : places) out.numa.push_back({ask.taking.node.layout->numas[place].id, {}});
    for (const auto& [id, amount] : wants_of(ask)) {
        std::vector<int64_t> free;
        for (const size_t place : places) free.push_back(free_on(ask.taking, ask.charges, place, id));
        if (std::any_of(free.begin(), free.end(), [](int64_t here) { return here <= 0; })) return std::nullopt;
        const auto parts = split(amount, 1, free);
        if (parts.empty()) return std::nullopt;
        for (size_t i = 0; i < parts.size(); ++i) out.numa[i].amount.set(id, parts[i]);
    }
    if (ask.cpus > 0 && !share_cpus(ask, places, takeable, out)) return std::nullopt;
    std::erase_if(out.numa, [](const auto& numa) { return numa.amount.empty(); });
    return out;
}

// False: together they are not as many after all.
bool choose_cpus(const PlaceAsk& ask, const Places& places, model::CoreRecord& record) {
    if (ask.cpus == 0) return true;
    CpuBits taken;
    for (const size_t place : places) {
        const auto id = ask.taking.node.layout->numas[place].id;
        const auto part =
            std::find_if(record.numa.begin(), record.numa.end(), [&](const auto& n) { return n.node == id; });
        const int64_t count = part == record.numa.end() ? 0 : part->amount.get(model::kCpu) / kMilli;
        if (count > 0) taken.add(take(on_place(ask.taking, place), count));
    }
    record.cpus = taken.ids();
    return static_cast<int64_t>(record.cpus.size()) == ask.cpus;
}

// As few as would do on an empty machine.
size_t fewest(const PlaceAsk& ask) {
    size_t most = 1;
    for (const auto& [id, amount] : wants_of(ask)) {
        std::vector<int64_t> totals;
        for (const auto& numa : ask.taking.node.numa) totals.push_back(numa.total.get(id));
        std::sort(totals.rbegin(), totals.rend());
        int64_t sum = 0;
        size_t needed = 0;
        while (needed < totals.size() && sum < amount) sum = base::saturating_add(sum, totals[needed++]);
        most = std::max(most, needed);
    }
    return most;
}

std::vector<Places> sets_of(size_t numas) {
    std::vector<Places> out;
    const auto add = [&](uint32_t mask) {
        Places places;
        for (size_t i = 0; i < numas; ++i) {
            if ((mask >> i & 1u) != 0) places.push_back(i);
        }
        out.push_back(std::move(places));
    };
    if (numas <= kMostNumas) {
        for (uint32_t mask = 1; mask < 1u << numas; ++mask) add(mask);
        return out;
    }
    Places all;
    for (size_t i = 0; i < numas; ++i) {
        out.push_back({i});
        all.push_back(i);
    }
    out.push_back(std::move(all));
    return out;
}

// A pod that names a policy does not go where others span several nodes, nor beside those who are alone on one.
bool keeps_apart(const PlaceAsk& ask, const Places& places) {
    if (ask.spec.cores.numa == model::NumaPolicy::None || ask.spec.cores.shares_numa) return true;
    return std::none_of(places.begin(), places.end(), [&](size_t place) {
        const auto& numa = ask.taking.node.numa[place];
        return places.size() == 1 ? numa.shared : numa.single;
    });
}

struct Rank {
    bool other;  // than preferred
    size_t nodes;
    int64_t own;    // negated
    int64_t score;  // negated
    Places places;
    auto operator<=>(const Rank&) const = default;
};

Rank rank_of(const PlaceAsk& ask, const Places& places, const model::CoreRecord& record, size_t least) {
    int64_t own = 0;
    for (const size_t place : places) {
        for (const auto& charge : ask.charges) {
            own += ask.taking.node.remaining(charge.reservation, place, model::kCpu);
        }
    }
    const int64_t points = points_of(record, ask.taking.node);
    return {places.size() != least, places.size(), -own, ask.taking.node.rules.most ? points : -points, places};
}

}  // namespace

// CPUs are chosen for the best set alone, and for the next where that comes to nothing: to choose them is most of the
// work.
std::optional<model::CoreRecord> best_places(const PlaceAsk& ask) {
    const size_t least = fewest(ask);
    const auto takeable = takeable_on_each(ask);
    std::vector<std::pair<Rank, model::CoreRecord>> fitting;
    for (const Places& places : sets_of(ask.taking.node.numa.size())) {
        if (ask.policy == model::NumaPolicy::SingleNUMANode && places.size() > 1) continue;
        if (ask.policy == model::NumaPolicy::Restricted && places.size() != least) continue;
        if (!keeps_apart(ask, places)) continue;
        auto record = amounts_on(ask, places, takeable);
        if (!record) continue;
        Rank rank = rank_of(ask, places, *record, least);
        fitting.emplace_back(std::move(rank), *std::move(record));
    }
    std::sort(fitting.begin(), fitting.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [rank, record] : fitting) {
        if (choose_cpus(ask, rank.places, record)) return std::move(record);
    }
    return std::nullopt;
}

int64_t points_of(const model::CoreRecord& record, const ledger::NodeCores& cores) {
    int64_t sum = 0;
    int64_t count = 0;
    for (size_t i = 0; i < cores.numa.size(); ++i) {
        const auto mine = std::find_if(record.numa.begin(), record.numa.end(),
                                       [&](const auto& numa) { return numa.node == cores.layout->numas[i].id; });
        if (mine == record.numa.end()) continue;
        for (const auto id : {model::kCpu, model::kMemory}) {
            const int64_t total = cores.numa[i].total.get(id);
            if (total <= 0) continue;
            const int64_t left = std::max<int64_t>(0, total - cores.numa[i].used.get(id) - mine->amount.get(id));
            sum += static_cast<int64_t>(static_cast<int128>(left) * kHundred / total);
            ++count;
        }
    }
    return count == 0 ? 0 : sum / count;
}

std::string lacks_on_numa(int32_t node, const model::Resources& amount, const Taking& taking,
                          const ledger::Charges& charges) {
    const auto& numas = taking.node.layout->numas;
    const auto found = std::find_if(numas.begin(), numas.end(), [&](const auto& numa) { return numa.id == node; });
    if (found == numas.end()) return fmt::format("NUMA node {} is not there", node);
    const auto place = static_cast<size_t>(found - numas.begin());
    std::string why;
    amount.for_each([&](ResourceId id, int64_t asked) {
        if (!why.empty() || !taking.node.numa[place].total.has(id)) return;
        if (asked <= free_on(taking, charges, place, id)) return;
        why = fmt::format("NUMA node {} has too little {}", node, model::resource_name(id));
    });
    return why;
}

}  // namespace berth::sched::plugins
