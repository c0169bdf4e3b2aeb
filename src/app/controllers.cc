#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/attached.h"
#include "app/commands.h"
#include "app/reservations_run.h"
#include "app/server.h"
#include "cli/command.h"

namespace berth::app {
namespace {

struct ControllersOptions {
    AttachedOptions attached;
    base::Duration reservation_gc = std::chrono::hours(24);
};

int run(const ControllersOptions& options) {
    auto server = link::connect(options.attached.access, options.attached.remote);
    if (!server) {
        fmt::print(stderr, "berth controllers: {}\n", server.error().message);
        return cli::kFailed;
    }
    const ReservationsRun running(std::move(*server), options.reservation_gc, base::system_clock());
    wait_for_stop([] {});
    return cli::kDone;
}

}  // namespace

int controllers(std::vector<std::string> words) {
    CLI::App app("The reservations' life cycle against any Kubernetes API server, which brings the other controllers.",
                 "berth controllers");
    ControllersOptions options;
    add_attached_flags(app, options.attached);
    add_duration_flag(app, "--reservation-gc", options.reservation_gc, "how long final reservations are kept");
    if (const auto code = parse_words(app, std::move(words))) return *code;
    raise_file_limit();
    block_stop_signals();
    return run(options);
}

}  // namespace berth::app
