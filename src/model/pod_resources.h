#pragma once

#include "model/resources.h"

namespace berth::model {

class Reader;

// What a pod asks of its node.
struct PodRequests {
    Resources requests;             // exact; pods = 1
    int64_t scoring_cpu_milli = 0;  // with stand-ins for missing keys
    int64_t scoring_memory = 0;
    int64_t pod_level_cpu_milli = 0;  // of these, what spec.resources adds to the containers' (or, below 0, takes)
    int64_t pod_level_memory = 0;
};

// requests = overhead + max(containers + sidecars, the peak of the init phase), per resource; pod-level cpu, memory and
// hugepages replace the sum. For a pod in resize each container counts max(spec, allocated, actual) of its status.
// E.g. containers 1 cpu + sidecar 1 cpu, init container 3 cpu after the sidecar: max(2, 1 + 3) = 4.
PodRequests read_requests(const Reader& spec, const Reader& status);

// What containers may use at most of cpu, memory and ephemeral storage, added up like requests, as limits.NAME; what no
// container is limited in is absent.
Resources read_limits(const Reader& spec);

// A ResourceList; broken or negative quantities are remembered as trouble. The second is of who may name what there is.
Resources read_resource_list(const Reader& list);
Resources read_offered_resources(const Reader& list);

}  // namespace berth::model
