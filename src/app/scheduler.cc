#include <fmt/format.h>

#include "app/attached.h"
#include "app/commands.h"
#include "app/driver_thread.h"
#include "app/scheduler_config.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/share_flags.h"
#include "run/scheduler_driver.h"

namespace berth::app {
namespace {

struct SchedulerFlags {
    AttachedOptions attached;
    std::vector<std::string> names;
    std::string config;
    std::vector<std::string> shares;  // "": it solves for itself
    std::string arbitrator = "http://127.0.0.1:8899";
    cli::ShareFlags share;
};

std::optional<int> parse(const std::vector<std::string>& words, SchedulerFlags& flags) {
    cli::CommandLine line("The scheduler against any Kubernetes API server.", "berth scheduler");
    add_attached_flags(line, flags.attached);
    line.option("--scheduler-name", flags.names, "spec.schedulerName to serve, may be repeated (default berth)")
        .separated_by(',');
    line.option("--config", flags.config, "a KubeSchedulerConfiguration; flags win over what it says");
    line.option("--shares", flags.shares,
                "pods start only where their namespace deserves it (Consumer): alone, this scheduler computes that "
                "itself and must be the only one; =arbitrator asks `berth arbitrator`, beside other schedulers")
        .may_be_empty();
    line.option("--arbitrator", flags.arbitrator, "where --shares=arbitrator asks").show_default();
    add_share_flags(line, flags.share);
    line.example("berth scheduler --kubeconfig F --shares", "with guarantees, limits and fair shares of namespaces");
    line.example("berth scheduler --kubeconfig ~/.kube/config", "serves pods with schedulerName: berth");
    line.example("berth scheduler --kubeconfig F --scheduler-name batch --leader-elect",
                 "one of several, for pods of that name");
    line.example("berth scheduler --kubeconfig F --config scheduler.yaml",
                 "with the profiles of a KubeSchedulerConfiguration");
    return line.parse(words);
}

// Whoever answers for all schedulers is asked about each pod, last of all, and about those who would go for one.
sched::Extender arbitrator_at(std::string url) {
    sched::Extender extender;
    while (url.ends_with('/')) url.pop_back();
    extender.https = url.starts_with("https://");
    extender.url = std::move(url);
    extender.filter_verb = "filter";
    extender.preempt_verb = "preempt";
    extender.node_cache_capable = true;
    return extender;
}

// Which shares there are, and where they come from.
Status take_shares(const SchedulerFlags& flags, sched::SchedulerOptions& options) {
    auto settings = TRY(cli::read_share_flags(flags.share));
    if (flags.shares.empty()) return {};
    const std::string& from = flags.shares.back();
    if (from == "arbitrator") {
        options.extenders.push_back(arbitrator_at(flags.arbitrator));
    } else if (from.empty()) {
        options.shares = std::move(settings);
    } else {
        return base::bad_request(fmt::format("--shares: \"{}\" is neither nothing nor arbitrator", from));
    }
    return {};
}

}  // namespace

int scheduler(std::vector<std::string> words) {
    SchedulerFlags flags;
    flags.attached.lease_name = "berth-scheduler";
    flags.attached.bind_address = "127.0.0.1:10259";
    if (const auto code = parse(words, flags)) return *code;
    sched::Configuration config;
    if (!flags.config.empty()) {
        auto read = read_scheduler_config(flags.config, "berth", flags.attached);
        if (!read) {
            fmt::print(stderr, "berth scheduler: {}\n", read.error().message);
            return cli::kFailed;
        }
        config = std::move(*read);
        if (const auto code = parse(words, flags)) return *code;
    }
    for (const auto& name : flags.names) config.profiles.emplace(name, sched::default_profile());
    if (config.profiles.empty()) config.profiles.emplace("berth", sched::default_profile());
    config.options.claims_first = true;
    if (const auto taken = take_shares(flags, config.options); !taken) {
        fmt::print(stderr, "berth scheduler: {}\n", taken.error().message);
        return cli::kWrongUsage;
    }
    auto extenders = run::Extenders::open(config.options.extenders);
    if (!extenders) {
        fmt::print(stderr, "berth scheduler: {}\n", extenders.error().message);
        return cli::kFailed;
    }
    const auto start = [&](std::unique_ptr<link::ApiClient> server, base::Metrics& metrics) {
        const auto& clock = base::system_clock();
        return std::make_unique<DriverThread>("scheduler", clock, [&](link::Wake wake) {
            run::SchedulerDriver::Doors doors{std::move(server), std::move(wake), metrics, clock,
                                              std::move(*extenders)};
            return std::make_unique<run::SchedulerDriver>(std::move(doors), config.profiles, config.options);
        });
    };
    return run_attached("berth scheduler", flags.attached, start);
}

}  // namespace berth::app
