#pragma once

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

// Which node, and which of its GPUs, a demand should take so that what is left is of use to those who come later.
namespace berth::sched {

inline constexpr int32_t kWholeGpu = 1000;  // thousandths

// `count` GPUs of which `milli` thousandths are wanted, each.
struct GpuDemand {
    int64_t cpu_milli = 0;
    int64_t memory = 0;
    int32_t count = 0;  // 0: none, only cpu and memory
    int32_t milli = 0;
    uint64_t models = UINT64_MAX;  // one bit a model that will do
    auto operator<=>(const GpuDemand&) const = default;
    int64_t gpu_milli() const { return int64_t{count} * milli; }
};

// What of a node is free.
struct GpuRoom {
    int64_t cpu_milli = 0;
    int64_t memory = 0;
    uint64_t model = 1;                    // its bit
    absl::InlinedVector<int32_t, 8> free;  // thousandths of each GPU
    int64_t gpu_milli() const;
};

using GpuChoice = absl::InlinedVector<uint32_t, 8>;  // places in GpuRoom::free

bool fits(const GpuRoom& room, const GpuDemand& demand);
// Takes it; it fits.
void take(GpuRoom& room, const GpuDemand& demand, const GpuChoice& gpus);

// What is asked for on the whole: the demands that make up 95 % of all, the most frequent first, all cpu and GPUs, and
// what shares make of a GPU.
class GpuMix {
public:
    explicit GpuMix(std::vector<GpuDemand> demands);

    struct Part {
        GpuDemand demand;
        int64_t count = 0;
    };
    const std::vector<Part>& parts() const { return parts_; }
    int64_t count() const { return count_; }  // of all parts
    int64_t cpu_milli() const { return cpu_milli_; }
    int64_t gpu_milli() const { return gpu_milli_; }
    // How much of what is free on one GPU the next shares will take, in thousandths of a thousandth: the mean over all
    // sequences of kSharesAhead of the mix's shares, each taken if it fits. Without shares nothing.
    // E.g. shares of 400 alone: of 0 to 399 nothing, of 400 to 799 400'000, of 800 to 1000 800'000.
    int64_t filled(int32_t free) const { return filled_[static_cast<size_t>(std::clamp(free, 0, kWholeGpu))]; }

private:
    void look_ahead(const std::map<int32_t, int64_t>& shares);

    std::vector<Part> parts_;
    int64_t count_ = 0;
    int64_t cpu_milli_ = 0;
    int64_t gpu_milli_ = 0;
    std::vector<int64_t> filled_;
};

// BestFit: where the least is left, half by cpu (of 128) and half by GPUs (of 8), in whole percents.
// FGD: where the fragments grow least (Weng et al., "Beware of Fragmentation", USENIX ATC'23): of what is free on a
//   node's GPUs, what a part of the mix cannot use, averaged over the mix. In percents of a sigmoid, as published.
// Stranding: where what later shares will take (GpuMix::filled) shrinks least, less what is of no use at all to a part
//   of the mix that no longer fits, averaged over the mix, and what is stranded. A GPU is stranded when the node's cpu,
//   handed out at the mix's own rate, does not reach for it, long before no cpu is left. E.g. the mix asks for 14 cpu a
//   GPU, and a node has 24 cpu and 3 GPUs free: with a margin of 15 % the cpu is enough for 2.02 GPUs, so 0.98 are
//   stranded.
enum class Packing : uint8_t { BestFit, FGD, Stranding };
std::optional<Packing> packing_named(std::string_view name);

struct GpuPlacing {
    int64_t points = 0;  // more is better; equal ones are for the caller to choose from
    GpuChoice gpus;
};
// Of a demand that fits.
GpuPlacing packed(Packing packing, const GpuMix& mix, const GpuRoom& room, const GpuDemand& demand);

}  // namespace berth::sched
