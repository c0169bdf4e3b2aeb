#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/meta.h"

namespace berth::model {

struct ReservationStatus;

// What people are told about an object.
struct Event {
    std::string api_version = "v1";
    std::string kind;
    std::string ns;
    std::string name;
    std::string uid;
    bool warning = false;
    std::string reason;
    std::string message;
    bool operator==(const Event&) const = default;
};

// One write as a value: what shall be written, on which condition, and what people hear when it was. Whoever decided it
// learns what came of it by the next events.
struct Write {
    enum class Verb : uint8_t { Create, Replace, MergePatch, StrategicPatch, JsonPatch, Delete };
    Verb verb = Verb::Create;
    std::string resource;  // "pods", "apps/replicasets"
    std::string version = "v1";
    std::string ns;
    std::string name;         // empty for Create
    std::string subresource;  // "status", "finalize"
    Json body;                // the object, the patch or the DeleteOptions; the conditions below are not in it
    std::string text = {};    // an object as text, for those that are made for every pod; where empty, `body` counts
    // What it was decided about: another object of that name, or (where it is not 0) another revision of it, refuses
    // the write. Then it is decided anew, never repeated.
    std::string uid = {};
    uint64_t revision = 0;
    std::optional<Event> event = {};  // told when it was written
};

using Writes = std::vector<Write>;

inline constexpr const char* kReservationResource = "scheduling.koordinator.sh/reservations";
// The version of its group in which a resource is read and written here, by the table of kinds.
std::string version_of(std::string_view resource);

Write create_object(std::string resource, std::string ns, Json body);
// Merges into the object, if it is still the same one; with `if_unchanged`, if nobody has written it since.
Write patch_object(std::string resource, const Meta& meta, Json body);
Write patch_status(std::string resource, const Meta& meta, JsonObject status);
Write if_unchanged(Write write, const Meta& meta);
// Deletes exactly this object (not a later one of its name), in the background.
Write delete_object(std::string resource, const Meta& meta);

// The whole status of a Reservation, and of no other revision of it: a merge would leave owners and amounts that are no
// longer there.
Write reservation_status_write(std::string name, std::string uid, uint64_t revision, const ReservationStatus& status);

}  // namespace berth::model
