#pragma once

#include <string>

#include "app/attached.h"
#include "sched/config.h"

namespace berth::app {

// Reads a KubeSchedulerConfiguration, and where it speaks of the server or of leader election, `options`. Without
// profiles there is one for `default_name`.
Result<sched::Configuration> read_scheduler_config(const std::string& path, const std::string& default_name,
                                                   AttachedOptions& options);

}  // namespace berth::app
