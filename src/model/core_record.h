#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "model/cpu_list.h"
#include "model/labels.h"
#include "model/resources.h"

namespace berth::model {

class Reader;

// resource-status: which cores, and how much of which NUMA node, a pod or a reservation has. Written with its
// placement.
inline constexpr std::string_view kResourceStatus = "scheduling.koordinator.sh/resource-status";

struct NumaAmount {
    int32_t node = 0;
    Resources amount;
    bool operator==(const NumaAmount&) const = default;
};

struct CoreRecord {
    CpuIds cpus;
    std::vector<NumaAmount> numa;  // by node, which are distinct
    bool empty() const { return cpus.empty() && numa.empty(); }
    bool operator==(const CoreRecord&) const = default;
};

// {"cpuset":"0-3","numaNodeResources":[{"node":0,"resources":{"cpu":"4"}}]}. What is wrong ends up in the Reader's
// trouble.
CoreRecord read_core_record(const Reader& from);
JsonObject core_record_document(const CoreRecord& record);
JsonArray numa_document(const CoreRecord& record);

}  // namespace berth::model
