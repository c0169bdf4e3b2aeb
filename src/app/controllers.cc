#include <fmt/format.h>

#include <optional>

#include "app/address.h"
#include "app/attached.h"
#include "app/commands.h"
#include "app/health.h"
#include "app/webhook.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/config_file.h"
#include "control/batch.h"
#include "control/descheduler_config.h"
#include "control/low_node_load.h"
#include "control/migration.h"
#include "control/reservations.h"
#include "control/reserved_cores.h"
#include "run/controllers_driver.h"
#include "run/webhook_driver.h"

namespace berth::app {
namespace {

struct WebhookFlags {
    std::string address, scheduler_config;
    run::WebhookOptions options{.trusted = {"system:serviceaccount:berth-system:berth-scheduler"}};
};

// How the webhook's part of the process reaches the server: a way of its own, so that neither waits for the other.
struct WebhookDoor {
    run::WebhookOptions options;
    std::function<Result<std::unique_ptr<link::ApiClient>>()> connect;
};

void add_webhook_flags(cli::CommandLine& line, WebhookFlags& flags) {
    line.option("--binding-webhook", flags.address,
                "HOST:PORT to serve a webhook at that refuses bindings into reserved room; the API server must reach "
                "it there");
    line.option("--binding-webhook-trusts", flags.options.trusted,
                "users whose bindings need no check: Berth's schedulers")
        .separated_by(',')
        .show_default();
    line.option("--scheduler-config", flags.scheduler_config,
                "the schedulers' KubeSchedulerConfiguration: the webhook looks at no resource that the profile of a "
                "pod's schedulerName ignores");
    line.duration("--binding-webhook-certificate-life", flags.options.certificate_life,
                  "how long its certificate is good; it is renewed after two thirds");
}

Result<std::optional<WebhookDoor>> open_webhook(const WebhookFlags& flags, const AttachedOptions& attached) {
    if (flags.address.empty() && !flags.scheduler_config.empty()) {
        return base::bad_request("--scheduler-config is the webhook's: --binding-webhook says where that is");
    }
    if (flags.address.empty()) return std::optional<WebhookDoor>();
    WebhookDoor door{flags.options, [attached] { return link::connect(attached.access, attached.remote); }};
    const Address address = TRY(parse_address("--binding-webhook", flags.address));
    door.options.host = address.host;
    door.options.port = address.port;
    if (address.port == 0) return base::bad_request("--binding-webhook: name a port, not 0");
    if (!flags.scheduler_config.empty()) {
        const auto config = TRY(cli::read_configuration_file(flags.scheduler_config, "berth"));
        door.options.rules = run::BindRules(config.profiles);
    }
    TRY(door.connect());
    return std::optional<WebhookDoor>(std::move(door));
}

struct Work {
    base::Duration gc = std::chrono::hours(24);
    bool no_descheduler = false;
    std::string descheduler_config;
    control::DeschedulerConfig descheduler = {};  // what that says
};

run::ControllersDriver::Reconcilers reconcilers(const Work& work) {
    auto out = control::reservation_reconcilers(work.gc);
    out.push_back(control::batch_reconciler());
    if (work.no_descheduler) return out;
    out.push_back(control::migration_reconciler(work.descheduler.limits));
    out.push_back(control::reserved_cores_reconciler());
    if (work.descheduler.load.enable) out.push_back(control::low_node_load_reconciler(work.descheduler.load));
    return out;
}

class Controllers final : public Component {
public:
    Controllers(std::unique_ptr<link::ApiClient> server, const Work& work, const std::optional<WebhookDoor>& door,
                base::Metrics& metrics)
        : reservations_("reservations", base::system_clock(), [&](link::Wake wake) {
              return std::make_unique<run::ControllersDriver>(
                  run::ControllersDriver::Doors{std::move(server), std::move(wake), metrics, "berth-reservations"},
                  reconcilers(work), work.descheduler.pace);
          }) {
        if (!door) return;
        auto way = door->connect();
        if (way) {
            const auto make = [&](run::WebhookJudge::Doors doors, std::string path) {
                run::WebhookOptions options = door->options;
                options.path = std::move(path);
                return std::make_unique<run::WebhookDriver>(std::move(doors), std::move(options));
            };
            webhook_.emplace(std::move(*way),
                             Webhook::Place{door->options.host, door->options.port, door->options.path}, make,
                             base::system_clock());
            add_http_metrics(metrics, "berth_webhook_http", webhook_->counters());
        } else {
            base::log_error("The webhook has no way to the server", {{"error", way.error()}});
        }
    }
    bool synced() const override { return reservations_.synced() && (!webhook_ || webhook_->synced()); }

private:
    DriverThread reservations_;
    std::optional<Webhook> webhook_;
};

}  // namespace

int controllers(std::vector<std::string> words) {
    cli::CommandLine line(
        "The reservations' life cycle, and batch resources from NodeMetrics, against any Kubernetes API server, which "
        "brings "
        "the other controllers.",
        "berth controllers");
    AttachedOptions options;
    options.lease_name = "berth-controllers";
    options.bind_address = "127.0.0.1:10257";
    add_attached_flags(line, options);
    Work work;
    line.duration("--reservation-gc", work.gc, "how long final reservations are kept");
    line.flag(
        "--no-descheduler", work.no_descheduler,
        "move no pods: neither by PodMigrationJobs nor off reserved cores; without it every pod is kept in memory");
    line.option("--descheduler-config", work.descheduler_config,
                "a DeschedulerConfiguration (YAML or JSON): how many pods are moved at once, and LowNodeLoad");
    WebhookFlags webhook;
    add_webhook_flags(line, webhook);
    line.example("berth controllers --kubeconfig ~/.kube/config", "beside a `berth scheduler`");
    line.example("berth controllers --kubeconfig F --leader-elect", "one of several");
    if (const auto code = line.parse(std::move(words))) return *code;
    auto descheduler = cli::read_descheduler_file(work.descheduler_config);
    if (!descheduler) return line.fail(descheduler.error());
    work.descheduler = std::move(*descheduler);
    const auto door = open_webhook(webhook, options);
    if (!door) {
        fmt::print(stderr, "berth controllers: {}\n", door.error().message);
        return cli::kFailed;
    }
    return run_attached("berth controllers", options,
                        [&](std::unique_ptr<link::ApiClient> server, base::Metrics& metrics) {
                            return std::make_unique<Controllers>(std::move(server), work, *door, metrics);
                        });
}

}  // namespace berth::app
