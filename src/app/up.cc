#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/attached.h"
#include "app/commands.h"
#include "app/components.h"
#include "app/server.h"
#include "cli/command.h"

namespace berth::app {
namespace {

void add_up_flags(CLI::App& app, UpOptions& options) {
    add_server_flags(app, options.server);
    app.add_option("--nodes", options.nodes, "simulated nodes node-0, node-1, ...")->capture_default_str();
    app.add_option("--node-cpu", options.node_cpu, "cpu of each")->capture_default_str();
    app.add_option("--node-memory", options.node_memory, "memory of each")->capture_default_str();
    app.add_option("--node-labels", options.node_labels, "key=value, may be repeated")->delimiter(',');
    app.add_option("--nodes-file", options.nodes_file, "Node objects (YAML or JSON) in place of --nodes");
    app.add_option("--import", options.import_file, "objects (YAML or JSON) to begin with");
    app.add_option("--scheduler-config", options.scheduler_config,
                   "a KubeSchedulerConfiguration (YAML or JSON), in place of the default profiles");
    app.add_flag("--no-scheduler", options.no_scheduler, "leave scheduling to another one");
    add_duration_flag(app, "--reservation-gc", options.reservation_gc, "how long final reservations are kept");
    app.add_option("--controllers", options.controllers, "-NAME leaves a controller out; * is all of them")
        ->delimiter(',');
}

}  // namespace

int up(std::vector<std::string> words) {
    CLI::App app("A whole control plane in one process: API server, simulated nodes, scheduler, controllers.",
                 "berth up");
    UpOptions options;
    add_up_flags(app, options);
    if (const auto code = parse_words(app, std::move(words))) return *code;
    raise_file_limit();
    block_stop_signals();
    auto server = Server::start(options.server);
    if (!server) {
        fmt::print(stderr, "berth up: {}\n", server.error().message);
        return cli::kFailed;
    }
    auto components = start_components(**server, options);
    if (!components) {
        fmt::print(stderr, "berth up: {}\n", components.error().message);
        return cli::kFailed;
    }
    fmt::print("berth: ready {} kubeconfig={}\n", (*server)->url(), (*server)->kubeconfig());
    std::fflush(stdout);
    wait_for_stop([&] { (*server)->tick(); });
    components->clear();
    return cli::kDone;
}

}  // namespace berth::app
