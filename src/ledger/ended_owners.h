#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"
#include "model/allocated.h"
#include "model/pod.h"
#include "model/reservation.h"

namespace berth::ledger {

// Pods that were bound with a link and have ended. They hold nothing, but an allocateOnce reservation that one of them
// had is used up, also when nobody stored that in time.
class EndedOwners {
public:
    void put(const model::Pod& pod, const model::Links& links);
    void remove(std::string_view pod);
    // Whether one of them was an owner of the reservation on that node.
    bool had(const model::Reservation& reservation, std::string_view node) const;

private:
    struct Ended {
        model::Meta meta;
        std::string node;
        std::vector<std::string> links;  // uids of reservations
    };
    base::StringMap<Ended> pods_;                               // by uid
    base::StringMap<std::vector<std::string>> by_reservation_;  // uids of pods, by the uid of a reservation
};

}  // namespace berth::ledger
