// Replays of the Alibaba GPU cluster trace v2023 ("openb", Weng et al., USENIX ATC'23): pods that come and never go,
// until they have asked for 130 % of all GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>

#include "base/random.h"
#include "bench/measure.h"
#include "bench/workload.h"
#include "sched/packing.h"

namespace berth::bench {
namespace {

using sched::GpuDemand;
using sched::GpuMix;
using sched::GpuRoom;
using sched::Packing;

struct Trace {
    std::vector<GpuRoom> nodes;      // by name
    std::vector<GpuDemand> demands;  // by the pod's name
    std::map<std::string, uint64_t, std::less<>> models;
};

using Fields = std::vector<std::string>;

Fields split(const std::string& line) {
    Fields fields(1);
    bool quoted = false;
    for (const char c : line) {
        if (c == '"') {
            quoted = !quoted;
        } else if (c == ',' && !quoted) {
            fields.emplace_back();
        } else if (c != '\r') {
            fields.back() += c;
        }
    }
    return fields;
}

// Of a comma separated file the columns that are named, by the first one. A column whose name ends in "?" may be
// missing.
Result<std::vector<Fields>> read_lines(const std::string& path, const std::vector<std::string>& columns) {
    std::ifstream in(path);
    std::string line;
    if (!in || !std::getline(in, line)) return base::bad_request(fmt::format("{}: cannot be read", path));
    if (line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    const Fields names = split(line);
    std::vector<size_t> places;
    for (std::string name : columns) {
        const bool needed = !name.ends_with('?');
        if (!needed) name.pop_back();
        places.push_back(static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin()));
        if (needed && places.back() == names.size())
            return base::bad_request(fmt::format("{}: has no column \"{}\"", path, name));
        if (places.back() == names.size()) places.back() = SIZE_MAX;
    }
    std::vector<Fields> out;
    while (std::getline(in, line)) {
        const Fields fields = split(line);
        if (fields.size() == 1 && fields.front().empty()) continue;
        if (fields.size() < names.size())
            return base::bad_request(fmt::format("{}: \"{}\" has fewer than {} fields", path, line, names.size()));
        Fields& picked = out.emplace_back();
        for (const size_t place : places) picked.push_back(place < fields.size() ? fields[place] : std::string());
    }
    std::sort(out.begin(), out.end());
    return out;
}

// "4", or "4.0" as some tools write it; empty, since the column is missing: `otherwise`.
Result<int64_t> number(const std::string& text, int64_t most, std::optional<int64_t> otherwise = std::nullopt) {
    if (text.empty() && otherwise) return *otherwise;
    int64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
    const bool whole = rest.empty() || (rest.front() == '.' && rest.find_first_not_of('0', 1) == rest.npos);
    if (fault != std::errc() || !whole || value < 0 || value > most)
        return base::bad_request(fmt::format("\"{}\" is not a number from 0 to {}", text, most));
    return value;
}

constexpr int64_t kMuch = 1'000'000'000;

Result<uint64_t> model_bit(Trace& trace, const std::string& name) {
    const auto [found, added] = trace.models.emplace(name, 1);
    if (trace.models.size() > 64) return base::bad_request("more than 64 models of GPUs");
    if (added) found->second = uint64_t{1} << (trace.models.size() - 1);
    return found->second;
}

// "V100M16|V100M32"; empty: any.
Result<uint64_t> models_of(Trace& trace, const std::string& names) {
    if (names.empty()) return UINT64_MAX;
    uint64_t bits = 0;
    for (size_t begin = 0; begin <= names.size();) {
        const size_t end = std::min(names.find('|', begin), names.size());
        bits |= TRY(model_bit(trace, names.substr(begin, end - begin)));
        begin = end + 1;
    }
    return bits;
}

Result<Trace> read_trace(const std::string& nodes, const std::string& pods) {
    Trace trace;
    for (const Fields& node : TRY(read_lines(nodes, {"sn", "cpu_milli?", "memory_mib?", "gpu", "model?"}))) {
        GpuRoom room{
            TRY(number(node[1], kMuch, kMuch)), TRY(number(node[2], kMuch, kMuch)), TRY(model_bit(trace, node[4])), {}};
        room.free.assign(static_cast<size_t>(TRY(number(node[3], 64))), sched::kWholeGpu);
        if (!room.free.empty()) trace.nodes.push_back(std::move(room));
    }
    for (const Fields& pod :
         TRY(read_lines(pods, {"name?", "cpu_milli?", "memory_mib?", "num_gpu", "gpu_milli?", "gpu_spec?"}))) {
        GpuDemand demand{TRY(number(pod[1], kMuch, 0)), TRY(number(pod[2], kMuch, 0)),
                         static_cast<int32_t>(TRY(number(pod[3], 64, 0))),
                         static_cast<int32_t>(TRY(number(pod[4], sched::kWholeGpu, sched::kWholeGpu))),
                         TRY(models_of(trace, pod[5]))};
        if (demand.count == 0) demand.milli = 0;
        trace.demands.push_back(demand);
    }
    if (trace.nodes.empty() || trace.demands.empty()) return base::bad_request("there are no GPU nodes or no pods");
    return trace;
}

int64_t capacity_of(const Trace& trace) {
    int64_t sum = 0;
    for (const GpuRoom& node : trace.nodes) sum += node.gpu_milli();
    return sum;
}

// The pods in random order, then random ones again, until 130 % of the GPUs are asked for.
Result<std::vector<GpuDemand>> arrivals(const Trace& trace, uint64_t seed) {
    base::Random random(seed);
    std::vector<GpuDemand> out = trace.demands;
    for (size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[random.below(i)]);
    int64_t asked = 0;
    for (const GpuDemand& demand : out) asked += demand.gpu_milli();
    if (asked == 0) return base::bad_request("no pod asks for a GPU");
    while (asked * 10 < capacity_of(trace) * 13) {
        out.push_back(trace.demands[random.below(trace.demands.size())]);
        asked += out.back().gpu_milli();
    }
    return out;
}

// The nodes, and for each kind of demand what every node is worth to it, as long as the node is as it was.
class Replay {
public:
    Replay(const Trace& trace, const GpuMix& mix, Packing packing)
        : mix_(mix), packing_(packing), nodes_(trace.nodes), versions_(nodes_.size(), 1) {}

