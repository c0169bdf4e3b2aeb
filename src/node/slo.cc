#include "node/slo.h"

#include <fmt/format.h>

#include "model/kinds/path.h"

namespace berth::node {
namespace {

constexpr const char* kStrategy = "spec.resourceUsedThresholdWithBE";

Result<std::optional<int64_t>> number_at(const Json& strategy, const char* name, int64_t most) {
    const Json* value = base::find(strategy, {name});
    if (value == nullptr || value->is_null()) return std::optional<int64_t>();
    if (!value->is_int64() || value->get_int64() < 0 || value->get_int64() > most) {
        return base::bad_request(
            fmt::format("{}.{}: {} is not from 0 to {}", kStrategy, name, base::to_text(*value), most));
    }
    return std::optional(value->get_int64());
}

Status take(const Json& strategy, const char* name, int64_t& out, int64_t most = 100) {
    if (const auto given = TRY(number_at(strategy, name, most))) out = *given;
    return {};
}

Status read_policies(const Json& strategy, Slo& out) {
    const auto policy = model::string_at(strategy, ".cpuSuppressPolicy");
    if (!policy.empty() && policy != "cpuset" && policy != "cfsQuota") {
        return base::bad_request(
            fmt::format("{}.cpuSuppressPolicy: \"{}\" is neither cpuset nor cfsQuota", kStrategy, policy));
    }
    out.by_quota = policy == "cfsQuota";
    out.by_allocatable = model::string_at(strategy, ".cpuEvictPolicy") == "evictByAllocatable";
    return {};
}

}  // namespace

Result<Slo> read_slo(const Json& document) {
    Slo out;
    const Json* strategy = base::find(document, {"spec", "resourceUsedThresholdWithBE"});
    if (strategy == nullptr || strategy->is_null()) return out;
    if (!strategy->is_object())
        return base::bad_request(fmt::format("{}: {} is no object", kStrategy, base::to_text(*strategy)));
    if (const Json* enable = base::find(*strategy, {"enable"}); enable != nullptr && enable->is_bool())
        out.enable = enable->get_bool();
    TRY(read_policies(*strategy, out));
    TRY(take(*strategy, "cpuSuppressThresholdPercent", out.cpu_percent));
    TRY(take(*strategy, "cpuSuppressMinPercent", out.cpu_min_percent));
    TRY(take(*strategy, "memoryEvictThresholdPercent", out.memory_evict_percent));
    out.memory_evict_lower_percent = out.memory_evict_percent - 2;
    TRY(take(*strategy, "memoryEvictLowerPercent", out.memory_evict_lower_percent));
    TRY(take(*strategy, "cpuEvictBEUsageThresholdPercent", out.be_usage_percent));
    TRY(take(*strategy, "cpuEvictTimeWindowSeconds", out.window_seconds, INT32_MAX));
    out.satisfaction_lower = TRY(number_at(*strategy, "cpuEvictBESatisfactionLowerPercent", 100));
    out.satisfaction_upper = TRY(number_at(*strategy, "cpuEvictBESatisfactionUpperPercent", 100));
    return out;
}

}  // namespace berth::node
