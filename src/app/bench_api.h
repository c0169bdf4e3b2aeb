#pragma once

#include <span>

#include "cli/bench.h"

namespace berth::app {

std::span<const cli::Workload> api_workloads();
// Those that have --mode embedded.
std::span<const cli::Workload> embedded_workloads();

}  // namespace berth::app
