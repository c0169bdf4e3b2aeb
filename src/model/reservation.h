#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_view.h"
#include "model/pod.h"

namespace berth::model {

// scheduling.koordinator.sh/v1alpha1 Reservation: capacity of a node held for pods that match its owners.

enum class ReservationPhase : uint8_t { Pending, Available, Waiting, Succeeded, Failed };
std::string_view name_of(ReservationPhase phase);
inline bool is_final(ReservationPhase phase) {
    return phase == ReservationPhase::Succeeded || phase == ReservationPhase::Failed;
}

enum class AllocatePolicy : uint8_t { Default, Aligned, Restricted };

// Fields that are set are ANDed. A reference compares only the fields it sets.
struct ReservationOwner {
    struct Object {
        std::string api_version, kind, ns, name, uid;
        bool operator==(const Object&) const = default;
    };
    struct Controller {
        std::string api_version, kind, ns, name, uid;
        std::optional<bool> controller;
        bool operator==(const Controller&) const = default;
    };
    std::optional<Object> object;
    std::optional<Controller> controller;
    std::optional<Selector> labels;
    bool operator==(const ReservationOwner&) const = default;
};

bool matches(const ReservationOwner& owner, const Pod& pod);

struct PodRef {
    std::string ns, name, uid;
    bool operator==(const PodRef&) const = default;
};

struct Reservation {
    Meta meta;
    std::shared_ptr<const PodSpec>
        spec;  // of the pod that stands for it: the template with the object's labels over it
    std::vector<ReservationOwner> owners;
    std::optional<base::Duration> ttl;  // absent: 24h unless `expires` is set; 0: never
    std::optional<base::Time> expires;
    bool pre_allocation = false;
    bool allocate_once = true;
    bool unschedulable = false;
    AllocatePolicy policy = AllocatePolicy::Default;
    std::vector<Taint> taints;
    int64_t order = 0;  // reservation-order; 0: none

    // status
    ReservationPhase phase = ReservationPhase::Pending;
    std::string node;
    Resources allocatable;
    std::vector<PodRef> current_owners;

    bool live() const { return phase == ReservationPhase::Available || phase == ReservationPhase::Waiting; }
    // When it ends, if ever.
    std::optional<base::Time> end() const;
};

// A broken object is an Error that names the field; it harms nobody else.
Result<Reservation> read_reservation(JsonView object);

inline constexpr std::string_view kReservationAllocated = "scheduling.koordinator.sh/reservation-allocated";
inline constexpr std::string_view kReservationDraws = "berth.dev/reservation-draws";
inline constexpr std::string_view kReservationAffinity = "scheduling.koordinator.sh/reservation-affinity";
inline constexpr std::string_view kExactMatch = "scheduling.koordinator.sh/exact-match-reservation";
inline constexpr std::string_view kReservationOrder = "scheduling.koordinator.sh/reservation-order";
inline constexpr std::string_view kRestrictedOptions = "scheduling.koordinator.sh/reservation-restricted-options";
inline constexpr std::string_view kNodeReservation = "node.koordinator.sh/reservation";

}  // namespace berth::model
