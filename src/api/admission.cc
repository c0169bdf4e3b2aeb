#include "api/admission.h"

#include <fmt/format.h>

#include <array>

#include "api/admission_steps.h"
#include "api/meta.h"

namespace berth::api {
namespace {

Status check_object_metadata(Admission& entry) {
    model::Causes found;
    if (entry.before == nullptr) check_name(*entry.call.kind, entry.after, found);
    check_metadata(entry.after, found);
    auto causes = found.take();
    if (causes.empty()) return {};
    return invalid_entry(entry, std::move(causes));
}

// The order matters: what adds comes before what checks.
constexpr std::array kSteps{
    &guard_node,
    &guard_allocations,
    &admit_namespace,
    &admit_pod,
    &admit_share_gate,
    &admit_priority,
    &admit_template_priority,
    &admit_reservation,
    &admit_service,
    &admit_claim,
    &admit_machine,
    &admit_job,
    &check_object_metadata,
    &check_rules,
    &check_pod,
    &check_priority_class,
    &check_reservation,
    &check_consumer,
    &check_node,
    &tell_effects,
};

}  // namespace

bool is_kind(const Admission& entry, std::string_view group, std::string_view plural) {
    return entry.call.stored().group == group && entry.call.kind->plural == plural;
}

bool is_reservation(const Admission& entry) {
    return is_kind(entry, "scheduling.koordinator.sh", "reservations");
}

bool brings_status(const Admission& entry) {
    return entry.call.who.in(kImporters) && entry.after.as_object().contains("status");
}

Error invalid_entry(const Admission& entry, std::vector<base::Cause> causes) {
    return invalid_object(entry.call.kind->group, entry.call.kind->kind, meta_text(entry.after, "name"),
                          std::move(causes));
}

Error forbidden_entry(const Admission& entry, std::string_view why) {
    return forbidden(
        fmt::format("{} \"{}\" is forbidden: {}", entry.call.resource(), meta_text(entry.after, "name"), why));
}

Status admit(Admission& entry) {
    for (const auto step : kSteps) {
        if (auto passed = step(entry); !passed) return passed;
    }
    return {};
}

}  // namespace berth::api
