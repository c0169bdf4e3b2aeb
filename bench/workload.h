#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace berth::bench {

// The flags of `berth bench`; 0 and "" mean the workload's own default.
struct BenchOptions {
    int64_t nodes = 0;
    int64_t pods = 0;
    int64_t initial = 0;
    int64_t classes = 0;
    std::string mode;
    std::string variant;
    uint64_t seed = 1;
    std::string trace;  // a file of pods, and one of nodes
    std::string nodes_file;
    std::string scorer;
    std::string seeds;     // "42-51"
    std::string data_dir;  // where durable workloads write; "": a new directory under the system's temporary one
};

// One workload: runs for about a second or two and answers the fields of its JSON object (without `workload`).
struct Workload {
    const char* name;
    const char* summary;
    Result<JsonObject> (*run)(const BenchOptions&);
    const char* alias = nullptr;  // what kube-scheduler's own benchmark calls it
};

// Each group of workloads is one file; bench.cc lists the groups.
std::span<const Workload> store_workloads();
std::span<const Workload> core_workloads();
std::span<const Workload> reservation_workloads();
std::span<const Workload> api_workloads();
std::span<const Workload> share_workloads();
std::span<const Workload> openb_workloads();
std::span<const Workload> control_workloads();
// Those that have --mode embedded.
std::span<const Workload> embedded_workloads();

}  // namespace berth::bench
