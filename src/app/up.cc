#include <fmt/format.h>

#include "app/attached.h"
#include "app/commands.h"
#include "app/components.h"
#include "app/fleet_up.h"
#include "app/footprint.h"
#include "app/server.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "model/kinds/effects.h"

namespace berth::app {
namespace {

void add_up_flags(cli::CommandLine& line, UpOptions& options) {
    add_server_flags(line, options.server);
    line.option("--nodes", options.nodes, "simulated nodes node-0, node-1, ...").show_default().within(0, 1'000'000);
    line.option("--node-cpu", options.node_cpu, "cpu of each").show_default();
    line.option("--node-memory", options.node_memory, "memory of each").show_default();
    line.option("--node-labels", options.node_labels, "key=value, may be repeated").separated_by(',');
    line.option(
        "--node-topology", options.node_topology,
        "CPUs of each, such as \"synthetic:socket:2 numa:2 core:10 pu:2\" or FILE.json; then cpu is their number "
        "unless --node-cpu says another");
    line.option("--node-gpus", options.node_gpus, "GPUs of each, such as 8 or 8:A100, with a Device that has them");
    line.option("--nodes-file", options.nodes_file, "Node objects (YAML or JSON) in place of --nodes");
    line.option("--import", options.import_file, "objects (YAML or JSON) to begin with");
    line.flag("--no-scheduler", options.no_scheduler, "leave scheduling to another one");
    line.duration("--reservation-gc", options.reservation_gc, "how long final reservations are kept");
    line.option("--controllers", options.controllers,
                "-NAME leaves a controller out; NAME alone, without *, leaves out all that are not named")
        .separated_by(',');
    line.option("--descheduler-config", options.descheduler_config,
                "a DeschedulerConfiguration (YAML or JSON): how many pods are moved at once, and LowNodeLoad");
    line.option("--fleet", options.fleet,
                "pools of machines below this server, as the inside of a YAML flow mapping: a mapping of amounts is a "
                "provider, any other a layer with a server of its own");
    line.flag("--shares", options.shares,
              "guarantees, limits and fair shares of namespaces (Consumer) are kept; the flags below say how");
    line.flag(
        "--share-gates", options.share_gates,
        "with --shares: new pods have the gate berth.dev/share until their share has room, so that nobody tries to "
        "place them");
    add_arbitrator_flags(line, options.arbitrator);
}

// The controllers of the table of effects that do not run.
std::vector<std::string> left_out(const UpOptions& options) {
    std::vector<std::string> out;
    if (options.controllers.empty()) return out;
    for (const auto& kind : model::kinds().all()) {
        const auto* about = model::effect_of(*kind);
        if (!about) continue;
        for (const auto& actor : about->actors) {
            const bool other = actor == "api-server" || actor == "scheduler";
            if (!other && leaves_out(options, actor)) out.push_back(actor);
        }
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
    line.example("berth up --in-memory --node-topology \"synthetic:socket:2 numa:1 core:8 pu:2\"",
                 "nodes that give pods cores of their own");
    line.example("berth up --in-memory --node-gpus 8:A100", "nodes with GPUs, which pods get whole or in parts");
    line.example("berth up --import dump.yaml", "begin with what `kubectl get nodes,pods -A -o yaml` wrote elsewhere");
    line.example("berth up --strict-policies", "refuse RBAC, quota and webhooks instead of storing them unenforced");
    line.example("berth up --fleet 'z1: {a: {cpu: 4}, b: {cpu: 0}}, z2: {c: {cpu: 2}}'",
                 "two layers of pools below, and three providers");
    line.example("berth up --shares --grace 5s", "Consumers are kept; what is borrowed is taken back after 5 s");
    line.example("kubectl --kubeconfig berth-data/kubeconfig get nodes", "talk to it");
    if (const auto code = line.parse(std::move(words))) return *code;
    const auto arbitration = read_arbitrator_flags(options.arbitrator);
    if (!arbitration) {
        line.fail(arbitration.error());
        return cli::kWrongUsage;
    }
    if (options.share_gates && !options.shares) {
        line.fail("--share-gates: nobody would open them without --shares");
        return cli::kWrongUsage;
    }
    const auto& infinite = arbitration->settings.infinite;
    options.server.here.ungated_namespaces.assign(infinite.begin(), infinite.end());
    options.server.here.share_gates = options.share_gates;
    options.server.here.simulated = true;
    options.server.here.shares = options.shares;
    options.server.here.absent = left_out(options);
    const auto fleet = read_fleet(options.fleet);
    if (!fleet) {
        line.fail(fleet.error());
        return cli::kWrongUsage;
    }
    options.server.fleet = fleet->has_value();
    raise_file_limit();
    block_stop_signals();
    Footprint made(options.server.data_dir);
    auto server = Server::start(options.server);
    if (!server) return line.fail(server.error());
    auto components = start_components(**server, options);
    if (!components) return line.fail(components.error());
    std::unique_ptr<Fleet> layers;
    if (*fleet) {
        auto started = Fleet::start(**server, **fleet, options.server);
        if (!started) return line.fail(started.error());
        layers = std::move(*started);
    }
    made.keep();
    fmt::print("berth: ready {} kubeconfig={}\n", (*server)->url(), (*server)->kubeconfig());
    std::fflush(stdout);
    wait_for_stop([&] {
        (*server)->tick();
        if (layers) layers->tick();
    });
    layers.reset();
    components->clear();
    return cli::kDone;
}

}  // namespace berth::app
