#include "model/reservation_rules.h"

#include <algorithm>

namespace berth::model {
namespace {

constexpr base::Duration kDefaultTtl = std::chrono::hours(24);

bool same_or_unset(std::string_view wanted, std::string_view actual) {
    return wanted.empty() || wanted == actual;
}

bool matches_controller(const ReservationOwner::Controller& wanted, const PodIdentity& pod) {
    if (!same_or_unset(wanted.ns, pod.ns)) return false;
    for (const auto& owner : *pod.owners) {
        if (same_or_unset(wanted.uid, owner.uid) && same_or_unset(wanted.name, owner.name) &&
            same_or_unset(wanted.kind, owner.kind) && same_or_unset(wanted.api_version, owner.api_version) &&
            (!wanted.controller || *wanted.controller == owner.controller)) {
            return true;
        }
    }
    return false;
}

bool matches_object(const ReservationOwner::Object& wanted, const PodIdentity& pod) {
    return same_or_unset(wanted.uid, pod.uid) && same_or_unset(wanted.name, pod.name) &&
           same_or_unset(wanted.ns, pod.ns) && same_or_unset(wanted.kind, "Pod") &&
           same_or_unset(wanted.api_version, "v1");
}

bool matches(const ReservationOwner& clause, const PodIdentity& pod) {
    if (clause.object && !matches_object(*clause.object, pod)) return false;
    if (clause.controller && !matches_controller(*clause.controller, pod)) return false;
    return !clause.labels || clause.labels->matches(*pod.labels);
}

// Whether one of those that a claim names is so.
template <class Is>
bool claim_names(const Reservation& reservation, Is is) {
    const auto& owners = reservation.current_owners;
    return reservation.allocate_once && std::any_of(owners.begin(), owners.end(), is);
}

}  // namespace

std::string namespace_of_owners(const Reservation& reservation) {
    std::string ns;
    for (const auto& owner : reservation.owners) {
        const std::string& named =
            owner.object ? owner.object->ns : (owner.controller ? owner.controller->ns : std::string());
        if (named.empty() || (!ns.empty() && ns != named)) return {};
        ns = named;
    }
    return ns;
}

bool owned_by(const Reservation& reservation, const PodIdentity& pod) {
    return std::any_of(reservation.owners.begin(), reservation.owners.end(),
                       [&](const auto& clause) { return matches(clause, pod); });
}

bool is_claimed(const Reservation& reservation) {
    return reservation.allocate_once && !reservation.current_owners.empty() && holds_room(reservation);
}

bool claimed_by(const Reservation& reservation, std::string_view pod_uid) {
    return claim_names(reservation, [&](const PodRef& owner) { return owner.uid == pod_uid; });
}

bool claimed_by_another(const Reservation& reservation, std::string_view pod_uid) {
    return claim_names(reservation, [&](const PodRef& owner) { return owner.uid != pod_uid; });
}

Closed closed_by_object(const Reservation& reservation) {
    if (reservation.meta.deleted) return Closed::Deleted;
    if (reservation.unschedulable) return Closed::Unschedulable;
    return reservation.fault.empty() ? Closed::No : Closed::Unreadable;
}

std::optional<base::Time> end_of(const Reservation& reservation) {
    if (is_final(reservation.phase)) return std::nullopt;
    if (reservation.expires) return reservation.expires;
    const base::Duration lives = reservation.ttl.value_or(kDefaultTtl);
    const base::Time created = reservation.meta.created;
    if (lives == base::Duration::zero() || created.nanos > INT64_MAX - lives.count()) return std::nullopt;
    return created + lives;
}

}  // namespace berth::model
