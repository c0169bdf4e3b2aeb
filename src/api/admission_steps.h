#pragma once

#include "api/admission.h"

// The steps of admission, one function each; their order is in admission.cc. A step that does not concern the kind
// passes.
namespace berth::api {

bool is_kind(const Admission& entry, std::string_view group, std::string_view plural);
bool is_reservation(const Admission& entry);
// Whether a new object comes with the status that it had in another cluster.
bool brings_status(const Admission& entry);
Error invalid_entry(const Admission& entry, std::vector<base::Cause> causes);
Error forbidden_entry(const Admission& entry, std::string_view why);

// What was allocated is the scheduler's to say: a reservation's status, and the annotations that link a pod to it.
Status guard_allocations(Admission& entry);
// What Kubernetes calls NodeRestriction: a node does not change what brings pods to it.
Status guard_node(Admission& entry);
Status admit_namespace(Admission& entry);
// Service account, tolerations of a node that fails, the first status.
Status admit_pod(Admission& entry);
// The number behind the name of a pod's priority class.
Status admit_priority(Admission& entry);
// The same for the template of a new reservation.
Status admit_template_priority(Admission& entry);
// Cluster IP and node ports.
Status admit_service(Admission& entry);
Status admit_claim(Admission& entry);
// The selector of a new job, and the labels that its pods are known by.
Status admit_job(Admission& entry);
// The table of what Kubernetes refuses.
Status check_rules(Admission& entry);
// What of a pod may change.
Status check_pod(Admission& entry);
Status check_priority_class(Admission& entry);
// Pending, from the beginning.
Status admit_reservation(Admission& entry);
// A Machine is Pending until its pool says otherwise.
Status admit_machine(Admission& entry);
Status check_reservation(Admission& entry);
// The gate that the arbitrator takes away, where pods are held that way.
Status admit_share_gate(Admission& entry);
// A Consumer among its siblings, the nodes and the quotas.
Status check_consumer(Admission& entry);
// What is to be kept for processes outside Kubernetes, when it changes.
Status check_node(Admission& entry);
// Warnings about what nobody acts on (model/kinds/effects.h); policy is refused if so asked.
Status tell_effects(Admission& entry);

}  // namespace berth::api
