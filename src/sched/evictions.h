#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"

namespace berth::sched {

// Who was told to go for whom, until it is seen going: meanwhile nobody else is evicted for the same pod.
class Evictions {
public:
    void begin(std::string_view preemptor, const std::string& victim);
    // The victim is going or gone.
    void seen(std::string_view victim);
    // The preemptor needs it no longer.
    void forget(std::string_view preemptor);
    bool under_way(std::string_view preemptor) const { return victims_.contains(preemptor); }

private:
    base::StringMap<std::set<std::string>> victims_;     // by preemptor; never empty
    base::StringMap<std::set<std::string>> preemptors_;  // by victim; never empty
};

}  // namespace berth::sched
