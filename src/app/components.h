#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/arbitrator.h"
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
    std::string node_topology;  // as node::read_machine() knows one; empty: nothing is said of their CPUs
    std::string node_gpus;      // as run::read_simulated_gpus() knows them; empty: there are none
    std::string nodes_file;
    std::string import_file;
    bool no_scheduler = false;
    std::vector<std::string> controllers;
    std::string descheduler_config;  // a file; "" is none
    base::Duration reservation_gc = std::chrono::hours(24);
    std::string fleet;  // layers of pools; "" is none
    bool shares = false;
    bool share_gates = false;
    ArbitratorFlags arbitrator;
};

// Starts what `berth up` runs besides the server, in order; they are stopped in the order of the list, before the
// server. Returns when every simulated node is Ready. The one place where components join.
Result<std::vector<std::unique_ptr<Component>>> start_components(Server& server, const UpOptions& options);

// "--controllers=-job" leaves one out, "--controllers=job,garbage" all others.
bool leaves_out(const UpOptions& options, std::string_view name);

void add_server_flags(cli::CommandLine& line, ServerOptions& options);

}  // namespace berth::app
