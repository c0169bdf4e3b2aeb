#pragma once

#include <string>

#include "sched/config.h"

namespace berth::cli {

// A KubeSchedulerConfiguration, YAML or JSON. An error names the file and the field.
Result<sched::Configuration> read_configuration_file(const std::string& path,
                                                     const std::string& default_name = "default-scheduler");

}  // namespace berth::cli
