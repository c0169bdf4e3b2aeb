#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/component.h"
#include "base/metrics.h"
#include "link/connect.h"
#include "link/election.h"

namespace CLI {
class App;
}

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
};

// A flag such as 24h or 500ms; never negative.
void add_duration_flag(CLI::App& app, const std::string& name, base::Duration& value, const std::string& help);
void add_attached_flags(CLI::App& app, AttachedOptions& options);

// Parses the words of a command; an exit code when there is nothing more to do.
std::optional<int> parse_words(CLI::App& app, std::vector<std::string> words);

using StartComponent =
    std::function<std::unique_ptr<Component>(std::unique_ptr<link::Server> server, base::Metrics& metrics)>;

// Runs a component until SIGTERM: at once, or from the moment its lease is ours. It lists the server only then, so that
// it knows what earlier leaders did before its first decision. When the lease is lost the process ends with 1 on the
// spot.
int run_attached(const std::string& command, AttachedOptions options, const StartComponent& start);

}  // namespace berth::app
