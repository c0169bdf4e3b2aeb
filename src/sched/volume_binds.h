#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "ledger/volumes.h"
#include "sched/plan.h"

namespace berth::sched {

// A pod whose node is chosen and whose claims are not bound yet: first the volumes' and claims' writes are carried out,
// then the claims must be seen bound, then the pod is bound.
struct VolumesFirst {
    BindPod bind;
    ledger::VolumeSteps steps;
    std::map<std::string, uint64_t> revisions = {};  // of the claims, by full name, when their node was chosen
    size_t unanswered = 0;                           // writes under way
    base::Instant deadline;
    uint64_t serial = 0;

    enum class State : uint8_t { Waits, Bound, Failed };
    State state(const ledger::Volumes& volumes, base::Instant now) const;
};

// What has to be written first, of this try.
std::vector<Plan> begin_volumes(VolumesFirst& first, const ledger::Volumes& volumes);

}  // namespace berth::sched
