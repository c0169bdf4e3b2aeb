#pragma once

#include <span>

#include "cli/bench.h"

namespace berth::app {

std::span<const cli::Workload> api_workloads();

}  // namespace berth::app
