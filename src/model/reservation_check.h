#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace berth::model {

// What the door says to a Reservation that somebody creates or changes.
struct ReservationCheck {
    std::vector<base::Cause> causes;    // why it is refused, each with the field's path; empty: accepted
    std::vector<std::string> warnings;  // sent along with the answer
};

ReservationCheck check_reservation(const Json& object);

// The same as a refusal, in Kubernetes' words.
Status validate(const Json& reservation);

}  // namespace berth::model
