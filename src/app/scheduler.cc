#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/attached.h"
#include "app/commands.h"
#include "app/scheduler_run.h"
#include "app/server.h"
#include "cli/command.h"

namespace berth::app {
namespace {

struct SchedulerOptions {
    AttachedOptions attached;
    std::vector<std::string> names{"berth"};
};

int run(const SchedulerOptions& options) {
    auto server = link::connect(options.attached.access, options.attached.remote);
    if (!server) {
        fmt::print(stderr, "berth scheduler: {}\n", server.error().message);
        return cli::kFailed;
    }
    sched::Scheduler::Profiles profiles;
    for (const auto& name : options.names) profiles.emplace(name, sched::default_profile());
    const SchedulerRun running(std::move(*server), std::move(profiles), base::system_clock());
    wait_for_stop([] {});
    return cli::kDone;
}

}  // namespace

int scheduler(std::vector<std::string> words) {
    CLI::App app("The scheduler against any Kubernetes API server.", "berth scheduler");
    SchedulerOptions options;
    add_attached_flags(app, options.attached);
    app.add_option("--scheduler-name", options.names, "spec.schedulerName to serve, may be repeated")
        ->delimiter(',')
        ->capture_default_str();
    if (const auto code = parse_words(app, std::move(words))) return *code;
    raise_file_limit();
    block_stop_signals();
    return run(options);
}

}  // namespace berth::app
