#pragma once

#include "api/write.h"

// The subresources of pods that are acts of their own.
namespace berth::api {

// pods/binding, and the old bindings: sets the node, the Binding's annotations and the PodScheduled condition in one
// write; the store's guard may refuse it.
void bind_pod(Desk& desk, CallPtr call, Done done);
// pods/eviction: takes one from the disruption budget and deletes the pod, in one transaction.
void evict_pod(Desk& desk, CallPtr call, Done done);
// pods/log of a simulated container: what its status tells.
void read_log(Desk& desk, const Call& call, const Done& done);

}  // namespace berth::api
