#include "app/components.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/call.h"
#include "app/driver_thread.h"
#include "app/first_objects.h"
#include "app/local_link.h"
#include "cli/config_file.h"
#include "cli/near_word.h"
#include "control/batch.h"
#include "control/low_node_load.h"
#include "control/migration.h"
#include "control/reservations.h"
#include "control/reserved_cores.h"
#include "control/simulated.h"
#include "control/volumes.h"
#include "run/cluster.h"
#include "run/controllers_driver.h"
#include "run/scheduler_driver.h"
#include "run/simulated_agents.h"
#include "sched/plugin.h"

namespace berth::app {
namespace {

constexpr std::string_view kReservationController = "reservation";
constexpr std::string_view kBatchController = "batch";
constexpr std::string_view kLowNodeLoad = "low-node-load";

using Reconcilers = run::ControllersDriver::Reconcilers;

Reconcilers all_reconcilers(Server& server, const control::MigrationLimits& limits) {
    std::vector<std::string> all;
    std::vector<std::string> namespaced;
    for (const auto& kind : server.context().kinds()->all()) {
        // Views of a stored kind, and kinds that are only asked, have nothing of their own; events end by themselves.
        const bool stored = kind->stored_kind.empty() && kind->allows("watch") && kind->plural != "events";
        if (!stored) continue;
        all.push_back(api::store_kind(kind->group, kind->plural));
        if (kind->namespaced) namespaced.push_back(all.back());
    }
    std::vector<std::unique_ptr<control::Reconciler>> out;
    out.push_back(control::simulated_pods_reconciler());
    out.push_back(control::simulated_nodes_reconciler());
    out.push_back(run::simulated_agents_reconciler());
    out.push_back(control::replicaset_reconciler());
    out.push_back(control::deployment_reconciler());
    out.push_back(control::statefulset_reconciler());
    out.push_back(control::daemonset_reconciler());
    out.push_back(control::job_reconciler());
    out.push_back(control::cronjob_reconciler());
    out.push_back(control::endpoints_reconciler());
    out.push_back(control::disruption_reconciler());
    out.push_back(control::migration_reconciler(limits));
    out.push_back(control::reserved_cores_reconciler());
    out.push_back(control::garbage_reconciler(all));
    out.push_back(control::namespace_reconciler(namespaced));
    out.push_back(control::claim_binder_reconciler());
    out.push_back(control::volume_binder_reconciler());
    out.push_back(control::simulated_provisioner_reconciler());
    out.push_back(control::ephemeral_volumes_reconciler());
    out.push_back(control::namespace_defaults_reconciler(server.ca_certificate()));
    return out;
}

// A name that means none would leave out nothing, in silence.
Status known_controllers(const std::vector<std::string>& given, const Reconcilers& all) {
    std::vector<std::string> names{std::string(kReservationController), std::string(kBatchController),
                                   std::string(kLowNodeLoad)};
    for (const auto& reconciler : all) names.emplace_back(reconciler->name());
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const auto& word : given) {
        const std::string name = word.starts_with('-') ? word.substr(1) : word;
        if (word == "*" || std::binary_search(names.begin(), names.end(), name)) continue;
        const std::string meant = cli::near_word(name, names);
        return base::bad_request(fmt::format("--controllers: there is no controller \"{}\"{}; there are {}", name,
                                             meant.empty() ? "" : fmt::format(", did you mean {}?", meant),
                                             fmt::join(names, ", ")));
    }
    return {};
}

// From the file, or the default profile under the names that manifests use.
Result<sched::Configuration> scheduler_configuration(const UpOptions& options) {
    const auto& file = options.server.scheduler_config;
    if (!file.empty()) return cli::read_configuration_file(file);
    sched::Configuration config;
    config.profiles = run::usual_profiles();
    return config;
}

}  // namespace

// "--controllers=-job" leaves one out, "--controllers=job,garbage" all others, as kube-controller-manager has it with
// "*" in front of the first form.
bool leaves_out(const UpOptions& options, std::string_view name) {
    const auto& given = options.controllers;
    const auto has = [&](const std::string& word) {
        return std::find(given.begin(), given.end(), word) != given.end();
    };
    if (has("-" + std::string(name))) return true;
    const bool only = std::any_of(given.begin(), given.end(), [](const auto& word) { return !word.starts_with('-'); });
    return only && !has("*") && !has(std::string(name));
}

Result<std::vector<std::unique_ptr<Component>>> start_components(Server& server, const UpOptions& options) {
    const auto descheduler = TRY(cli::read_descheduler_file(options.descheduler_config));
    Reconcilers reconcilers = all_reconcilers(server, descheduler.limits);
    TRY(known_controllers(options.controllers, reconcilers));
    std::erase_if(reconcilers, [&](const auto& reconciler) { return leaves_out(options, reconciler->name()); });
    if (!server.store().failure()) TRY(create_first_objects(server, options));
    std::vector<std::unique_ptr<Component>> out;
    const base::Clock& clock = server.context().clock;
    base::Metrics& metrics = server.front().metrics();
    if (!options.no_scheduler) {
        sched::Configuration config = TRY(scheduler_configuration(options));
        if (options.shares) config.options.shares = TRY(read_arbitrator_flags(options.arbitrator)).settings;
        run::Extenders extenders = TRY(run::Extenders::open(config.options.extenders));
        out.push_back(std::make_unique<DriverThread>("scheduler", clock, [&](link::Wake wake) {
            run::SchedulerDriver::Doors doors{local_link(server, api::scheduler_identity()), std::move(wake), metrics,
                                              clock, std::move(extenders)};
            return std::make_unique<run::SchedulerDriver>(std::move(doors), std::move(config.profiles), config.options);
        }));
    }
    const auto doors = [&](const char* identity, const char* component, link::Wake wake) {
        return run::ControllersDriver::Doors{local_link(server, api::controller_identity(identity)), std::move(wake),
                                             metrics, component};
    };
    // These read what is counted, once for all of them.
    Reconcilers counting;
    if (!leaves_out(options, kReservationController))
        counting = control::reservation_reconcilers(options.reservation_gc);
    if (!leaves_out(options, kBatchController)) counting.push_back(control::batch_reconciler());
    if (descheduler.load.enable && !leaves_out(options, kLowNodeLoad))
        counting.push_back(control::low_node_load_reconciler(descheduler.load));
    if (!counting.empty()) {
        out.push_back(std::make_unique<DriverThread>("reservations", clock, [&](link::Wake wake) {
            return std::make_unique<run::ControllersDriver>(doors("reservation", "berth-reservations", std::move(wake)),
                                                            std::move(counting));
        }));
    }
    if (options.shares) {
        auto arbitration = TRY(read_arbitrator_flags(options.arbitrator));
        arbitration.gates = options.share_gates;
        out.push_back(std::make_unique<DriverThread>("arbitrator", clock, [&](link::Wake wake) {
            run::ArbitratorDriver::Doors way{local_link(server, api::controller_identity("arbitrator")),
                                             std::move(wake), metrics};
            return std::make_unique<run::ArbitratorDriver>(std::move(way), arbitration);
        }));
    }
    const auto controllers = [&](link::Wake wake) {
        return std::make_unique<run::ControllersDriver>(doors("berth", "berth-controllers", std::move(wake)),
                                                        std::move(reconcilers), descheduler.pace);
    };
    out.push_back(std::make_unique<DriverThread>("controllers", clock, controllers, base::Turn::Behind));
    return out;
}

}  // namespace berth::app
