#pragma once

#include <optional>

#include "api/write.h"
#include "base/json.h"

// The subresources of pods that are acts of their own, and what becomes of a pod that its node does not take.
namespace berth::api {

// What the store's guard says of a pod that is created with its node: a cause for spec.nodeName, in the kubelet's
// words.
std::optional<base::Cause> refusal_of_node(const Call& call, const Error& error);
// Kubernetes stores such a pod, and the node's kubelet refuses it. Here both happen in one step: the pod is stored as
// the kubelet leaves it, Failed, and never counts.
void refuse_on_node(Json& pod, const base::Cause& why, const std::string& now);
// The kubelet's event about it.
store::Write event_of_refusal(ApiContext& context, const Json& pod, const base::Cause& why);

// pods/binding, and the old bindings: sets the node, the Binding's annotations and the PodScheduled condition in one
// write; the store's guard may refuse it.
void bind_pod(ApiContext& context, CallPtr call, Done done);
// pods/eviction: takes one from the disruption budget and deletes the pod, in one transaction.
void evict_pod(ApiContext& context, CallPtr call, Done done);
// pods/log of a simulated container: what its status tells.
void read_log(ApiContext& context, const Call& call, const Done& done);

}  // namespace berth::api
