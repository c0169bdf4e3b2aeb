#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "model/pod.h"
#include "model/which.h"

namespace berth::model {

// scheduling.koordinator.sh/v1alpha1 Reservation: capacity of a node held for pods that match its owners.

inline constexpr std::string_view kReservationAllocated = "scheduling.koordinator.sh/reservation-allocated";
inline constexpr std::string_view kReservationDraws = "berth.dev/reservation-draws";
// What comes with a Binding, and means nothing before: the scheduler's to write.
inline constexpr std::array kPlacementAnnotations{kReservationAllocated, kReservationDraws, kResourceStatus,
                                                  kDeviceAllocated};
inline constexpr std::string_view kReservationAffinity = "scheduling.koordinator.sh/reservation-affinity";
inline constexpr std::string_view kExactMatch = "scheduling.koordinator.sh/exact-match-reservation";
inline constexpr std::string_view kReservationOrder = "scheduling.koordinator.sh/reservation-order";
inline constexpr std::string_view kRestrictedOptions = "scheduling.koordinator.sh/reservation-restricted-options";
inline constexpr std::string_view kNodeReservation = "node.koordinator.sh/reservation";
inline constexpr std::string_view kMadeFor = "berth.dev/made-for";  // label: "preemption" or "migration"

enum class ReservationPhase : uint8_t { Pending, Available, Waiting, Succeeded, Failed };
std::string_view name_of(ReservationPhase phase);

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

struct PodRef {
    std::string ns, name, uid;
    bool operator==(const PodRef&) const = default;
};

struct ReservationCondition {
    std::string type;    // Scheduled, Ready
    std::string status;  // True, False, Unknown
    std::string reason;
    std::string message;
    std::optional<base::Time> probed;
    std::optional<base::Time> changed;  // when `status` last did
    bool operator==(const ReservationCondition&) const = default;
};

struct ReservationStatus {
    ReservationPhase phase = ReservationPhase::Pending;
    std::string node;
    Resources allocatable;
    Resources allocated;
    std::vector<PodRef> current_owners;  // sorted by uid when we write it
    std::vector<ReservationCondition> conditions;
    Which which;
    bool operator==(const ReservationStatus&) const = default;
};

struct Reservation : ReservationStatus {
    Meta meta;
    std::shared_ptr<const PodSpec>
        spec;                // of the pod that stands for it: the template with the object's labels over it
    Labels template_labels;  // the template's own
    // That the template names while it gives no number; empty: none. Of a pod the API server writes the number down, of
    // a template nobody need have.
    std::string priority_class;
    std::vector<ReservationOwner> owners;
    std::optional<base::Duration> ttl;  // absent: 24h unless `expires` is set; 0: never
    std::optional<base::Time> expires;
    bool pre_allocation = false;
    bool allocate_once = true;
    bool unschedulable = false;
    AllocatePolicy policy = AllocatePolicy::Default;
    std::vector<Taint> taints;
    int64_t order = 0;                   // reservation-order; 0: none
    std::vector<ResourceId> restricted;  // what Restricted restricts, sorted; empty: everything it reserves
    Resources held_back;                 // of what it reserves, not for its owners
    std::string fault;                   // what cannot be read, of one that holds room: it keeps it, nobody draws

    bool restricts(ResourceId id) const;
    // Made by Berth itself for a preemption or a migration. Who merely sets the label gains nothing but what those are:
    // used once, Restricted, for one pod or the pods of one controller.
    bool made_by_us() const;
};

Reservation with_priority(Reservation reservation, int32_t priority);

// Whether whoever wrote the object asks for the same, so that decisions about one are decisions about the other. What
// others write into its status is not compared.
bool same_wish(const Reservation& a, const Reservation& b);

// Whether two reusable reservations are the same one twice: equal owners and equal templates.
bool same_purpose(const Reservation& a, const Reservation& b);

// A broken object is an Error that names the field; it harms nobody else. One that already holds room keeps it: then it
// is read with a `fault` instead.
Result<Reservation> read_reservation(JsonView object);

}  // namespace berth::model
