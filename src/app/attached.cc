#include "app/attached.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>

#include "app/address.h"
#include "app/health.h"
#include "app/server.h"
#include "base/log.h"
#include "base/private_file.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "link/leadership.h"

namespace berth::app {
namespace {

// How soon after the lease is ours the component starts.
constexpr auto kLook = std::chrono::milliseconds(100);

[[noreturn]] void lost_lease(const std::string& command, const AttachedOptions& options) {
    fmt::print(stderr, "{}: the lease {}/{} was lost, so another one may lead: ending\n", command,
               options.lease_namespace, options.lease_name);
    std::_Exit(cli::kFailed);
}

// Its requests must fail in time to be tried again before the deadline.
Result<std::unique_ptr<link::Leadership>> stand_for_election(const std::string& command,
                                                             const AttachedOptions& options) {
    TRY(options.times.check());
    link::RemoteOptions remote;
    remote.timeout = options.times.deadline / 2;
    remote.patience = {};
    auto server = TRY(link::connect(options.access, remote));
    link::LeadershipOptions leadership{options.lease_namespace, options.lease_name, link::new_identity(),
                                       options.times};
    base::log_info("Waiting for the lease",
                   {{"lease", leadership.ns + "/" + leadership.name}, {"identity", leadership.identity}});
    return std::make_unique<link::Leadership>(std::move(server), std::move(leadership), base::system_clock(),
                                              [command, options] { lost_lease(command, options); });
}

// One attached process: its parts in the order in which they need each other.
class Attachment {
public:
    Attachment(std::string command, AttachedOptions options, const StartComponent& start)
        : command_(std::move(command)), options_(std::move(options)), start_(start) {}

    Status run() {
        add_process_metrics(metrics_);
        TRY(serve_health());
        if (options_.leader_elect) {
            leadership_ = TRY(stand_for_election(command_, options_));
            options_.remote.fence = leadership_->fence();
        }
        options_.remote.metrics = &metrics_;
        auto server = TRY(link::connect(options_.access, options_.remote));
        if (options_.connected) TRY(options_.connected());
        auto& leads = metrics_.gauge("leader_election_master_status", "1 while this process leads.",
                                     {{"name", options_.lease_name}});
        rest_until_stop([&]() -> base::Duration {
            if (component_) return std::chrono::hours(1);
            if (leadership_ && !leadership_->leads()) return kLook;
            base::log_info("Starting", {{"component", command_}});
            leads.set(1);
            component_ = start_(std::move(server), metrics_);
            started_ = component_.get();
            return std::chrono::hours(1);
        });
        started_ = nullptr;
        component_.reset();
        leadership_.reset();
        return {};
    }

private:
    Status serve_health() {
        if (options_.bind_address == "0") return {};
        const Address address = TRY(parse_address("--metrics-bind-address", options_.bind_address));
        TRY(base::check_private(options_.metrics_token_file));
        return health_.start({address.host, address.port, options_.metrics_token_file});
    }
    // Who waits for the lease is ready to take over.
    std::string unready() const {
        const Component* component = started_;
        if (component == nullptr) return leadership_ || options_.leader_elect ? "" : "not started";
        return component->synced() ? "" : "the server's objects have not all come yet";
    }

    const std::string command_;
    AttachedOptions options_;
    const StartComponent& start_;
    base::Metrics metrics_;
    std::unique_ptr<link::Leadership> leadership_;
    std::unique_ptr<Component> component_;
    std::atomic<const Component*> started_ = nullptr;
    HealthServer health_{metrics_, [this] { return unready(); }};
};

}  // namespace

void add_attached_flags(cli::CommandLine& line, AttachedOptions& options) {
    line.option("--kubeconfig", options.access.kubeconfig,
                "the server and who we are; default $KUBECONFIG, then a pod's service account, then ~/.kube/config");
    line.option("--context", options.access.context, "a context of the kubeconfig instead of its current one");
    line.option("--max-requests-in-flight", options.remote.in_flight, "requests at once, watches apart")
        .show_default()
        .within(1, 10'000);
    line.flag("--leader-elect", options.leader_elect, "of several such processes only the holder of the lease acts");
    line.duration("--leader-elect-lease-duration", options.times.lease,
                  "how long others wait after they saw the last renewal");
    line.duration("--leader-elect-renew-deadline", options.times.deadline,
                  "a leader that could not renew for so long ends");
    line.duration("--leader-elect-retry-period", options.times.retry, "the time between tries");
    line.option("--leader-elect-resource-name", options.lease_name, "the Lease").show_default();
    line.option("--leader-elect-resource-namespace", options.lease_namespace, "its namespace").show_default();
    line.option("--metrics-bind-address", options.bind_address,
                "HOST:PORT of /healthz, /livez, /readyz and /metrics, without TLS; 0 is nowhere")
        .show_default();
    line.option("--metrics-token-file", options.metrics_token_file,
                "whose token a scrape of /metrics from another machine must show; without it none is answered");
    line.logs();
}

int run_attached(const std::string& command, AttachedOptions options, const StartComponent& start) {
    raise_file_limit();
    block_stop_signals();
    const auto done = Attachment(command, std::move(options), start).run();
    if (done) return cli::kDone;
    fmt::print(stderr, "{}: {}\n", command, done.error().message);
    return cli::kFailed;
}

}  // namespace berth::app
