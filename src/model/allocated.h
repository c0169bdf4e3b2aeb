#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "model/meta.h"
#include "model/resources.h"

namespace berth::model {

// reservation-allocated, the durable link pod -> reservation, written by the Binding itself. The reservation pays for
// all of the pod's request that no draw names.
struct Allocated {
    std::string name;
    std::string uid;
    bool operator==(const Allocated&) const = default;
};

// reservation-draws: what came from each further reservation, in a joint allocation.
struct Draw {
    std::string name;
    std::string uid;
    Resources amount;
    bool operator==(const Draw&) const = default;
};

struct Links {
    std::optional<Allocated> allocated;
    std::vector<Draw> draws;
    bool empty() const { return !allocated && draws.empty(); }
    // Every reservation that it draws from, the nominated one first.
    std::vector<Allocated> named() const;
    bool operator==(const Links&) const = default;
};

// Both annotations of a bound pod; an empty one is none. One that cannot be understood gives an Error that quotes the
// key.
Result<Links> read_links(const Labels& annotations);
std::string allocated_text(const Allocated& link);
std::string draws_text(const std::vector<Draw>& draws);

// {"cpu": "2", "memory": "4Gi"}, by name; without the pod slot.
JsonObject amounts_document(const Resources& amounts);

}  // namespace berth::model
