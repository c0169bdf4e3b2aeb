#include "node/meter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/int128.h"
#include "node/machine.h"

namespace berth::node {
namespace {

constexpr int64_t kNanos = 1'000'000'000;
constexpr int64_t kNanosPerMicro = 1'000;

std::optional<int64_t> whole(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    int64_t out = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc() || out < 0) return std::nullopt;
    return out;
}

// The number behind a word at the beginning of a line.
std::optional<int64_t> number_of(std::string_view text, std::string_view word) {
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        const auto line = text.substr(0, end);
        if (line.starts_with(word) && line.size() > word.size() && (line[word.size()] == ' ' || word.ends_with(':')))
            return whole(line.substr(word.size()));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return std::nullopt;
}

std::string text_of(const char* path) {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
}

std::optional<int64_t> pod_nanos(Tree& tree, const std::string& group) {
    const auto text = tree.read(group, File::CpuUsage);
    if (!text) return std::nullopt;
    if (!tree.hierarchy().v2) return whole(*text);
    const auto micros = number_of(*text, "usage_usec");
    return micros ? std::optional(*micros * kNanosPerMicro) : std::nullopt;
}

std::optional<int64_t> pod_memory(Tree& tree, const std::string& group) {
    const auto used = tree.read(group, File::MemoryUsage);
    const auto stat = tree.read(group, File::MemoryStat);
    const auto bytes = used ? whole(*used) : std::nullopt;
    if (!bytes) return std::nullopt;
    const auto cache =
        stat ? number_of(*stat, tree.hierarchy().v2 ? "inactive_file" : "total_inactive_file") : std::nullopt;
    return std::max<int64_t>(0, *bytes - cache.value_or(0));
}

// cores / 1000 = nanos x 1000 / elapsed
int64_t milli(int64_t before, int64_t after, int64_t elapsed) {
    const int64_t ran = after >= before ? after - before : after;
    return static_cast<int64_t>(static_cast<int128>(ran) * kMilliPerCore / elapsed);
}

}  // namespace

Result<int64_t> busy_nanos(std::string_view proc_stat, int64_t ticks_per_second) {
    std::istringstream line(std::string(proc_stat.substr(0, proc_stat.find('\n'))));
    std::string word;
    int64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
    line >> word >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
    if (word != "cpu" || !line || ticks_per_second <= 0)
        return base::internal("/proc/stat: its first line is not cpu's");
    return (user + nice + system + irq + softirq) * (kNanos / ticks_per_second);
}

Result<int64_t> used_memory(std::string_view meminfo) {
    const auto total = number_of(meminfo, "MemTotal:");
    const auto available = number_of(meminfo, "MemAvailable:");
    if (!total || !available) return base::internal("/proc/meminfo: no MemTotal or MemAvailable");
    return std::max<int64_t>(0, *total - *available) * 1024;
}

Result<Sample> take_sample(Tree& tree, const std::vector<NodePod>& pods, base::Instant at, const Sample* memory_of) {
    Sample out;
    if (memory_of != nullptr) out.pod_memory = memory_of->pod_memory;
    out.at = at;
    out.node_nanos = TRY(busy_nanos(text_of("/proc/stat"), ::sysconf(_SC_CLK_TCK)));
    out.node_memory = TRY(used_memory(text_of("/proc/meminfo")));
    for (const auto& pod : pods) {
        if (pod.uid.empty()) continue;
        const auto group = pod_group(tree.hierarchy(), pod);
        if (const auto nanos = pod_nanos(tree, group)) out.pod_nanos[pod.uid] = *nanos;
        if (memory_of != nullptr && out.pod_memory.contains(pod.uid)) continue;
        if (const auto memory = pod_memory(tree, group)) out.pod_memory[pod.uid] = *memory;
    }
    return out;
}

Usage usage_between(const Sample& before, const Sample& after, const std::vector<NodePod>& pods) {
    const int64_t elapsed = std::max<int64_t>(1, (after.at - before.at).count());
    Usage out;
    out.node = {milli(before.node_nanos, after.node_nanos, elapsed), after.node_memory};
    for (const auto& pod : pods) {
        const auto old = before.pod_nanos.find(pod.uid);
        const auto now = after.pod_nanos.find(pod.uid);
        const auto memory = after.pod_memory.find(pod.uid);
        if (old == before.pod_nanos.end() || now == after.pod_nanos.end()) continue;
        out.pods[pod.full_name()] = {milli(old->second, now->second, elapsed),
                                     memory == after.pod_memory.end() ? 0 : memory->second};
    }
    return out;
}

}  // namespace berth::node
