#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/cpu_list.h"
#include "model/node.h"

namespace berth::model {

// node.koordinator.sh/reservation: capacity of a node for processes outside Kubernetes; on a Reservation, the part of
// it that its owners may not have.
struct NodeReservation {
    Resources amounts;           // as listed
    std::optional<CpuIds> cpus;  // reservedCPUs: decides the cores and the cpu amount
    bool cpus_only = false;      // ReservedCPUsOnly: amounts are not taken off, cores are still kept out
    bool operator==(const NodeReservation&) const = default;

    // What is taken off. E.g. cpu 10 with "0-1" and memory 10: {cpu 2, memory 10}.
    Resources taken() const;
};

// The scheduler's view of a node: a pure function of the raw Node, so that it may be applied twice or after a restart.
struct NodeView {
    Resources allocatable;            // what the scheduler may give
    Resources held;                   // what it may not, of what the kubelet reports
    NodeReservation reservation;      // in force
    std::string applied;              // the value that reservation-applied should have; empty: no annotation
    std::vector<base::Cause> faults;  // each with the key, the field and the value
};

// A bad field keeps its last valid value (from reservation-applied), joined with what can be read of it.
NodeView view_of(const Node& node);

// As an annotation of a Reservation.
Result<NodeReservation> read_held_back(std::string_view text);

inline constexpr std::string_view kReservationApplied = "berth.dev/reservation-applied";
inline constexpr std::string_view kReservationInvalid = "BerthReservationInvalid";

}  // namespace berth::model
