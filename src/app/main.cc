#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <exception>
#include <string_view>

#include "app/commands.h"
#include "bench/bench.h"
#include "cli/command.h"
#include "cli/explain.h"
#include "cli/migrate.h"
#include "cli/reserve.h"
#include "cli/shares.h"
#include "cli/whatif.h"

namespace {

using berth::cli::Command;
namespace app = berth::app;

// One line a subcommand, in the order of the help text.
constexpr std::array kCommands{
    Command{"up", "everything in one process: API server, nodes, scheduler, controllers", app::up},
    Command{"serve", "the API server alone", app::serve},
    Command{"scheduler", "the scheduler, attached to any Kubernetes API server", app::scheduler},
    Command{"controllers", "the reservations' life cycle, attached to any Kubernetes API server", app::controllers},
    Command{"bench", "measure one workload in process", berth::bench::bench},
    Command{"whatif", "schedule a dump of a cluster offline and say why", berth::cli::whatif},
    Command{"explain", "why a pod or reservation is where it is, or nowhere", berth::cli::explain},
    Command{"shares", "what each namespace deserves, who borrows from whom, who would go", berth::cli::shares},
    Command{"reserve", "make reservations from flags, also one per node", berth::cli::reserve},
    Command{"migrate", "move a pod through a reservation", berth::cli::migrate},
    Command{"store", "back up, restore or check a data directory", app::store},
    Command{"token", "list, create, revoke or rotate bearer tokens of a data directory", app::token},
    Command{"certificate", "list, issue or revoke client certificates of a data directory", app::certificate},
    Command{"version", "print the version", app::version},
};

void print_help(std::FILE* out) {
    fmt::print(
        out, "Berth holds capacity for work that has not arrived yet.\n\nUsage: berth COMMAND [FLAGS]\n\nCommands:\n");
    for (const auto& command : kCommands) fmt::print(out, "  {:<12} {}\n", command.name, command.summary);
    fmt::print(out, "\n'berth COMMAND --help' says more about one of them.\n");
}

// What nobody expected (no memory, a directory that cannot be read): a sentence and an exit code, never a signal.
int run(const Command& command, std::vector<std::string> words) {
    try {
        return command.run(std::move(words));
    } catch (const std::exception& error) {
        fmt::print(stderr, "berth {}: {}\n", command.name, error.what());
    } catch (...) {
        fmt::print(stderr, "berth {}: an exception without a word\n", command.name);
    }
    return berth::cli::kFailed;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.empty() || words[0] == "help" || words[0] == "--help" || words[0] == "-h") {
        print_help(words.empty() ? stderr : stdout);
        return words.empty() ? berth::cli::kWrongUsage : berth::cli::kDone;
    }
    for (const auto& command : kCommands) {
        if (words[0] == command.name) return run(command, {words.begin() + 1, words.end()});
    }
    fmt::print(stderr, "berth: unknown command \"{}\"; 'berth help' lists them\n", words[0]);
    return berth::cli::kWrongUsage;
}
