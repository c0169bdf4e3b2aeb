#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/meta.h"
#include "model/node_selector.h"
#include "model/resources.h"
#include "model/taints.h"

namespace berth::model {

// What a pod's annotations say about the reservations it may draw from.

// reservation-affinity: a pod that has it must draw from a reservation that matches. The terms are ORed, then ANDed
// with `selector` and `name`; an empty one matches every reservation.
struct ReservationAffinity {
    std::optional<NodeSelector> terms;
    Labels selector;
    std::string name;
    std::vector<Toleration> tolerations;  // of the reservation's taints

    // `labels`: the node's with the reservation's over them.
    bool matches(std::string_view reservation, const Labels& labels) const;
};

struct ReservationWishes {
    std::optional<ReservationAffinity> affinity;
    std::vector<ResourceId> exact;  // exact-match-reservation: must be equal in request and reservation
};

// Both annotations of a pod; broken ones give an Error that quotes the key.
Result<ReservationWishes> read_wishes(const Labels& annotations);

// The names in {"resources": [..]} or {"resourceNames": [..]}.
Result<std::vector<ResourceId>> read_resource_names(std::string_view key, std::string_view text,
                                                    std::string_view field);

}  // namespace berth::model
