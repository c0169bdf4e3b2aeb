#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/component.h"
#include "base/metrics.h"
#include "cli/command_line.h"
#include "link/connect.h"
#include "link/election.h"

namespace berth::app {

// What the components that attach to a server have in common: where it is, who leads, and where they can be asked.
struct AttachedOptions {
    link::AccessOptions access;
    link::RemoteOptions remote;
    bool leader_elect = false;
    link::ElectionTimes times;
    std::string lease_namespace = "kube-system";
    std::string lease_name;
    std::string bind_address;  // of health and metrics; "0" is nowhere
    std::string metrics_token_file;
    std::function<Status()> connected = {};  // once all files that say who we are were read, before anything is sent
};

void add_attached_flags(cli::CommandLine& line, AttachedOptions& options);

using StartComponent =
    std::function<std::unique_ptr<Component>(std::unique_ptr<link::ApiClient> server, base::Metrics& metrics)>;

// Runs a component until SIGTERM: at once, or from the moment its lease is ours. It lists the server only then, so that
// it knows what earlier leaders did before its first decision. When the lease is lost the process ends with 1 on the
// spot.
int run_attached(const std::string& command, AttachedOptions options, const StartComponent& start);

}  // namespace berth::app