    // False: it fits nowhere. Of equal nodes the first, which has the smallest name.
    bool place(const GpuDemand& demand) {
        Worth& worth = worth_[demand];
        worth.points.resize(nodes_.size());
        worth.versions.resize(nodes_.size());
        for (size_t i = 0; i < nodes_.size(); ++i) {
            if (worth.versions[i] == versions_[i]) continue;
            worth.versions[i] = versions_[i];
            worth.points[i] = fits(nodes_[i], demand) ? packed(packing_, mix_, nodes_[i], demand).points : kNowhere;
        }
        const auto best = std::max_element(worth.points.begin(), worth.points.end());
        if (*best == kNowhere) return false;
        const auto chosen = static_cast<size_t>(best - worth.points.begin());
        take(nodes_[chosen], demand, packed(packing_, mix_, nodes_[chosen], demand).gpus);
        ++versions_[chosen];
        return true;
    }

private:
    static constexpr int64_t kNowhere = INT64_MIN;
    struct Worth {
        std::vector<int64_t> points;
        std::vector<uint32_t> versions;
    };
    const GpuMix& mix_;
    Packing packing_;
    std::vector<GpuRoom> nodes_;
    std::vector<uint32_t> versions_;
    std::map<GpuDemand, Worth> worth_;
};

// "42-51", or one.
Result<std::pair<uint64_t, uint64_t>> seeds_of(const std::string& text) {
    const auto dash = text.find('-');
    const auto first = static_cast<uint64_t>(TRY(number(text.substr(0, dash), kMuch)));
    if (dash == std::string::npos) return std::pair(first, first);
    const auto last = static_cast<uint64_t>(TRY(number(text.substr(dash + 1), kMuch)));
    if (last < first) return base::bad_request(fmt::format("--seeds {}: the last is before the first", text));
    return std::pair(first, last);
}

JsonObject summary(const std::vector<double>& allocations) {
    const auto count = static_cast<double>(allocations.size());
    double mean = 0, square = 0;
    for (const double one : allocations) mean += one / count;
    for (const double one : allocations) square += (one - mean) * (one - mean) / count;
    const auto [low, high] = std::minmax_element(allocations.begin(), allocations.end());
    JsonArray each;
    for (const double one : allocations) each.emplace_back(rounded(one));
    return {{"gpu_allocation_percent", rounded(mean)},
            {"spread", rounded(std::sqrt(square))},
            {"min", rounded(*low)},
            {"max", rounded(*high)},
            {"each", std::move(each)}};
}

Result<JsonObject> openb(const BenchOptions& options) {
    if (options.trace.empty() || options.nodes_file.empty())
        return base::bad_request("needs --trace FILE (pods) and --nodes-file FILE (nodes), as openb has them");
    const auto packing = sched::packing_named(options.scorer.empty() ? "Stranding" : options.scorer);
    if (!packing)
        return base::bad_request(fmt::format("--scorer \"{}\" is none of BestFit, FGD, Stranding", options.scorer));
    const Trace trace = TRY(read_trace(options.nodes_file, options.trace));
    const auto [first, last] = TRY(seeds_of(options.seeds.empty() ? "42-51" : options.seeds));
    const GpuMix mix(trace.demands);
    Latencies latencies;
    std::vector<double> allocations;
    base::Duration measured{};
    for (uint64_t seed = first; seed <= last; ++seed) {
        const auto demands = TRY(arrivals(trace, seed));
        Replay replay(trace, mix, *packing);
        int64_t given = 0;
        const Stopwatch watch;
        for (const GpuDemand& demand : demands) {
            const auto before = base::system_clock().now();
            if (replay.place(demand)) given += demand.gpu_milli();
            latencies.add(base::system_clock().now() - before);
        }
        measured += watch.wall();
        allocations.push_back(100.0 * static_cast<double>(given) / static_cast<double>(capacity_of(trace)));
    }
    JsonObject out = summary(allocations);
    out["scorer"] = options.scorer.empty() ? "Stranding" : options.scorer;
    out["seeds"] = fmt::format("{}-{}", first, last);
    out["nodes"] = trace.nodes.size();
    out["gpus"] = capacity_of(trace) / sched::kWholeGpu;
    out["decisions"] = latencies.count();
    const auto seconds = std::chrono::duration<double>(measured).count();
    out["decisions_per_s"] = rounded(static_cast<double>(latencies.count()) / seconds);
    out["p50_us"] = rounded(latencies.percentile(50));
    out["p99_us"] = rounded(latencies.percentile(99));
    return out;
}

constexpr std::array kWorkloads{
    Workload{"OpenB", "GPUs given of a trace's nodes (--trace, --nodes-file, --scorer, --seeds) at 130 % of demand",
             openb},
};

}  // namespace

std::span<const Workload> openb_workloads() {
    return kWorkloads;
}

}  // namespace berth::bench
