#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/commands.h"
#include "cli/command.h"
#include "store/backup.h"

namespace berth::app {
namespace {

int say(const char* what, const std::string& where, const Result<store::Checked>& done) {
    if (!done) {
        fmt::print(stderr, "berth: {}\n", done.error().message);
        return cli::kFailed;
    }
    fmt::print("{} {}: {} objects in {} rows, revision {}, history from {}, format {}\n", what, where, done->objects,
               done->rows, done->revision, done->floor, done->format);
    return cli::kDone;
}

}  // namespace

int store(std::vector<std::string> words) {
    CLI::App flags("Looks after the file that holds everything.", "berth store");
    std::string data_dir = "./berth-data";
    std::string file;
    store::RestoreOptions options;
    flags.require_subcommand(1);
    auto* backup = flags.add_subcommand("backup", "copy a store, also one in use, into a new file");
    auto* restore = flags.add_subcommand("restore", "put a backup in the place of a store");
    auto* check = flags.add_subcommand("check", "read every page and every row of a store or a backup");
    for (auto* each : {backup, restore, check}) each->add_option("--data-dir", data_dir, "default ./berth-data");
    backup->add_option("file", file, "the file to write")->required();
    restore->add_option("file", file, "the backup")->required();
    restore->add_flag("--force", options.force, "replace the store that is there, and keep it beside");
    check->add_option("file", file, "a backup; without it the store in --data-dir");
    try {
        flags.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ParseError& error) {
        return flags.exit(error) == 0 ? cli::kDone : cli::kWrongUsage;
    }
    if (*backup) return say("wrote", file, store::back_up(data_dir, file));
    if (*restore) return say("restored", data_dir, store::restore(file, data_dir, options));
    if (file.empty()) return say("sound:", data_dir, store::check_store(data_dir));
    return say("sound:", file, store::check_file(file));
}

}  // namespace berth::app
