#include "cli/fleet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <optional>

#include "app/address.h"
#include "app/attached.h"
#include "app/commands.h"
#include "app/driver_thread.h"
#include "app/fleet_capacity.h"
#include "app/fleet_flags.h"
#include "app/footprint.h"
#include "app/health.h"
#include "app/server.h"
#include "base/log.h"
#include "base/random.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/live.h"
#include "cli/output.h"
#include "link/connect.h"
#include "link/iri_grpc.h"
#include "run/fleet_broker.h"
#include "run/fleet_provider.h"
#include "run/fleet_scheduler.h"
#include "run/poollet.h"
#include "run/sqlite_journal.h"

namespace berth::app {
namespace {

struct FleetFlags {
    std::string listen, name = "provider", data_dir = "./berth-provider", classes, exec_hook, pool, runtime;
    std::vector<std::string> capacity, overcommit, labels, selector;
    link::IriTls tls;
    AttachedOptions attached;
    cli::ServerFlags server;
    cli::Output output = cli::Output::Table;
    std::string ns = "default";
    std::string metrics_address = "0";
    int wave = 3;
    base::Duration deadline = std::chrono::seconds(2);
    bool publish_amounts = false;
};

void add_tls_flags(cli::CommandLine& line, link::IriTls& tls) {
    line.option("--tls-cert", tls.certificate, "our certificate (PEM); TLS is needed off loopback, on both sides");
    line.option("--tls-key", tls.key, "its key");
    line.option("--tls-ca", tls.ca, "who signs those of the other side");
}

void add_client_names(cli::CommandLine& line, link::IriTls& tls) {
    line.option(
            "--client-name", tls.clients,
            "who may ask: a URI or DNS name of his certificate (its common name, where it has neither); without it, "
            "whoever --tls-ca has signed")
        .separated_by(',');
}

void say_ready(const std::string& what, const std::string& where) {
    fmt::print("berth: ready {} {}\n", what, where);
    std::fflush(stdout);
}

std::string shown_address(const std::string& listen, int port) {
    const auto colon = listen.rfind(':');
    return listen.starts_with("unix:") ? listen : fmt::format("{}:{}", listen.substr(0, colon), port);
}

// Health and metrics of those that are not attached to a server by a lease.
class Watched {
public:
    explicit Watched(const std::string& address) : address_(address) { add_process_metrics(metrics_); }
    Status start() {
        if (address_ == "0") return {};
        const Address at = TRY(parse_address("--metrics-bind-address", address_));
        return health_.start({at.host, at.port, ""});
    }
    base::Metrics& metrics() { return metrics_; }

private:
    const std::string address_;
    base::Metrics metrics_;
    HealthServer health_{metrics_, [] { return std::string(); }};
};

// --- provider

Status run_provider(const FleetFlags& flags) {
    Footprint footprint(flags.data_dir);
    CapacityFile file(flags.data_dir, TRY(read_capacity(flags.capacity, "--capacity")),
                      TRY(read_capacity(flags.overcommit, "--overcommit")));
    run::ProviderOptions options;
    options.name = flags.name;
    options.classes = TRY(read_classes(flags.classes));
    auto opened = TRY(run::open_fleet_journal(flags.data_dir, std::to_string(base::seed_from_system())));
    options.epoch = opened.epoch;
    options.publish_amounts = flags.publish_amounts;
    Watched watched(flags.metrics_address);
    TRY(watched.start());
    options.metrics = &watched.metrics();
    options.capacity = TRY(file.at_start());
    run::FleetProvider::Hook hook;
    if (!flags.exec_hook.empty()) hook = exec_hook(flags.exec_hook);
    run::FleetProvider* provider = nullptr;
    std::optional<Error> trouble;
    {
        // The server lets go of the provider before the provider goes.
        DriverThread thread("fleet-provider", base::system_clock(), [&](link::Wake wake) {
            auto made = std::make_unique<run::FleetProvider>(std::move(options), std::move(opened.journal),
                                                             std::move(wake), std::move(hook));
            const auto read = made->open(run::moment(base::system_clock()));
            if (!read) trouble = read.error();
            provider = made.get();
            return made;
        });
        if (trouble) return *trouble;
        const auto server = TRY(link::IriServer::start(flags.listen, flags.tls, *provider, &watched.metrics()));
        footprint.keep();
        say_ready(shown_address(flags.listen, server->port()), fmt::format("provider={}", flags.name));
        const auto chores = [&] {
            if (auto changed = file.changed()) provider->resize(std::move(*changed));
        };
        wait_for_stop(chores);
    }
    return {};
}

// --- broker

Status run_broker(const FleetFlags& flags) {
    fleet::BrokerPlace place;
    if (!flags.pool.empty() && !flags.selector.empty())
        return base::bad_request("--pool and --pool-selector: one of them says which pools are asked");
    if (!flags.pool.empty()) TRY(check_pool_name(flags.pool));
    place.ns = flags.ns;
    place.pool = flags.pool;
    place.selector = TRY(read_label_words(flags.selector, "--pool-selector"));
    auto server = TRY(link::connect(flags.attached.access));
    Watched watched(flags.metrics_address);
    TRY(watched.start());
    run::FleetBroker::Shown shown{"", flags.publish_amounts};
    std::error_code none;
    if (const std::string& file = flags.attached.access.kubeconfig; !file.empty())
        shown.layer = std::filesystem::absolute(file, none).string();
    run::FleetBroker* broker = nullptr;
    DriverThread thread("fleet-broker", base::system_clock(), [&](link::Wake wake) {
        auto made = std::make_unique<run::FleetBroker>(run::FleetBroker::Doors{std::move(server), std::move(wake)},
                                                       place, run::FleetBroker::Times{}, shown);
        broker = made.get();
        return made;
    });
    const auto serving = TRY(link::IriServer::start(flags.listen, flags.tls, *broker, &watched.metrics()));
    say_ready(shown_address(flags.listen, serving->port()), fmt::format("broker of namespace={}", flags.ns));
    wait_for_stop([] {});
    return {};
}

// --- poollet, scheduler

int run_poollet(const FleetFlags& flags) {
    const auto refuse = [](const Error& error) {
        fmt::print(stderr, "berth fleet poollet: {}\n", error.message);
        return cli::kFailed;
    };
    if (const auto named = check_pool_name(flags.pool); !named) return refuse(named.error());
    auto runtime = link::connect_iri(flags.runtime, flags.tls);
    if (!runtime) return refuse(runtime.error());
    const auto labels = read_label_words(flags.labels, "--pool-labels");
    if (!labels) return refuse(labels.error());
    run::PoolletOptions options{flags.pool, *labels, "iri://" + flags.runtime, flags.publish_amounts};
    return run_attached(
        "berth fleet poollet", flags.attached,
        [&](std::unique_ptr<link::ApiClient> server, base::Metrics& metrics) -> std::unique_ptr<Component> {
            auto out = std::make_unique<DriverThread>("fleet-poollet", base::system_clock(), [&](link::Wake wake) {
                return std::make_unique<run::Poollet>(
                    run::Poollet::Doors{std::move(server), *runtime, std::move(wake), &metrics}, options);
            });
            say_ready("poollet", fmt::format("pool={}", options.pool));
            return out;
        });
}

int run_scheduler(const FleetFlags& flags) {
    if (flags.deadline < std::chrono::milliseconds(1)) {
        fmt::print(stderr, "berth fleet scheduler: --deadline: a pool is waited for 1ms at least\n");
        return cli::kWrongUsage;
    }
    const fleet::RoundRules rules{static_cast<size_t>(flags.wave), flags.deadline};
    return run_attached(
        "berth fleet scheduler", flags.attached,
        [&](std::unique_ptr<link::ApiClient> server, base::Metrics& metrics) -> std::unique_ptr<Component> {
            auto out = std::make_unique<DriverThread>("fleet-scheduler", base::system_clock(), [&](link::Wake wake) {
                return std::make_unique<run::FleetScheduler>(
                    run::FleetScheduler::Doors{std::move(server), std::move(wake), &metrics}, rules);
            });
            say_ready("scheduler", "of machines");
            return out;
        });
}

Status resize(const FleetFlags& flags) {
    TRY(ask_for_capacity(flags.data_dir, flags.capacity));
    fmt::print("the provider of {} has {}: one that runs takes it at once, others when they start\n", flags.data_dir,
               fmt::join(flags.capacity, ","));
    return {};
}

Status print_tree(const FleetFlags& flags) {
    const auto connection = TRY(cli::open_connection(flags.server));
    const Json tree = TRY(cli::fleet_tree(*connection.server, "root", flags.server.ns));
    const bool document = cli::is_document(flags.output);
    fmt::print("{}", document ? cli::document_text(tree, flags.output) : cli::fleet_tree_text(tree));
    return {};
}

// How each of them is told what to do.
struct FleetLines {
    cli::CommandLine& scheduler;
    cli::CommandLine& poollet;
    cli::CommandLine& broker;
    cli::CommandLine& provider;
    cli::CommandLine& resize;
    cli::CommandLine& tree;
};

void add_provider_flags(FleetLines& lines, FleetFlags& flags) {
    auto& provider = lines.provider;
    provider.option("--listen", flags.listen, "unix:///PATH or HOST:PORT").required();
    provider.option("--name", flags.name, "whose hardware it is").show_default();
    provider.option("--classes", flags.classes,
                    "MachineClass objects (YAML or JSON), for callers that send no resources");
    provider.option("--overcommit", flags.overcommit, "how often an amount is given, such as cpu=2").separated_by(',');
    provider.option("--exec-hook", flags.exec_hook,
                    "a program that makes and removes real machines: called with create, update or delete and an id, "
                    "with the machine as JSON on its input");
    add_tls_flags(provider, flags.tls);
    add_client_names(provider, flags.tls);
    provider.option("--metrics-bind-address", flags.metrics_address, "HOST:PORT of /healthz and /metrics; 0 is nowhere")
        .show_default();
    provider.logs();
    for (auto* each : {&provider, &lines.resize}) {
        each->option("--data-dir", flags.data_dir, "where the ledger of holds and machines lives").show_default();
        each->option("--capacity", flags.capacity, "such as cpu=4,memory=16Gi,nics=8,localStorage=100Gi")
            .separated_by(',')
            .required();
    }
    provider.example("berth fleet provider --listen unix:///run/a.sock --capacity cpu=4,memory=16Gi",
                     "simulated machines");
    lines.resize.example("berth fleet resize --data-dir ./berth-provider --capacity cpu=8",
                         "the running provider has more, or less");
}

void add_layer_flags(FleetLines& lines, FleetFlags& flags) {
    auto& broker = lines.broker;
    broker.option("--listen", flags.listen, "unix:///PATH or HOST:PORT").required();
    broker.option("--kubeconfig", flags.attached.access.kubeconfig, "the server of the layer below");
    broker.option("--namespace", flags.ns, "where it writes there").show_default();
    broker.option("--pool", flags.pool, "one pool of that layer alone");
    broker.option("--pool-selector", flags.selector, "pools of that layer with these labels").separated_by(',');
    add_tls_flags(broker, flags.tls);
    add_client_names(broker, flags.tls);
    broker.option("--metrics-bind-address", flags.metrics_address, "HOST:PORT of /healthz and /metrics; 0 is nowhere")
        .show_default();
    broker.logs();
    broker.example("berth fleet broker --listen unix:///run/z1.sock --kubeconfig z1.kubeconfig",
                   "for the poollet above");
    auto& poollet = lines.poollet;
    poollet.option("--pool", flags.pool, "the MachinePool that it makes and keeps Ready").required();
    poollet.option("--runtime", flags.runtime, "the provider or broker below: unix:///PATH or HOST:PORT").required();
    poollet.option("--pool-labels", flags.labels, "key=value, may be repeated").separated_by(',');
    for (auto* each : {&lines.provider, &broker, &poollet}) {
        each->flag("--publish-amounts", flags.publish_amounts,
                   "say how many machines of each class there may be; else amounts stay below");
    }
    add_tls_flags(poollet, flags.tls);
    poollet.option("--runtime-name", flags.tls.runtime,
                   "the name in the certificate of what is asked, where it is not the host of --runtime");
    add_attached_flags(poollet, flags.attached);
    poollet.example("berth fleet poollet --kubeconfig F --pool a --runtime unix:///run/a.sock", "one pool");
    auto& scheduler = lines.scheduler;
    scheduler.option("--wave", flags.wave, "how many pools are asked at once").show_default().within(1, 1000);
    scheduler.duration("--deadline", flags.deadline, "how long a silent pool is waited for");
    add_attached_flags(scheduler, flags.attached);
    scheduler.example("berth fleet scheduler --kubeconfig F", "one for each layer");
    cli::add_server_flags(lines.tree, flags.server);
    cli::output_option(lines.tree, flags.output, {cli::Output::Table, cli::Output::Json, cli::Output::Yaml});
    lines.tree.example("berth fleet tree --kubeconfig berth-data/kubeconfig", "layers, pools, and what is under way");
}

}  // namespace

int fleet(std::vector<std::string> words) {
    cli::CommandLine line("Machines through layers of pools: reserved downward, placed, cleaned up.", "berth fleet");
    FleetFlags flags;
    flags.attached.lease_name = "berth-fleet-scheduler";
    flags.attached.bind_address = "0";
    FleetLines lines{line.command("scheduler", "chooses pools, one for each layer"),
                     line.command("poollet", "connects a pool with what is below it"),
                     line.command("broker", "answers for a layer to the poollet above"),
                     line.command("provider", "owns hardware and decides alone"),
                     line.command("resize", "a running provider has more, or less"),
                     line.command("tree", "layers, pools, and what is under way")};
    add_provider_flags(lines, flags);
    add_layer_flags(lines, flags);
    line.example("berth fleet tree", "of the server of $KUBECONFIG");
    // As it is spoken of: provider resize.
    if (words.size() > 1 && words[0] == "provider" && words[1] == "resize") words.erase(words.begin());
    if (const auto code = line.parse(std::move(words))) return *code;
    const auto finish = [&](const char* command, const Status& done) {
        if (done) return cli::kDone;
        fmt::print(stderr, "berth fleet {}: {}\n", command, done.error().message);
        return cli::kFailed;
    };
    if (lines.poollet.given()) return run_poollet(flags);
    if (lines.scheduler.given()) return run_scheduler(flags);
    if (lines.tree.given()) return finish("tree", print_tree(flags));
    if (lines.resize.given()) return finish("resize", resize(flags));
    raise_file_limit();
    block_stop_signals();
    return lines.broker.given() ? finish("broker", run_broker(flags)) : finish("provider", run_provider(flags));
}

}  // namespace berth::app
