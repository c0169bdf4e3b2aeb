#include "app/first_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include "api/call.h"
#include "api/pki.h"
#include "app/local_link.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mentions.h"
#include "cli/dump.h"
#include "cli/input_check.h"
#include "control/simulated.h"
#include "control/volumes.h"
#include "model/kinds/effects.h"
#include "model/quantity.h"
#include "node/machine.h"
#include "run/simulated_machines.h"

namespace berth::app {
namespace {

constexpr size_t kMostTold = 30;  // sentences about one file

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
Status create_once(Server& server, Pipeline& pipeline, const Json& object) {
    const auto kinds = server.context().kinds();
    const auto version = std::string(base::find_string(object, {"apiVersion"}));
    const model::Kind* kind = kinds->of(version, base::find_string(object, {"kind"}));
    if (!kind)
        return base::bad_request(fmt::format("no such kind: {} {}", version, base::find_string(object, {"kind"})));
    std::string ns(base::find_string(object, {"metadata", "namespace"}));
    if (kind->namespaced && ns.empty()) ns = "default";
    const std::string name(base::find_string(object, {"metadata", "name"}));
    const store::Key key{api::store_kind(kind->group, kind->plural), ns, name};
    if (!server.store().head(key)) pipeline.send({"POST", collection_of(*kind, ns), base::to_text(object)});
    return {};
}

// What others need comes first, and a reservation holds its room before its owners come to use it.
int turn_of(const Json& object) {
    const auto kind = base::find_string(object, {"kind"});
    if (kind == "Namespace" || kind == "Node") return 0;
    if (kind == "Reservation") return 2;
    return kind == "Pod" ? 3 : 1;
}

// Nodes of a file are simulated ones. What it says of their CPUs stays as it says it.
Status create_all(std::vector<Json> objects, Server& server, link::ApiClient& door) {
    std::stable_sort(objects.begin(), objects.end(),
                     [](const Json& a, const Json& b) { return turn_of(a) < turn_of(b); });
    Pipeline pipeline(door);
    for (auto& object : objects) {
        if (base::find_string(object, {"kind"}) == "Node") {
            base::object_at(object, {"metadata", "annotations"})[control::kSimulatedNode] = "true";
        }
        base::object_at(object, {"metadata"}).erase("resourceVersion");
        TRY(create_once(server, pipeline, object));
    }
    return pipeline.arrive();
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
        Pipeline pipeline(door);
        TRY(create_once(server_, pipeline,
                        JsonObject{{"apiVersion", "v1"},
                                   {"kind", "ConfigMap"},
                                   {"metadata", JsonObject{{"name", kName}, {"namespace", "kube-system"}}}}));
        pipeline.send({"PATCH", fmt::format("/api/v1/namespaces/kube-system/configmaps/{}", kName), base::to_text(mark),
                       "application/merge-patch+json"});
        return pipeline.arrive();
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
    for (const auto& [flag, amount] : {std::pair("--node-cpu", node.cpu), std::pair("--node-memory", node.memory)}) {
        const auto read = model::Quantity::parse(amount);
        if (!read) return base::bad_request(fmt::format("{}: {}", flag, read.error().message));
        if (read->is_negative()) return base::bad_request(fmt::format("{}: {} is less than nothing", flag, amount));
    }
    for (const auto& label : options.node_labels) {
        const auto equals = label.find('=');
        if (equals == std::string::npos) {
            return base::bad_request(fmt::format("--node-labels: \"{}\" is not key=value", label));
        }
        node.labels.emplace_back(label.substr(0, equals), label.substr(equals + 1));
    }
    return node;
}

// What a file brings that nobody acts on: told once for all objects of which the same is to be said.
void tell_effects(const std::string& file, const std::vector<Json>& objects, const model::Kinds& kinds) {
    struct Said {
        std::string first;
        size_t more = 0;
    };
    std::map<std::string, Said> told;
    cli::InputCheck check;
    for (const auto& object : objects) {
        check.see(object);
        const auto kind = base::find_string(object, {"kind"});
        const model::Kind* known = kinds.of(base::find_string(object, {"apiVersion"}), kind);
        if (!known) continue;  // creating it fails
        for (const auto& remark : model::remarks_on(object, *known)) {
            const auto ns = base::find_string(object, {"metadata", "namespace"});
            const auto [at, fresh] = told.try_emplace(remark.text);
            at->second.more += !fresh;
            if (fresh) {
                at->second.first = fmt::format("{} {}{}{}", kind, ns, ns.empty() ? "" : "/",
                                               base::find_string(object, {"metadata", "name"}));
            }
        }
    }
    for (const auto& remark : check.remarks()) fmt::print(stderr, "berth up: warning: {}: {}\n", file, remark);
    size_t lines = 0;
    for (const auto& [text, about] : told) {
        if (++lines > kMostTold) break;
        fmt::print(stderr, "berth up: warning: {}: {}{}: {}\n", file, about.first,
                   about.more == 0 ? "" : fmt::format(" and {} more", about.more), text);
    }
    if (told.size() > kMostTold) {
        fmt::print(stderr, "berth up: warning: {}: {} more of this kind; docs/reference/embedded.md has them all\n",
                   file, told.size() - kMostTold);
    }
}

// From --nodes-file, or as many as --nodes says.
Status create_nodes(Server& server, const UpOptions& options, link::ApiClient& door) {
    if (!options.nodes_file.empty()) {
        auto objects = TRY(cli::read_object_file(options.nodes_file));
        tell_effects(options.nodes_file, objects, *server.context().kinds());
        auto made = create_all(std::move(objects), server, door);
        if (!made) return base::bad_request(fmt::format("{}: {}", options.nodes_file, made.error().message));
        return {};
    }
    control::SimulatedNode node = TRY(node_template(options));
    std::optional<node::Machine> machine;
    if (!options.node_topology.empty()) {
        machine = TRY(node::read_machine(options.node_topology));
        if (options.node_cpu == UpOptions().node_cpu) node.cpu = fmt::format("{}", machine->cpus.size());
    }
    const run::SimulatedGpus gpus =
        options.node_gpus.empty() ? run::SimulatedGpus() : TRY(run::read_simulated_gpus(options.node_gpus));
    run::add_gpus(gpus, node);
    if (const size_t there = server.store().count("nodes"); there > static_cast<size_t>(options.nodes)) {
        base::log_warning("The store has more nodes than --nodes asks for; none is removed",
                          {{"nodes", there}, {"asked", options.nodes}});
    }
    Pipeline pipeline(door);
    for (int i = 0; i < options.nodes; ++i) {
        node.name = fmt::format("node-{}", i);
        TRY(create_once(server, pipeline, control::simulated_node(node, server.context().clock.wall())));
        if (machine) TRY(create_once(server, pipeline, run::topology_of(*machine, node.name)));
        if (gpus.count > 0) TRY(create_once(server, pipeline, run::device_of(gpus, machine, node.name)));
    }
    return pipeline.arrive();
}

// What claims get that name no class, where nobody has brought one: volumes that the simulated nodes can have.
Status create_storage_class(Server& server, link::ApiClient& door) {
    if (!TRY(server.store().list({.kind = "storage.k8s.io/storageclasses", .limit = 1})).records.empty()) return {};
    Pipeline pipeline(door);
    const JsonObject notes{{"storageclass.kubernetes.io/is-default-class", "true"}};
    TRY(create_once(server, pipeline,
                    JsonObject{{"apiVersion", "storage.k8s.io/v1"},
                               {"kind", "StorageClass"},
                               {"metadata", JsonObject{{"name", "standard"}, {"annotations", notes}}},
                               {"provisioner", control::kSimulatedProvisioner},
                               {"volumeBindingMode", "WaitForFirstConsumer"}}));
    return pipeline.arrive();
}

// The classes that Koordinator installs and its manifests name, where an import has not brought them.
Status create_priority_classes(Server& server, link::ApiClient& door) {
    constexpr std::pair<const char*, int> kClasses[] = {
        {"koord-prod", 9000}, {"koord-mid", 7000}, {"koord-batch", 5000}, {"koord-free", 3000}};
    Pipeline pipeline(door);
    for (const auto& [name, value] : kClasses) {
        TRY(create_once(server, pipeline,
                        JsonObject{{"apiVersion", "scheduling.k8s.io/v1"},
                                   {"kind", "PriorityClass"},
                                   {"metadata", JsonObject{{"name", name}}},
                                   {"value", value}}));
    }
    return pipeline.arrive();
}

// The nodes of an import come before those of the flags, and what is on nodes after all of them.
Status create_imports(Server& server, const UpOptions& options, link::ApiClient& door) {
    if (options.import_file.empty()) return create_nodes(server, options, door);
    auto objects = TRY(cli::read_object_file(options.import_file));
    const Imports imports(objects, server);
    if (imports.known()) return create_nodes(server, options, door);
    tell_effects(options.import_file, objects, *server.context().kinds());
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

}  // namespace

Status create_first_objects(Server& server, const UpOptions& options) {
    const auto door = local_link(server, {"berth:up", {std::string(api::kMasters), std::string(api::kImporters)}});
    TRY(create_imports(server, options, *door));
    TRY(create_priority_classes(server, *door));
    return create_storage_class(server, *door);
}

}  // namespace berth::app
