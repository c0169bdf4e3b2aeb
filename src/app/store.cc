#include <fmt/format.h>

#include <cstdio>

#include "app/commands.h"
#include "cli/command.h"
#include "cli/command_line.h"
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
    cli::CommandLine line("Looks after the file that holds everything.", "berth store");
    std::string data_dir = "./berth-data";
    std::string file;
    store::RestoreOptions options;
    store::RepairOptions mend;
    auto& backup = line.command("backup", "copy a store, also one in use, into a new file");
    auto& restore = line.command("restore", "put a backup in the place of a store");
    auto& check = line.command("check", "read every page and every row of a store or a backup");
    auto& repair = line.command("repair", "go on with what is left of a store that has lost writes");
    for (auto* each : {&backup, &restore, &check, &repair})
        each->option("--data-dir", data_dir, "default ./berth-data");
    backup.option("file", file, "the file to write").required();
    restore.option("file", file, "the backup").required();
    restore.flag("--force", options.force, "replace the store that is there, and keep it beside");
    repair.flag("--accept-loss", mend.accept_loss, "do it; without it, say what would be lost");
    check.option("file", file, "a backup; without it the store in --data-dir");
    if (const auto code = line.parse(std::move(words))) return *code;
    if (backup.given()) return say("wrote", file, store::back_up(data_dir, file));
    if (restore.given()) return say("restored", data_dir, store::restore(file, data_dir, options));
    if (repair.given()) return say("repaired", data_dir, store::repair(data_dir, mend));
    if (file.empty()) return say("sound:", data_dir, store::check_store(data_dir));
    return say("sound:", file, store::check_file(file));
}

}  // namespace berth::app
