#include "fleet/best_effort.h"

namespace berth::fleet {
namespace {

Amounts one_of(const std::string& machine_class) {
    return {{"class/machine." + machine_class, Quantity::from_value(1)}};
}

// A class without a number may be had as often as one likes: its runtime does not say.
Amounts places(const std::vector<model::IriClassStatus>& classes) {
    Amounts out;
    for (const auto& each : classes) {
        if (each.quantity > 0) out.emplace("class/machine." + each.name, Quantity::from_value(each.quantity));
    }
    return out;
}

}  // namespace

BestEffort::BestEffort(const std::vector<model::IriClassStatus>& classes, Instant now)
    : table_(places(classes), HoldTimes{}) {
    table_.pass_time(now);
}

void BestEffort::resize(const std::vector<model::IriClassStatus>& classes, Instant now) {
    auto all = places(classes);
    if (all != table_.capacity()) (void)table_.resize(std::move(all), now);
}

HoldAnswer BestEffort::hold(const HoldAsk& ask, bool commits, Instant now) {
    const Amounts one = one_of(ask.machine_class);
    HoldAnswer out{HoldState::Accepted, HoldReason::BestEffort, 0, std::nullopt, commits};
    if (!table_.capacity().contains(one.begin()->first)) return out;
    HoldAsk counted = ask;
    counted.resources = one;
    out = table_.reserve(counted, now);
    if (out.state == HoldState::Accepted) {
        const auto renewed = commits ? table_.confirm(ask.lineage, ask.attempt, now) : table_.renew(ask.lineage, now);
        if (renewed) out = *renewed;
        out.reason = HoldReason::BestEffort;
    }
    return out;
}

void BestEffort::place(const std::string& lineage, uint64_t attempt, const std::string& machine_class, Instant now) {
    // What is there is there, whether we think that it fits or not.
    (void)table_.place({lineage, attempt, one_of(machine_class)}, now);
}

}  // namespace berth::fleet
