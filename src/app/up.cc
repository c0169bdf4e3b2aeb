#include <fmt/format.h>

#include "app/attached.h"
#include "app/commands.h"
#include "app/components.h"
#include "app/footprint.h"
#include "app/server.h"
#include "cli/command.h"
#include "cli/command_line.h"

namespace berth::app {
namespace {

void add_up_flags(cli::CommandLine& line, UpOptions& options) {
    add_server_flags(line, options.server);
    line.option("--nodes", options.nodes, "simulated nodes node-0, node-1, ...").show_default().within(0, 1'000'000);
    line.option("--node-cpu", options.node_cpu, "cpu of each").show_default();
    line.option("--node-memory", options.node_memory, "memory of each").show_default();
    line.option("--node-labels", options.node_labels, "key=value, may be repeated").separated_by(',');
    line.option("--nodes-file", options.nodes_file, "Node objects (YAML or JSON) in place of --nodes");
    line.option("--import", options.import_file, "objects (YAML or JSON) to begin with");
    line.flag("--no-scheduler", options.no_scheduler, "leave scheduling to another one");
    line.duration("--reservation-gc", options.reservation_gc, "how long final reservations are kept");
    line.option("--controllers", options.controllers,
                "-NAME leaves a controller out; NAME alone, without *, leaves out all that are not named")
        .separated_by(',');
}

// "--controllers=-job"
std::vector<std::string> left_out(const UpOptions& options) {
    std::vector<std::string> out;
    for (const auto& word : options.controllers) {
        if (word.starts_with('-')) out.push_back(word.substr(1));
    }
    return out;
}

}  // namespace

int up(std::vector<std::string> words) {
    cli::CommandLine line("A whole control plane in one process: API server, simulated nodes, scheduler, controllers.",
                          "berth up");
    UpOptions options;
    add_up_flags(line, options);
    line.example("berth up", "three nodes; everything is kept in ./berth-data");
    line.example("berth up --in-memory --nodes 100 --node-cpu 16 --node-memory 64Gi",
                 "a larger cluster, forgotten afterwards");
    line.example("berth up --import dump.yaml", "begin with what `kubectl get nodes,pods -A -o yaml` wrote elsewhere");
    line.example("berth up --strict-policies", "refuse RBAC, quota and webhooks instead of storing them unenforced");
    line.example("kubectl --kubeconfig berth-data/kubeconfig get nodes", "talk to it");
    if (const auto code = line.parse(std::move(words))) return *code;
    options.server.here.simulated = true;
    options.server.here.absent = left_out(options);
    raise_file_limit();
    block_stop_signals();
    Footprint made(options.server.data_dir);
    auto server = Server::start(options.server);
    if (!server) return line.fail(server.error());
    auto components = start_components(**server, options);
    if (!components) return line.fail(components.error());
    made.keep();
    fmt::print("berth: ready {} kubeconfig={}\n", (*server)->url(), (*server)->kubeconfig());
    std::fflush(stdout);
    wait_for_stop([&] { (*server)->tick(); });
    components->clear();
    return cli::kDone;
}

}  // namespace berth::app
