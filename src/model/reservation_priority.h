#pragma once

#include "model/reservation.h"

namespace berth::model {

// The priority class that a Reservation's template names while it gives no number; empty: none. Of a pod the API server
// writes the number down, of a template nobody need have.
std::string named_class(JsonView reservation);

Reservation with_priority(Reservation reservation, int32_t priority);

}  // namespace berth::model
