#include "model/cpu_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace berth::model {
namespace {

// One that no machine has is the first of those.
std::optional<int32_t> cpu_id(std::string_view text) {
    int32_t id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    const bool vast = error == std::errc::result_out_of_range && !text.starts_with('-');
    if ((error != std::errc() && !vast) || end != text.data() + text.size() || id < 0) return std::nullopt;
    return vast ? kMaxCpuId + 1 : std::min(id, kMaxCpuId + 1);
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

using Range = std::pair<int32_t, int32_t>;

// "5" or "2-4". False: not all of it is a CPU id.
bool read_part(std::string_view part, std::vector<Range>& out) {
    const size_t dash = part.find('-');
    const auto first = cpu_id(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : cpu_id(part.substr(dash + 1));
    if (!first || !last || *last < *first) return false;
    out.emplace_back(*first, std::min(*last, kMaxCpuId));
    return *last <= kMaxCpuId;
}

}  // namespace

// Ranges are joined before there is an id for each: a text that names every CPU ten thousand times costs its length.
CpuIds read_cpu_list(std::string_view text, std::string& fault) {
    std::vector<Range> ranges;
    while (!text.empty()) {
        const size_t comma = text.find(',');
        const std::string_view part = trimmed(text.substr(0, comma));
        if (!read_part(part, ranges) && fault.empty()) {
            fault = fmt::format("\"{}\" is neither a CPU id nor a range of them", part);
        }
        text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    }
    std::sort(ranges.begin(), ranges.end());
    CpuIds out;
    int32_t next = 0;
    for (const auto& [first, last] : ranges) {
        for (next = std::max(next, first); next <= last; ++next) out.push_back(next);
    }
    return out;
}

std::string cpu_list_text(const CpuIds& cpus) {
    std::string out;
    for (size_t i = 0; i < cpus.size();) {
        size_t j = i;
        while (j + 1 < cpus.size() && cpus[j + 1] == cpus[j] + 1) ++j;
        if (!out.empty()) out += ",";
        out += i == j ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[j]);
        i = j + 1;
    }
    return out;
}

}  // namespace berth::model
