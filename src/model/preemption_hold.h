#pragma once

#include "base/json_fwd.h"
#include "model/reservation.h"

namespace berth::model {

inline constexpr std::string_view kForPreemption = "preemption";

// A Reservation that keeps room on a node for one pod, also when the node is still full: it waits until others have
// gone, and only this pod may use it, once. It holds what the pod would hold: amounts, ports, claims, its labels and
// its anti-affinity. Its name follows from the pod's uid, so that there is one at most.
Json preemption_hold_for(const Pod& pod, std::string_view node);
// The same as a server has stored it.
Reservation stored_preemption_hold(const Pod& pod, std::string_view node, std::string uid, base::Time created);
std::string preemption_hold_name(std::string_view pod_uid);

// The uid of the pod that a reservation is such a room for; empty: it is none.
std::string_view preemption_hold_owner(const Reservation& reservation);

}  // namespace berth::model
