#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/commands.h"
#include "app/components.h"
#include "app/server.h"
#include "cli/command.h"
#include "model/times.h"

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
    app.add_flag("--no-scheduler", options.no_scheduler, "leave scheduling to another one");
    app.add_option_function<std::string>(
        "--reservation-gc",
        [&options](const std::string& text) {
            const auto duration = model::parse_duration(text);
            if (!duration || *duration < base::Duration::zero()) {
                throw CLI::ValidationError("--reservation-gc", fmt::format("\"{}\" is no duration such as 24h", text));
            }
            options.reservation_gc = *duration;
        },
        "how long final reservations are kept (default 24h)");
    app.add_option("--controllers", options.controllers, "-NAME leaves a controller out; * is all of them")
        ->delimiter(',');
}

}  // namespace

int up(std::vector<std::string> words) {
    CLI::App app("A whole control plane in one process: API server, simulated nodes, scheduler, controllers.",
                 "berth up");
    UpOptions options;
    add_up_flags(app, options);
    std::reverse(words.begin(), words.end());
    try {
        app.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? cli::kDone : cli::kWrongUsage;
    }
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
