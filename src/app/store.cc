#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "api/files.h"
#include "app/commands.h"
#include "base/private_file.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "store/backup.h"
#include "store/data_dir.h"

namespace berth::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKeys = "pki";

int say(const cli::CommandLine& line, const char* what, const std::string& where, const Result<store::Checked>& done) {
    if (!done) return line.fail(done.error());
    fmt::print("{} {}: {} objects in {} rows, revision {}, history from {}, format {}\n", what, where, done->objects,
               done->rows, done->revision, done->floor, done->format);
    return cli::kDone;
}

// The certificates, keys and tokens of a data directory. Without them nobody who was known is known again.
Result<store::Companions> read_keys(const std::string& data_dir) {
    store::Companions out;
    std::error_code error;
    const fs::path keys = fs::path(data_dir) / kKeys;
    if (!fs::is_directory(keys, error)) return out;
    const auto lock = TRY(api::DirectoryLock::take(keys.string()));
    for (fs::recursive_directory_iterator at(keys, error), end; !error && at != end; at.increment(error)) {
        if (!at->is_regular_file(error)) continue;
        const auto name = (fs::path(kKeys) / at->path().lexically_relative(keys)).string();
        out.emplace(name, TRY(api::read_file(at->path().string())));
    }
    if (error) return base::internal(fmt::format("cannot read {}: {}", keys.string(), error.message()));
    return out;
}

// Those that are there are newer, and know who was shut out since. All or none.
Status place_keys(const std::string& data_dir, const store::Companions& keys) {
    std::error_code error;
    const fs::path place = fs::path(data_dir) / kKeys, unfinished = fs::path(data_dir) / "pki.restoring";
    if (keys.empty() || fs::exists(place, error)) return {};
    fs::remove_all(unfinished, error);
    for (const auto& [name, bytes] : keys) {
        const auto within = fs::path(name).lexically_relative(kKeys);
        if (!name.starts_with("pki/")) return base::invalid(fmt::format("the backup has an odd file, {}", name));
        TRY(base::make_private_directory((unfinished / within).parent_path().string()));
        TRY(api::write_private_file((unfinished / within).string(), bytes));
    }
    return store::rename_durably(unfinished.string(), place.string());
}

int back_up(const cli::CommandLine& line, const std::string& data_dir, const std::string& file, bool without_keys) {
    const auto keys = without_keys ? store::Companions() : read_keys(data_dir);
    if (!keys) return line.fail(keys.error());
    const auto done = store::back_up(data_dir, file, *keys);
    if (const int code = say(line, "wrote", file, done); code != cli::kDone) return code;
    if (without_keys) {
        fmt::print(
            "it holds no keys: kubeconfigs and tokens of today will not do where it is restored into a new "
            "directory\n");
    } else if (done->companions > 0) {
        fmt::print("it holds the {} files of {}/{}, private keys among them: whoever reads it is an administrator\n",
                   done->companions, data_dir, kKeys);
    }
    return cli::kDone;
}

int restore_from(const cli::CommandLine& line, const std::string& file, const std::string& data_dir,
                 store::RestoreOptions options) {
    std::error_code error;
    const bool had_keys = fs::exists(fs::path(data_dir) / kKeys, error);
    options.place = [&](const store::Companions& keys) { return place_keys(data_dir, keys); };
    const auto done = store::restore(file, data_dir, options);
    if (const int code = say(line, "restored", data_dir, done); code != cli::kDone) return code;
    if (had_keys) {
        fmt::print("the keys and tokens in {}/{} stay as they are\n", data_dir, kKeys);
    } else if (done->companions > 0) {
        fmt::print("with its {} files of {}: kubeconfigs and tokens of then are good again\n", done->companions, kKeys);
    } else {
        fmt::print(
            "the backup holds no keys: the next start makes new ones, and kubeconfigs and tokens of before will not "
            "do\n");
    }
    return cli::kDone;
}

}  // namespace

int store(std::vector<std::string> words) {
    cli::CommandLine line("Looks after the file that holds everything.", "berth store");
    std::string data_dir = "./berth-data";
    std::string file;
    store::RestoreOptions options;
    store::RepairOptions mend;
    bool without_keys = false;
    auto& backup = line.command("backup", "copy a store, also one in use, into a new file");
    auto& restore = line.command("restore", "put a backup in the place of a store");
    auto& check = line.command("check", "read every page and every row of a store or a backup");
    auto& repair = line.command("repair", "go on with what is left of a store that has lost writes");
    for (auto* each : {&backup, &restore, &check, &repair})
        each->option("--data-dir", data_dir, "default ./berth-data");
    backup.option("file", file, "the file to write").required();
    backup.flag("--without-keys", without_keys, "leave certificates, keys and tokens (pki) out of it");
    restore.option("file", file, "the backup").required();
    restore.flag("--force", options.force, "replace the store that is there, and keep it beside");
    repair.flag("--accept-loss", mend.accept_loss, "do it; without it, say what would be lost");
    check.option("file", file, "a backup, or a data directory; without it the store in --data-dir");
    line.example("berth store check", "whether ./berth-data is sound");
    line.example("berth store backup monday.backup", "also while `berth up` is running");
    backup.example("berth store backup --data-dir /var/lib/berth monday.backup", "copy it while it is in use");
    restore.example("berth store restore --force monday.backup", "go back; what was there is kept beside");
    check.example("berth store check monday.backup", "whether a backup is sound");
    repair.example("berth store repair", "say what would be lost");
    repair.example("berth store repair --accept-loss", "go on with what is left");
    if (const auto code = line.parse(std::move(words))) return *code;
    if (backup.given()) return back_up(line, data_dir, file, without_keys);
    if (restore.given()) return restore_from(line, file, data_dir, options);
    if (repair.given()) return say(line, "repaired", data_dir, store::repair(data_dir, mend));
    std::error_code unknown;
    if (fs::is_directory(file, unknown)) data_dir = std::exchange(file, "");
    if (file.empty()) return say(line, "sound:", data_dir, store::check_store(data_dir));
    return say(line, "sound:", file, store::check_file(file));
}

}  // namespace berth::app
