#include <CLI/CLI.hpp>

#include "app/attached.h"
#include "app/commands.h"
#include "app/reservations_run.h"

namespace berth::app {

int controllers(std::vector<std::string> words) {
    CLI::App app("The reservations' life cycle against any Kubernetes API server, which brings the other controllers.",
                 "berth controllers");
    AttachedOptions options;
    options.lease_name = "berth-controllers";
    options.bind_address = "127.0.0.1:10257";
    add_attached_flags(app, options);
    base::Duration gc = std::chrono::hours(24);
    add_duration_flag(app, "--reservation-gc", gc, "how long final reservations are kept");
    if (const auto code = parse_words(app, std::move(words))) return *code;
    return run_attached("berth controllers", options, [&](std::unique_ptr<link::Server> server, base::Metrics&) {
        return std::make_unique<Running<ReservationsRun>>(std::move(server), gc, base::system_clock());
    });
}

}  // namespace berth::app
