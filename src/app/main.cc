#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>

#include "app/commands.h"
#include "bench/bench.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/explain.h"
#include "cli/migrate.h"
#include "cli/near_word.h"
#include "cli/reserve.h"
#include "cli/shares.h"
#include "cli/whatif.h"

namespace {

using berth::cli::Command;
using Words = std::vector<std::string>;
namespace app = berth::app;

// One line a subcommand, in the order of the help text.
constexpr std::array kCommands{
    Command{"up", "everything in one process: API server, nodes, scheduler, controllers", app::up},
    Command{"serve", "the API server alone", app::serve},
    Command{"scheduler", "the scheduler, attached to any Kubernetes API server", app::scheduler},
    Command{"controllers", "the reservations' life cycle, attached to any Kubernetes API server", app::controllers},
    Command{"agent", "on a node: topology, shared cores, how far best-effort pods may go; the same offline",
            app::agent},
    Command{"fleet", "machines through layers of pools: scheduler, poollet, broker, provider, tree", app::fleet},
    Command{"arbitrator", "guarantees, limits and shares of namespaces, attached to any Kubernetes API server",
            app::arbitrator},
    Command{"bench", "measure one workload in process", berth::bench::bench},
    Command{"whatif", "schedule a dump of a cluster offline and say why", berth::cli::whatif},
    Command{"explain", "why a pod or reservation is where it is, or nowhere", berth::cli::explain},
    Command{"shares", "what each namespace deserves, who borrows from whom, who would go", berth::cli::shares},
    Command{"reserve", "make reservations from flags, also one per node", berth::cli::reserve},
    Command{"migrate", "move a pod through a reservation", berth::cli::migrate},
    Command{"store", "back up, restore or check a data directory", app::store},
    Command{"token", "list, create, revoke or rotate bearer tokens of a data directory", app::token},
    Command{"certificate", "list, issue or revoke client certificates of a data directory", app::certificate},
    Command{"completion", "print what makes a shell complete these commands", app::completion},
    Command{"version", "print the version", app::version},
};

void print_help(std::FILE* out) {
    fmt::print(
        out, "Berth holds capacity for work that has not arrived yet.\n\nUsage: berth COMMAND [FLAGS]\n\nCommands:\n");
    for (const auto& command : kCommands) fmt::print(out, "  {:<12} {}\n", command.name, command.summary);
    fmt::print(out, "\n'berth help COMMAND' says more about one of them.\n");
}

const Command* find(std::string_view name) {
    for (const auto& command : kCommands) {
        if (name == command.name) return &command;
    }
    return nullptr;
}

int refuse(const std::string& unknown) {
    Words names;
    for (const auto& command : kCommands) names.emplace_back(command.name);
    const std::string meant = berth::cli::near_word(unknown, names);
    const auto hint = meant.empty() ? std::string() : fmt::format("did you mean {}? ", meant);
    fmt::print(stderr, "berth: unknown command \"{}\"; {}'berth help' lists them\n", unknown, hint);
    return berth::cli::kWrongUsage;
}

// "help store check" is "store check --help".
int help(Words words) {
    if (words.empty()) {
        print_help(stdout);
        return berth::cli::kDone;
    }
    const Command* command = find(words.front());
    if (command == nullptr) return refuse(words.front());
    words.erase(words.begin());
    words.emplace_back("--help");
    return command->run(std::move(words));
}

int complete(Words words) {
    if (words.size() > 1 && words.front() == "help") words.erase(words.begin());
    if (words.size() > 1) {
        const Command* command = find(words.front());
        words.front() = berth::cli::kComplete;
        return command == nullptr ? berth::cli::kDone : command->run(std::move(words));
    }
    const std::string_view last = words.empty() ? std::string_view() : words.front();
    for (const auto& command : kCommands) berth::cli::offer(command.name, command.summary, last);
    berth::cli::offer("help", "says more about a command", last);
    return berth::cli::kDone;
}

std::string_view given;  // the command, for what is said of it when all else has failed

void say_trouble(std::string_view what) {
    fmt::print(stderr, "berth{}{}: {}\n", given.empty() ? "" : " ", given, what);
}

[[noreturn]] void end_in_words() {
    try {
        if (const auto trouble = std::current_exception()) std::rethrow_exception(trouble);
        say_trouble("it ended where it should not");
    } catch (const std::exception& error) {
        say_trouble(error.what());
    } catch (...) {
        say_trouble("an exception without a word");
    }
    std::_Exit(berth::cli::kFailed);
}

// Who reads our output has it, or the exit code says that it has not come.
int delivered(int code) {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    say_trouble(fmt::format("standard output: {}", std::strerror(errno)));
    return code == berth::cli::kDone ? berth::cli::kFailed : code;
}

int dispatch(Words words) {
    if (words.empty()) {
        print_help(stderr);
        return berth::cli::kWrongUsage;
    }
    const std::string first = words.front();
    words.erase(words.begin());
    if (first == "help" || first == "--help" || first == "-h") return help(std::move(words));
    if (first == "--version" || first == "-v") return app::version({});
    if (first == berth::cli::kComplete) return complete(std::move(words));
    const Command* command = find(first);
    return command == nullptr ? refuse(first) : command->run(std::move(words));
}

}  // namespace

// What nobody expected (no memory, a directory that cannot be read) is a sentence and an exit code, never a signal,
// also on a thread of ours. A limit of the size of files is an error like that of a full disk.
int main(int argc, char** argv) {
    if (argc > 1) given = argv[1];
    std::set_terminate(end_in_words);
    std::signal(SIGXFSZ, SIG_IGN);
    try {
        return delivered(dispatch(Words(argv + 1, argv + argc)));
    } catch (const std::exception& error) {
        say_trouble(error.what());
    } catch (...) {
        say_trouble("an exception without a word");
    }
    return berth::cli::kFailed;
}
