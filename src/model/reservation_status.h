#pragma once

#include <string_view>

#include "base/json_fwd.h"
#include "model/reservation.h"

namespace berth::model {

// The status as the API writes it.
Json status_document(const ReservationStatus& status);

// What a condition should say. Nothing changes, not even times, when it already says so.
void set_condition(ReservationStatus& status, std::string_view type, bool holds, std::string_view reason,
                   std::string message, base::Time now);
const ReservationCondition* find_condition(const ReservationStatus& status, std::string_view type);

// Its steps, each as the whole status that is to be written.
ReservationStatus unschedulable(ReservationStatus from, std::string message, base::Time now);
ReservationStatus placed(ReservationStatus from, std::string_view node, const Resources& reserved, base::Time now);
// Placed by pre-allocation; `missing` is what the node is short of; nothing: somebody else is in its way.
ReservationStatus placed_waiting(ReservationStatus from, std::string_view node, const Resources& reserved,
                                 const Resources& missing, base::Time now);
ReservationStatus available(ReservationStatus from, base::Time now);
ReservationStatus succeeded(ReservationStatus from, base::Time now);
// By the server, in the transaction that binds the owner. Its reason stands until whoever looks after reservations has
// seen the end, said so, and written succeeded().
ReservationStatus ended_by_bind(ReservationStatus from, base::Time now);
bool is_unseen(const ReservationStatus& status);
ReservationStatus expired(ReservationStatus from, std::string message, base::Time now);

}  // namespace berth::model
