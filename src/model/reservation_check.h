#pragma once

namespace berth::model {

class Reader;

// What Kubernetes refuses in a pod, of what placing one reads. Nobody validates the template of a Reservation as a pod,
// so whoever reads it looks; the first fault is the Reader's trouble.
void check_template(const Reader& pod_spec);
void check_tolerations(const Reader& list);
void check_taints(const Reader& list);

}  // namespace berth::model
