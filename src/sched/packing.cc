#include "sched/packing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/int128.h"

namespace berth::sched {
namespace {

constexpr int64_t kCommonPercent = 95;  // of all demands, that the mix looks at
constexpr int64_t kMostCpuMilli = 128'000;
constexpr int64_t kMostGpuMilli = 8 * kWholeGpu;
constexpr int64_t kMarginPercent = 85;  // of the mix's cpu for a GPU, that a GPU is said to need
constexpr int64_t kScale = 1000;        // parts of a thousandth
constexpr int kSharesAhead = 20;        // that come by while a gap is open

int32_t gpus_with(const GpuRoom& room, int32_t milli) {
    return static_cast<int32_t>(
        std::count_if(room.free.begin(), room.free.end(), [&](int32_t free) { return free >= milli; }));
}

// Of what is free on the GPUs, what a demand cannot use, in thousandths: all of it when the demand does not fit, else
// that of GPUs with less than it wants.
int64_t useless(const GpuRoom& room, int64_t all, const GpuDemand& demand) {
    if (demand.count == 0 || room.cpu_milli < demand.cpu_milli || !(room.model & demand.models)) return all;
    int64_t small = 0;
    int32_t enough = 0;
    for (const int32_t free : room.free) {
        if (free < demand.milli) {
            small += free;
        } else {
            ++enough;
        }
    }
    return enough < demand.count ? all : small;
}

// The mean over the mix, times mix.count().
int64_t fragments(const GpuMix& mix, const GpuRoom& room) {
    const int64_t all = room.gpu_milli();
    int64_t sum = 0;
    for (const auto& part : mix.parts()) sum += part.count * useless(room, all, part.demand);
    return sum;
}

// All of what is free where a demand does not fit, in thousandths; the mean over the mix, times mix.count().
int64_t shut(const GpuMix& mix, const GpuRoom& room) {
    int64_t times = 0;
    for (const auto& [demand, count] : mix.parts()) {
        const bool fits = demand.count > 0 && room.cpu_milli >= demand.cpu_milli && (room.model & demand.models) != 0 &&
                          gpus_with(room, demand.milli) >= demand.count;
        times += fits ? 0 : count;
    }
    return times * room.gpu_milli();
}

// Parts of a thousandth that later shares will take.
int64_t filled(const GpuMix& mix, const GpuRoom& room) {
    int64_t sum = 0;
    for (const int32_t free : room.free) sum += mix.filled(free);
    return sum;
}

// Parts of a thousandth of the GPUs that the cpu does not reach for.
int64_t stranded(const GpuMix& mix, const GpuRoom& room) {
    if (mix.cpu_milli() <= 0) return 0;
    const int128 reached = static_cast<int128>(std::max<int64_t>(0, room.cpu_milli)) * mix.gpu_milli() *
                           (kScale * 100) / (static_cast<int128>(mix.cpu_milli()) * kMarginPercent);
    const int128 all = static_cast<int128>(room.gpu_milli()) * kScale;
    return static_cast<int64_t>(std::max<int128>(0, all - reached));
}

int64_t best_fit_points(const GpuRoom& room, const GpuDemand& demand) {
    const auto cpu = static_cast<double>(room.cpu_milli - demand.cpu_milli) / kMostCpuMilli;
    const auto gpu = static_cast<double>(room.gpu_milli() - demand.gpu_milli()) / kMostGpuMilli;
    return static_cast<int64_t>((1.0 - (cpu + gpu) / 2) * 100);
}

GpuRoom left_of(const GpuRoom& room, const GpuDemand& demand, const GpuChoice& gpus) {
    GpuRoom left = room;
    take(left, demand, gpus);
    return left;
}

int64_t fragment_points(const GpuMix& mix, const GpuRoom& before, const GpuRoom& after) {
    if (mix.count() == 0) return 0;
    const auto grown = static_cast<double>(fragments(mix, before) - fragments(mix, after));
    return static_cast<int64_t>(100 / (1.0 + std::exp(-grown / static_cast<double>(mix.count()) / kWholeGpu)));
}

int64_t stranding_points(const GpuMix& mix, const GpuRoom& before, const GpuRoom& after) {
    if (mix.count() == 0) return 0;
    return filled(mix, after) - filled(mix, before) + (shut(mix, before) - shut(mix, after)) * kScale / mix.count() +
           stranded(mix, before) - stranded(mix, after);
}

// Those with the least free that is enough, of equal ones the first.
GpuChoice tightest(const GpuRoom& room, const GpuDemand& demand) {
    GpuChoice enough;
    for (uint32_t i = 0; i < room.free.size(); ++i) {
        if (room.free[i] >= demand.milli) enough.push_back(i);
    }
    std::stable_sort(enough.begin(), enough.end(), [&](uint32_t a, uint32_t b) { return room.free[a] < room.free[b]; });
    enough.resize(std::min(enough.size(), static_cast<size_t>(demand.count)));
    return enough;
}

// Calls f(choice) for each GPU that a share may go to, one of those with equally much free; else once.
template <class F>
void each_choice(const GpuRoom& room, const GpuDemand& demand, F f) {
    if (demand.count != 1) return f(tightest(room, demand));
    for (uint32_t i = 0; i < room.free.size(); ++i) {
        const auto begin = room.free.begin();
        const bool seen = std::find(begin, begin + i, room.free[i]) != begin + i;
        if (room.free[i] >= demand.milli && !seen) f(GpuChoice{i});
    }
}

constexpr std::array<std::pair<std::string_view, Packing>, 3> kNames{
    {{"BestFit", Packing::BestFit}, {"FGD", Packing::FGD}, {"Stranding", Packing::Stranding}}};

}  // namespace

int64_t GpuRoom::gpu_milli() const {
    return std::accumulate(free.begin(), free.end(), int64_t{0});
}

bool fits(const GpuRoom& room, const GpuDemand& demand) {
    if (room.cpu_milli < demand.cpu_milli || room.memory < demand.memory) return false;
    return demand.count == 0 || ((room.model & demand.models) != 0 && gpus_with(room, demand.milli) >= demand.count);
}

void take(GpuRoom& room, const GpuDemand& demand, const GpuChoice& gpus) {
    room.cpu_milli -= demand.cpu_milli;
    room.memory -= demand.memory;
    for (const uint32_t gpu : gpus) room.free[gpu] -= demand.milli;
}

GpuMix::GpuMix(std::vector<GpuDemand> demands) {
    std::map<GpuDemand, int64_t> counted;
    std::map<int32_t, int64_t> shares;
    for (GpuDemand& demand : demands) {
        cpu_milli_ += demand.cpu_milli;
        gpu_milli_ += demand.gpu_milli();
        if (demand.count == 1 && demand.milli < kWholeGpu) ++shares[demand.milli];
        demand.memory = 0;
        ++counted[demand];
    }
    for (const auto& [demand, count] : counted) parts_.push_back({demand, count});
    std::stable_sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.count > b.count; });
    const auto most = static_cast<int64_t>(demands.size()) * kCommonPercent;
    size_t kept = 0;
    while (kept < parts_.size() && count_ * 100 < most) count_ += parts_[kept++].count;
    parts_.resize(kept);
    look_ahead(shares);
}

