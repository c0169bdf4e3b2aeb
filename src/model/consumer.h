#pragma once

#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"
#include "model/meta.h"
#include "model/resources.h"

namespace berth::model {

// kuabe-arbitrator.incubator.k8s.io/v1 Consumer: what a namespace, or an area of several, is guaranteed and may use.

inline constexpr std::string_view kSharesGroup = "kuabe-arbitrator.incubator.k8s.io";
inline constexpr std::string_view kShareGate = "berth.dev/share";
inline constexpr std::string_view kReclaimable = "berth.dev/reclaimable";

// Amounts, some of them as a part of what the parent has ("40%").
struct Portion {
    Resources amounts;
    Resources percents;  // in thousandths of a percent

    bool empty() const { return amounts.empty() && percents.empty(); }
    // With `whole` for 100 percent. E.g. 40% of 9 cores is 3600m; below a unit is cut off.
    Resources of(const Resources& whole) const;
    bool operator==(const Portion&) const = default;
};

struct Consumer {
    Meta meta;
    Portion hard;
    Portion reserved;
    int64_t weight = 1;
    std::string parent;
    Resources lending_limit;
    Resources borrowing_limit;
    Resources request;  // asked for, whatever its pods say
    std::optional<base::Duration> grace;
    bool reclaimable = true;
};

Result<Consumer> read_consumer(JsonView object);

}  // namespace berth::model
