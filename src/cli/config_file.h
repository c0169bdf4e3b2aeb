#pragma once

#include <string>

#include "control/descheduler_config.h"
#include "sched/config.h"

namespace berth::cli {

// A KubeSchedulerConfiguration, YAML or JSON. An error names the file and the field.
Result<sched::Configuration> read_configuration_file(const std::string& path,
                                                     const std::string& default_name = "default-scheduler");

// A DeschedulerConfiguration; without a path what holds where nobody says anything.
Result<control::DeschedulerConfig> read_descheduler_file(const std::string& path);

}  // namespace berth::cli
