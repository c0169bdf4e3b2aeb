#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/string_map.h"
#include "sched/plan.h"

namespace berth::sched {

// The reservations that keep room for preempting pods, from the moment one is asked for. Nobody is evicted before the
// room is held; what then has to happen waits here.
class PreemptionHolds {
public:
    // A room was asked for; once it is held these go.
    void ask(const std::string& pod, std::vector<EvictPod> evictions, base::Instant now) {
        asked_[pod] = {std::move(evictions), now};
    }
    // Asked for, not long ago, and not held yet.
    bool asked(std::string_view pod, base::Instant now) const;
    // Who is to go for the pod once its room is held.
    std::vector<EvictPod> victims(std::string_view pod) const;
    // Ends the asking and gives what waits for it.
    std::vector<EvictPod> take(std::string_view pod);

    // A reservation for the pod exists, or changed.
    void see(const std::string& pod, const std::string& reservation);
    void gone(std::string_view reservation);
    // Its uid; nullptr: there is none.
    const std::string* of(std::string_view pod) const;
    // The pod was bound or went away.
    void pod_moved(std::string_view pod);

    // Reservations to be looked at by then.
    void look_again(const std::string& reservation, base::Instant at) { due_[reservation] = at; }
    std::vector<std::string> take_due(base::Instant now);
    std::optional<base::Instant> next_wake() const;

private:
    struct Asked {
        std::vector<EvictPod> evictions;
        base::Instant at;
    };
    base::StringMap<Asked> asked_;         // by pod
    base::StringMap<std::string> by_pod_;  // reservation
    base::StringMap<std::string> pod_of_;  // the same the other way round
    std::map<std::string, base::Instant, std::less<>> due_;
};

}  // namespace berth::sched
