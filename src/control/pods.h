#pragma once

#include <vector>

#include "control/objects.h"

// What several controllers ask about pods.
namespace berth::control {

bool is_ready(const Object& pod);
// Since when; nullopt: it is not.
std::optional<base::Time> ready_since(const Object& pod);
bool is_terminal(const Object& pod);
inline bool is_deleting(const Object& object) {
    return object.meta.deleted.has_value();
}
// Counts towards its controller: neither ended nor on its way out.
inline bool is_active(const Object& pod) {
    return !is_terminal(pod) && !is_deleting(pod);
}

// A pod from a template, owned and controlled by `owner`.
Json pod_from_template(const Json& pod_template, const Object& owner, std::string_view owner_kind,
                       std::string_view owner_version);
JsonObject controller_reference(const Object& owner, std::string_view kind, std::string_view version);

// Those to delete first: not bound, not ready, then the newest.
void sort_for_deletion(std::vector<ObjectPtr>& pods);

// The condition that ended a Job, "Complete" or "Failed"; empty while it goes on.
std::string_view end_of_job(const Object& job);
// Whether an object's status has these values already. What is absent has no value: null, 0 or empty.
bool says(const Object& object, const JsonObject& status);

int64_t integer_at(const Json& document, std::initializer_list<std::string_view> path, int64_t otherwise);
// An IntOrString of `total`: "25%" rounded up or down, or a plain number.
int64_t scaled(const Json* value, int64_t total, bool round_up, int64_t otherwise);

}  // namespace berth::control
