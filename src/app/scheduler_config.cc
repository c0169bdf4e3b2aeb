#include "app/scheduler_config.h"

#include "cli/config_file.h"

namespace berth::app {
namespace {

template <class T>
void take(const std::optional<T>& said, T& into) {
    if (said) into = *said;
}

}  // namespace

Result<sched::Configuration> read_scheduler_config(const std::string& path, const std::string& default_name,
                                                   AttachedOptions& options) {
    auto config = TRY(cli::read_configuration_file(path, default_name));
    const auto& election = config.leader_election;
    take(election.elect, options.leader_elect);
    take(election.lease, options.times.lease);
    take(election.renew, options.times.deadline);
    take(election.retry, options.times.retry);
    take(election.name, options.lease_name);
    take(election.ns, options.lease_namespace);
    take(config.kubeconfig, options.access.kubeconfig);
    return config;
}

}  // namespace berth::app
