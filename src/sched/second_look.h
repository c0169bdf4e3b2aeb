#pragma once

#include "sched/plugin.h"

namespace berth::sched {

// Whether its node still has what a pod was given that stands there in the ledger and whose bind had to wait: others,
// who ask no scheduler, may have made the node smaller, or put something on it. A server that judges no sums would bind
// it all the same. All that can be given twice is looked at, as far as the profile does: amounts, slots, ports, cores,
// devices, volumes, what reservations have left. What cannot (taints, labels, who is near whom) stays as it was
// decided, as with kube-scheduler.
bool still_has(const model::Pod& pod, Ledger& ledger, const Profile& profile);

}  // namespace berth::sched
