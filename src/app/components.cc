#include "app/components.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "api/call.h"
#include "api/pki.h"
#include "app/driver_thread.h"
#include "app/local_link.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mentions.h"
#include "cli/config_file.h"
#include "cli/dump.h"
#include "cli/near_word.h"
#include "control/reservations.h"
#include "control/simulated.h"
#include "control/volumes.h"
#include "run/cluster.h"
#include "run/controllers_driver.h"
#include "run/scheduler_driver.h"
#include "sched/plugin.h"

namespace berth::app {
namespace {

constexpr std::string_view kReservationController = "reservation";

// Requests one behind the other, many of them under way: each sees what those before it wrote. The first refusal is
// kept. The answers come on other threads.
class Pipeline {
public:
    explicit Pipeline(link::ApiClient& door) : door_(door) {}
    ~Pipeline() { wait_below(1); }
    Pipeline(const Pipeline&) = delete;
    Pipeline& operator=(const Pipeline&) = delete;

    void send(link::Request request) {
        wait_below(kMostUnderWay);
        {
            const std::lock_guard lock(mutex_);
            ++under_way_;
        }
        const std::string what = request.method + " " + request.path;
        door_.send(std::move(request), [this, what](const Result<link::Reply>& reply) {
            const std::lock_guard lock(mutex_);
            if (!reply) keep(reply.error());
            if (reply && !reply->ok()) keep({Reason::InternalError, fmt::format("{}: {}", what, reply->body)});
            --under_way_;
            changed_.notify_one();
        });
    }
    // When all have been answered.
    Status arrive() {
        wait_below(1);
        if (failure_) return *failure_;
        return {};
    }

private:
    static constexpr size_t kMostUnderWay = 512;

    void keep(Error error) {
        if (!failure_) failure_ = std::move(error);
    }
    void wait_below(size_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return under_way_ < count; });
    }

    link::ApiClient& door_;
    std::mutex mutex_;
    std::condition_variable changed_;
    size_t under_way_ = 0;
    std::optional<Error> failure_;
};

std::string collection_of(const model::Kind& kind, const std::string& ns) {
    std::string path = kind.group.empty() ? "/api/" + kind.version : "/apis/" + kind.group + "/" + kind.version;
    if (!ns.empty()) path += "/namespaces/" + ns;
    return path + "/" + kind.plural;
}

// Creates an object with its status, unless one of its name exists.
Status create_once(Server& server, Pipeline& convoy, const Json& object) {
    const auto kinds = server.context().kinds();
    const auto version = std::string(base::find_string(object, {"apiVersion"}));
    const model::Kind* kind = kinds->of(version, base::find_string(object, {"kind"}));
    if (!kind)
        return base::bad_request(fmt::format("no such kind: {} {}", version, base::find_string(object, {"kind"})));
    std::string ns(base::find_string(object, {"metadata", "namespace"}));
    if (kind->namespaced && ns.empty()) ns = "default";
    const std::string name(base::find_string(object, {"metadata", "name"}));
    const store::Key key{api::store_kind(kind->group, kind->plural), ns, name};
    if (!server.store().head(key)) convoy.send({"POST", collection_of(*kind, ns), base::to_text(object)});
    return {};
}

// What others need comes first, and a reservation holds its room before its owners come to use it.
int turn_of(const Json& object) {
    const auto kind = base::find_string(object, {"kind"});
    if (kind == "Namespace" || kind == "Node") return 0;
    if (kind == "Reservation") return 2;
    return kind == "Pod" ? 3 : 1;
}

// Nodes of a file are simulated ones.
Status create_all(std::vector<Json> objects, Server& server, link::ApiClient& door) {
    std::stable_sort(objects.begin(), objects.end(),
                     [](const Json& a, const Json& b) { return turn_of(a) < turn_of(b); });
    Pipeline convoy(door);
    for (auto& object : objects) {
        if (base::find_string(object, {"kind"}) == "Node") {
            base::object_at(object, {"metadata", "annotations"})[control::kSimulatedNode] = "true";
        }
        base::object_at(object, {"metadata"}).erase("resourceVersion");
        TRY(create_once(server, convoy, object));
    }
    return convoy.arrive();
}

// Which texts were brought: what has been deleted since then stays so.
class Imports {
public:
    Imports(const std::vector<Json>& objects, Server& server) : server_(server) {
        std::string text;
        for (const auto& object : objects) text += base::to_text(object);
        mark_ = api::sha256_hex(text);
    }
    bool known() const {
        const auto record = server_.store().head({"configmaps", "kube-system", std::string(kName)});
        return record != nullptr && base::mentions(*record->bytes, mark_);
    }
    Status remember(const std::string& file, link::ApiClient& door) const {
        const Json mark(JsonObject{{"data", JsonObject{{mark_, file}}}});
        Pipeline convoy(door);
        TRY(create_once(server_, convoy,
                        JsonObject{{"apiVersion", "v1"},
                                   {"kind", "ConfigMap"},
                                   {"metadata", JsonObject{{"name", kName}, {"namespace", "kube-system"}}}}));
        convoy.send({"PATCH", fmt::format("/api/v1/namespaces/kube-system/configmaps/{}", kName), base::to_text(mark),
                     "application/merge-patch+json"});
        return convoy.arrive();
    }

private:
    static constexpr std::string_view kName = "berth-imports";

    Server& server_;
    std::string mark_;
};

Result<control::SimulatedNode> node_template(const UpOptions& options) {
    control::SimulatedNode node;
    node.cpu = options.node_cpu;
    node.memory = options.node_memory;
    for (const auto& label : options.node_labels) {
        const auto equals = label.find('=');
        if (equals == std::string::npos) {
            return base::bad_request(fmt::format("--node-labels: \"{}\" is not key=value", label));
        }
        node.labels.emplace_back(label.substr(0, equals), label.substr(equals + 1));
    }
    return node;
}

