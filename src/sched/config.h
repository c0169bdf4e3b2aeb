#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json_fwd.h"
#include "sched/scheduler.h"

namespace berth::sched {

// What a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) says, as far as it means something here.
// percentageOfNodesToScore, parallelism and the like are accepted and change nothing: every node is looked at.
struct Configuration {
    Scheduler::Profiles profiles;  // by schedulerName
    SchedulerOptions options;
    // What it says about these, where it does.
    struct LeaderElection {
        std::optional<bool> elect;
        std::optional<base::Duration> lease, renew, retry;
        std::optional<std::string> name, ns;
    };
    LeaderElection leader_election;
    std::optional<std::string> kubeconfig;  // clientConnection.kubeconfig
};

// Strict: a field that is not known, or has a value that cannot be, is an Error with its path, such as
// `profiles[0].plugins.score.enabled[1].weight: must not be negative`.
// Without profiles there is one for `default_name`.
Result<Configuration> read_configuration(JsonView document, const std::string& default_name = "default-scheduler");

}  // namespace berth::sched
