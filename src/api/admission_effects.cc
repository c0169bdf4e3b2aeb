#include <fmt/format.h>

#include <algorithm>

#include "api/admission_steps.h"
#include "api/meta.h"
#include "model/consumer.h"
#include "model/kinds/effects.h"

namespace berth::api {
namespace {

using model::Effect;

bool contains(const std::vector<model::Remark>& remarks, const model::Remark& wanted) {
    return std::any_of(remarks.begin(), remarks.end(), [&](const auto& remark) { return remark.text == wanted.text; });
}

// Of a kind that nobody acts on every write is told; of members those that were not so before.
std::vector<model::Remark> new_remarks(const Admission& entry, const model::KindEffect& about) {
    const model::Kind& kind = entry.call.stored();
    auto out = model::remarks_on(entry.after, kind);
    if (entry.before == nullptr || out.empty() || about.effect != Effect::Acted) return out;
    const auto old = model::remarks_on(*entry.before, kind);
    std::erase_if(out, [&](const auto& remark) { return contains(old, remark); });
    return out;
}

void tell_of_absent(const Admission& entry, const model::KindEffect& about) {
    const auto& absent = entry.context.here.absent;
    for (const auto& actor : about.actors) {
        if (std::find(absent.begin(), absent.end(), actor) == absent.end()) continue;
        entry.warnings.push_back(fmt::format("{}: the controller {} was left out", entry.call.resource(), actor));
    }
}

}  // namespace

Status tell_effects(Admission& entry) {
    const Surroundings& here = entry.context.here;
    const bool heard = entry.call.remote;
    if ((!heard && !here.strict_policies) || !entry.call.subresource.empty() || is_deleting(entry.after)) return {};
    const model::KindEffect* about = model::effect_of(entry.call.stored());
    if (about == nullptr) return {};
    if (here.shares && entry.call.stored().group == model::kSharesGroup) {
        if (heard && entry.call.stored().kind == "Allocation")
            entry.warnings.emplace_back(
                "allocations are published by the arbitrator, which replaces what others write");
        return {};
    }
    for (auto& remark : new_remarks(entry, *about)) {
        if (remark.effect == Effect::Policy && here.strict_policies) {
            return forbidden_entry(entry,
                                   fmt::format("--strict-policies refuses what would only be stored: {}", remark.text));
        }
        // At a server alone, who will act is not known.
        if (heard && (remark.effect != Effect::Idle || here.simulated))
            entry.warnings.push_back(std::move(remark.text));
    }
    if (heard && here.simulated) tell_of_absent(entry, *about);
    return {};
}

}  // namespace berth::api