// From --nodes-file, or as many as --nodes says.
Status create_nodes(Server& server, const UpOptions& options, link::ApiClient& door) {
    if (!options.nodes_file.empty()) {
        auto made = create_all(TRY(cli::read_object_file(options.nodes_file)), server, door);
        if (!made) return base::bad_request(fmt::format("{}: {}", options.nodes_file, made.error().message));
        return {};
    }
    control::SimulatedNode node = TRY(node_template(options));
    if (const size_t there = server.store().count("nodes"); there > static_cast<size_t>(options.nodes)) {
        base::log_warning("The store has more nodes than --nodes asks for; none is removed",
                          {{"nodes", there}, {"asked", options.nodes}});
    }
    Pipeline convoy(door);
    for (int i = 0; i < options.nodes; ++i) {
        node.name = fmt::format("node-{}", i);
        TRY(create_once(server, convoy, control::simulated_node(node, server.context().clock.wall())));
    }
    return convoy.arrive();
}

// What claims get that name no class, where nobody has brought one: volumes that the simulated nodes can have.
Status create_storage_class(Server& server, link::ApiClient& door) {
    if (!TRY(server.store().list({.kind = "storage.k8s.io/storageclasses", .limit = 1})).records.empty()) return {};
    Pipeline convoy(door);
    const JsonObject notes{{"storageclass.kubernetes.io/is-default-class", "true"}};
    TRY(create_once(server, convoy,
                    JsonObject{{"apiVersion", "storage.k8s.io/v1"},
                               {"kind", "StorageClass"},
                               {"metadata", JsonObject{{"name", "standard"}, {"annotations", notes}}},
                               {"provisioner", control::kSimulatedProvisioner},
                               {"volumeBindingMode", "WaitForFirstConsumer"}}));
    return convoy.arrive();
}

// The nodes of an import come before those of the flags, and what is on nodes after all of them.
Status create_imports(Server& server, const UpOptions& options, link::ApiClient& door) {
    if (options.import_file.empty()) return create_nodes(server, options, door);
    auto objects = TRY(cli::read_object_file(options.import_file));
    const Imports imports(objects, server);
    if (imports.known()) return create_nodes(server, options, door);
    const auto create = [&](auto begin, auto end) -> Status {
        auto made = create_all({begin, end}, server, door);
        if (!made) return base::bad_request(fmt::format("{}: {}", options.import_file, made.error().message));
        return {};
    };
    const auto others =
        std::stable_partition(objects.begin(), objects.end(), [](const Json& object) { return turn_of(object) == 0; });
    TRY(create(objects.begin(), others));
    TRY(create_nodes(server, options, door));
    TRY(create(others, objects.end()));
    return imports.remember(options.import_file, door);
}

Status create_first_objects(Server& server, const UpOptions& options) {
    const auto door = local_link(server, {"berth:up", {std::string(api::kMasters), std::string(api::kImporters)}});
    TRY(create_imports(server, options, *door));
    return create_storage_class(server, *door);
}

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

using Reconcilers = run::ControllersDriver::Reconcilers;

Reconcilers all_reconcilers(Server& server) {
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
    out.push_back(control::replicaset_reconciler());
    out.push_back(control::deployment_reconciler());
    out.push_back(control::statefulset_reconciler());
    out.push_back(control::daemonset_reconciler());
    out.push_back(control::job_reconciler());
    out.push_back(control::cronjob_reconciler());
    out.push_back(control::endpoints_reconciler());
    out.push_back(control::disruption_reconciler());
    out.push_back(control::garbage_reconciler(all));
    out.push_back(control::namespace_reconciler(namespaced));
    out.push_back(control::claim_binder_reconciler());
    out.push_back(control::volume_binder_reconciler());
    out.push_back(control::simulated_provisioner_reconciler());
    out.push_back(control::namespace_defaults_reconciler(server.ca_certificate()));
    return out;
}

// A name that means none would leave out nothing, in silence.
Status known_controllers(const std::vector<std::string>& given, const Reconcilers& all) {
    std::vector<std::string> names{std::string(kReservationController)};
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

Result<std::vector<std::unique_ptr<Component>>> start_components(Server& server, const UpOptions& options) {
    Reconcilers reconcilers = all_reconcilers(server);
    TRY(known_controllers(options.controllers, reconcilers));
    std::erase_if(reconcilers, [&](const auto& reconciler) { return leaves_out(options, reconciler->name()); });
    if (!server.store().failure()) TRY(create_first_objects(server, options));
    std::vector<std::unique_ptr<Component>> out;
    const base::Clock& clock = server.context().clock;
    base::Metrics& metrics = server.front().metrics();
    if (!options.no_scheduler) {
        sched::Configuration config = TRY(scheduler_configuration(options));
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
    if (!leaves_out(options, kReservationController)) {
        out.push_back(std::make_unique<DriverThread>("reservations", clock, [&](link::Wake wake) {
            return std::make_unique<run::ControllersDriver>(doors("reservation", "berth-reservations", std::move(wake)),
                                                            control::reservation_reconcilers(options.reservation_gc));
        }));
    }
    const auto controllers = [&](link::Wake wake) {
        return std::make_unique<run::ControllersDriver>(doors("berth", "berth-controllers", std::move(wake)),
                                                        std::move(reconcilers));
    };
    out.push_back(std::make_unique<DriverThread>("controllers", clock, controllers, base::Turn::Behind));
    return out;
}

}  // namespace berth::app