// After n shares, from what n - 1 make of what is left: the mean over the n-th from last.
void GpuMix::look_ahead(const std::map<int32_t, int64_t>& shares) {
    filled_.assign(kWholeGpu + 1, 0);
    int64_t all = 0;
    for (const auto& [milli, count] : shares) all += count;
    for (int n = 0; n < kSharesAhead && all > 0; ++n) {
        // From the largest down, since less reads what more has not written.
        for (int32_t free = kWholeGpu; free >= 0; --free) {
            int128 sum = 0;
            for (const auto& [milli, count] : shares) {
                const int64_t after = milli <= free ? milli * kScale + filled(free - milli) : filled(free);
                sum += static_cast<int128>(count) * after;
            }
            filled_[static_cast<size_t>(free)] = static_cast<int64_t>(sum / all);
        }
    }
}

std::optional<Packing> packing_named(std::string_view name) {
    for (const auto& [known, packing] : kNames) {
        if (known == name) return packing;
    }
    return std::nullopt;
}

GpuPlacing packed(Packing packing, const GpuMix& mix, const GpuRoom& room, const GpuDemand& demand) {
    if (packing == Packing::BestFit) return {best_fit_points(room, demand), tightest(room, demand)};
    GpuPlacing best{INT64_MIN, {}};
    each_choice(room, demand, [&](GpuChoice gpus) {
        const GpuRoom after = left_of(room, demand, gpus);
        const int64_t points =
            packing == Packing::FGD ? fragment_points(mix, room, after) : stranding_points(mix, room, after);
        if (points > best.points) best = {points, std::move(gpus)};
    });
    return best;
}

}  // namespace berth::sched
