#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/objects.h"
#include "model/selector.h"

namespace berth::control {

// Which pods may be chosen to leave their node; a PodMigrationJob that somebody makes himself is not asked.
struct Movable {
    std::vector<std::string> namespaces, not_namespaces;
    std::vector<Selector> labels;           // one of them; none: all
    std::optional<int64_t> below_priority;  // only pods of less
    bool critical = false;                  // also those of Kubernetes' own priorities
    bool local_storage = false;             // also those that lose what they keep on the node
    bool claims = true;                     // also those with claims of volumes
    bool few_replicas = false;              // also all pods of a workload at once: the only one of it
};

// By what the pod says: somebody makes it again, elsewhere, and nothing of it is lost. The annotation
// descheduler.alpha.kubernetes.io/evict is the pod's own leave: the rest is not asked then.
bool may_be_moved(const Object& pod, const Movable& rules);

// The number that a pod's annotation names, 0 without one.
int64_t cost_of(const Object& pod, std::string_view annotation);

}  // namespace berth::control
