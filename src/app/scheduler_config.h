#pragma once

#include <string>

#include "app/attached.h"
#include "sched/scheduler.h"

namespace berth::app {

// Reads a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1): the profiles it describes, and where it speaks
// of the server or of leader election, `options`. Strict: a field that is unknown, or known and not supported, is
// refused with its path. Without profiles there is one for `default_name`.
Result<sched::Scheduler::Profiles> read_scheduler_config(const std::string& path, const std::string& default_name,
                                                         AttachedOptions& options);

}  // namespace berth::app
