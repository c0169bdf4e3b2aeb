#pragma once

#include "model/reservation.h"

// The rules of a reservation, each said once: who owns it, whether it holds room, whether it is claimed, whether it is
// closed and why, when it ends. What only a ledger knows of it is an argument.
namespace berth::model {

// --- who owns it

// What of a pod an owner clause looks at.
struct PodIdentity {
    std::string_view ns, name, uid;
    const Labels* labels;
    const std::vector<OwnerRef>* owners;
};
inline PodIdentity identity_of(const Meta& meta) {
    return {meta.ns, meta.name, meta.uid, &meta.labels, &meta.owners};
}

// Any of its clauses is enough.
bool owned_by(const Reservation& reservation, const PodIdentity& pod);
inline bool owned_by(const Reservation& reservation, const Pod& pod) {
    return owned_by(reservation, identity_of(pod.meta));
}

// The namespace of all its owners; "": they may be of several.
std::string namespace_of_owners(const Reservation& reservation);

// --- whether it holds room

inline bool is_final(ReservationPhase phase) {
    return phase == ReservationPhase::Succeeded || phase == ReservationPhase::Failed;
}
// It was placed and has not ended: what it reserves is counted on its node, also while it waits for others to go.
inline bool holds_room(const ReservationStatus& status) {
    return status.phase == ReservationPhase::Available || status.phase == ReservationPhase::Waiting;
}

// --- whether it is claimed

// It is used once, and its status names who is about to be bound to it.
bool is_claimed(const Reservation& reservation);
bool claimed_by(const Reservation& reservation, std::string_view pod_uid);
bool claimed_by_another(const Reservation& reservation, std::string_view pod_uid);

// --- whether it is closed, and why

enum class Closed : uint8_t {
    No,             // its owners may draw from it
    NotAvailable,   // it holds nothing, waits, or its node is not known
    Deleted,        // it is about to go
    Ended,          // its time is over
    Unschedulable,  // its maker says so
    Unreadable,     // see Reservation::fault
    UsedUp,         // it is used once, and an owner was bound
    Taken,          // it is used once, and an owner is being bound: it may be given back
};

// As far as the object itself says; No: not by the object.
Closed closed_by_object(const Reservation& reservation);

// What a ledger knows of it.
struct HoldFacts {
    Closed by_object = Closed::No;
    bool available = false;  // on a node that is there
    bool ended = false;
    bool used_up = false;
    bool taken = false;
};
inline Closed why_closed(const HoldFacts& known) {
    if (!known.available) return Closed::NotAvailable;
    if (known.by_object == Closed::Deleted) return Closed::Deleted;
    if (known.ended) return Closed::Ended;
    if (known.by_object != Closed::No) return known.by_object;
    if (known.used_up) return Closed::UsedUp;
    return known.taken ? Closed::Taken : Closed::No;
}

// --- when it ends

// By the wall clock; none: never, or it is final already.
std::optional<base::Time> end_of(const Reservation& reservation);

}  // namespace berth::model
