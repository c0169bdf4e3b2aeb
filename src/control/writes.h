#pragma once

#include <string>
#include <vector>

#include "model/reservation.h"

namespace berth::control {

// The object a write is about, as it was when it was decided: when it has moved on, the write fails and is decided
// anew, never repeated.
struct Target {
    std::string kind;
    std::string name;
    std::string uid;
    uint64_t revision = 0;
};

struct StatusWrite {
    Target target;
    model::ReservationStatus status;  // the whole new one; status_document() gives its JSON
};

struct AnnotationWrite {
    Target target;
    std::string key;
    std::string value;  // empty: the annotation is removed
};

// A condition of the object's status: True with a message, or False when the message is empty.
struct ConditionWrite {
    Target target;
    std::string type;
    std::string reason;
    std::string message;
};

struct Event {
    std::string kind;
    std::string ns;
    std::string name;
    std::string uid;
    bool warning = false;
    std::string reason;
    std::string message;
    bool operator==(const Event&) const = default;
};

// What a reconciler wants done.
struct Writes {
    std::vector<StatusWrite> statuses;
    std::vector<AnnotationWrite> annotations;
    std::vector<ConditionWrite> conditions;
    std::vector<Target> deletions;
    std::vector<Event> events;
};

}  // namespace berth::control
