#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/string_map.h"

namespace berth::sched {

// The reservations that keep room for preempting pods, and when they have to be looked at.
class PreemptionHolds {
public:
    // A reservation for the pod exists, or changed.
    void see(const std::string& pod, const std::string& reservation);
    // The uid of the pod whose room it was; empty: nobody's.
    std::string gone(std::string_view reservation);
    // Its uid; nullptr: there is none.
    const std::string* of(std::string_view pod) const;
    // The pod was bound or went away.
    void pod_moved(std::string_view pod);

    // Reservations to be looked at by then.
    void look_again(const std::string& reservation, base::Instant at) { due_[reservation] = at; }
    std::vector<std::string> take_due(base::Instant now);
    std::optional<base::Instant> next_wake() const;

private:
    base::StringMap<std::string> by_pod_;  // reservation
    base::StringMap<std::string> pod_of_;  // the same the other way round
    std::map<std::string, base::Instant, std::less<>> due_;
};

}  // namespace berth::sched
