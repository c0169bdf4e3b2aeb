#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/component.h"
#include "app/server.h"
#include "cli/command_line.h"

namespace berth::app {

struct UpOptions {
    ServerOptions server;
    int nodes = 3;
    std::string node_cpu = "4";
    std::string node_memory = "32Gi";
    std::vector<std::string> node_labels;
    std::string nodes_file;
    std::string import_file;
    bool no_scheduler = false;
    std::vector<std::string> controllers;
    base::Duration reservation_gc = std::chrono::hours(24);
};

// Starts what `berth up` runs besides the server, in order; they are stopped in the order of the list, before the
// server. Returns when every simulated node is Ready. The one place where components join.
Result<std::vector<std::unique_ptr<Component>>> start_components(Server& server, const UpOptions& options);

void add_server_flags(cli::CommandLine& line, ServerOptions& options);

}  // namespace berth::app
