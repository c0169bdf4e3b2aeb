#pragma once

#include "api/admission.h"

// The steps of admission, one function each; their order is in admission.cc. A step that does not concern the kind
// passes.
namespace berth::api {

bool is_kind(const Entry& entry, std::string_view group, std::string_view plural);
bool is_reservation(const Entry& entry);
// Whether a new object comes with the status that it had in another cluster.
bool brings_status(const Entry& entry);
Error invalid_entry(const Entry& entry, std::vector<base::Cause> causes);
Error forbidden_entry(const Entry& entry, std::string_view why);

// What was allocated is the scheduler's to say: a reservation's status, and the annotations that link a pod to it.
Status guard_allocations(Entry& entry);
// What Kubernetes calls NodeRestriction: a node does not change what brings pods to it.
Status guard_node(Entry& entry);
Status settle_namespace(Entry& entry);
// Service account, tolerations of a node that fails, the first status.
Status settle_pod(Entry& entry);
// The number behind the name of a pod's priority class.
Status settle_priority(Entry& entry);
// The same for the template of a new reservation.
Status settle_template_priority(Entry& entry);
// Cluster IP and node ports.
Status settle_service(Entry& entry);
Status settle_claim(Entry& entry);
// The selector of a new job, and the labels that its pods are known by.
Status settle_job(Entry& entry);
// The table of what Kubernetes refuses.
Status check_rules(Entry& entry);
// What of a pod may change.
Status check_pod(Entry& entry);
Status check_priority_class(Entry& entry);
// Pending, from the beginning.
Status settle_reservation(Entry& entry);
Status check_reservation(Entry& entry);
// What is to be kept for processes outside Kubernetes, when it changes.
Status check_node(Entry& entry);

}  // namespace berth::api
