#include "model/reservation_status.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "model/allocated.h"
#include "model/times.h"

namespace berth::model {
namespace {

constexpr std::string_view kOwnerBound = "OwnerBound";
constexpr std::string_view kOwnerBoundText = "an owner has been bound";

Json time_or_null(const std::optional<base::Time>& time) {
    return time ? Json(time_text(*time)) : Json(nullptr);
}

Json condition_document(const ReservationCondition& condition) {
    return JsonObject{{"type", condition.type},
                      {"status", condition.status},
                      {"reason", condition.reason},
                      {"message", condition.message},
                      {"lastProbeTime", time_or_null(condition.probed)},
                      {"lastTransitionTime", time_or_null(condition.changed)}};
}

}  // namespace

Json status_document(const ReservationStatus& status) {
    JsonObject out{{"phase", name_of(status.phase)}};
    if (!status.node.empty()) out["nodeName"] = status.node;
    if (!status.allocatable.empty()) out["allocatable"] = amounts_document(status.allocatable);
    if (!status.allocated.empty()) out["allocated"] = amounts_document(status.allocated);
    JsonArray owners;
    for (const PodRef& owner : status.current_owners) {
        owners.push_back(JsonObject{{"namespace", owner.ns}, {"name", owner.name}, {"uid", owner.uid}});
    }
    if (!owners.empty()) out["currentOwners"] = std::move(owners);
    JsonArray conditions;
    for (const auto& condition : status.conditions) conditions.push_back(condition_document(condition));
    if (!conditions.empty()) out["conditions"] = std::move(conditions);
    write_which(status.which, out);
    return out;
}

const ReservationCondition* find_condition(const ReservationStatus& status, std::string_view type) {
    const auto found = std::find_if(status.conditions.begin(), status.conditions.end(),
                                    [&](const auto& condition) { return condition.type == type; });
    return found == status.conditions.end() ? nullptr : &*found;
}

void set_condition(ReservationStatus& status, std::string_view type, bool holds, std::string_view reason,
                   std::string message, base::Time now) {
    auto found = std::find_if(status.conditions.begin(), status.conditions.end(),
                              [&](const auto& condition) { return condition.type == type; });
    if (found == status.conditions.end()) {
        status.conditions.push_back({std::string(type), "", "", "", std::nullopt, std::nullopt});
        found = status.conditions.end() - 1;
    }
    const std::string_view value = holds ? "True" : "False";
    if (found->status == value && found->reason == reason && found->message == message) return;
    if (found->status != value) found->changed = now;
    found->status = value;
    found->reason = reason;
    found->message = std::move(message);
    found->probed = now;
}

ReservationStatus unschedulable(ReservationStatus from, std::string message, base::Time now) {
    from.phase = ReservationPhase::Pending;
    set_condition(from, "Scheduled", false, "Unschedulable", std::move(message), now);
    return from;
}

ReservationStatus placed(ReservationStatus from, std::string_view node, const Resources& reserved, base::Time now) {
    from.node = node;
    from.allocatable = reserved;
    from.allocatable.erase(kPods);
    set_condition(from, "Scheduled", true, "Scheduled", fmt::format("reserved on node {}", node), now);
    return available(std::move(from), now);
}

ReservationStatus placed_waiting(ReservationStatus from, std::string_view node, const Resources& reserved,
                                 const Resources& missing, base::Time now) {
    from.node = node;
    from.allocatable = reserved;
    from.allocatable.erase(kPods);
    from.phase = ReservationPhase::Waiting;
    set_condition(from, "Scheduled", true, "Scheduled", fmt::format("pre-allocated on node {}", node), now);
    set_condition(from, "Ready", false, "Waiting",
                  fmt::format("waits for {} on node {}", missing.empty() ? "others to go" : missing.text(), node), now);
    return from;
}

ReservationStatus available(ReservationStatus from, base::Time now) {
    from.phase = ReservationPhase::Available;
    set_condition(from, "Ready", true, "Available", "", now);
    return from;
}

ReservationStatus succeeded(ReservationStatus from, base::Time now) {
    from.phase = ReservationPhase::Succeeded;
    set_condition(from, "Ready", false, "Succeeded", std::string(kOwnerBoundText), now);
    return from;
}

ReservationStatus ended_by_bind(ReservationStatus from, base::Time now) {
    from.phase = ReservationPhase::Succeeded;
    set_condition(from, "Ready", false, kOwnerBound, std::string(kOwnerBoundText), now);
    return from;
}

bool is_unseen(const ReservationStatus& status) {
    const auto* ready = find_condition(status, "Ready");
    return status.phase == ReservationPhase::Succeeded && ready && ready->reason == kOwnerBound;
}

ReservationStatus expired(ReservationStatus from, std::string message, base::Time now) {
    from.phase = ReservationPhase::Failed;
    set_condition(from, "Ready", false, "Expired", std::move(message), now);
    return from;
}

}  // namespace berth::model
