#include "store/backup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "store/data_dir.h"
#include "store/log_file.h"

namespace berth::store {
namespace {

namespace fs = std::filesystem;

// Forgets the file when it is not finished.
class Unfinished {
public:
    explicit Unfinished(std::string path) : path_(std::move(path)) {}
    ~Unfinished() {
        std::error_code ignored;
        if (!done_) fs::remove(path_, ignored);
    }
    Unfinished(const Unfinished&) = delete;
    Unfinished& operator=(const Unfinished&) = delete;
    const std::string& path() const { return path_; }
    Status finish(const std::string& name) {
        TRY(sync_path(path_));
        TRY(rename_durably(path_, name));
        done_ = true;
        return {};
    }

private:
    std::string path_;
    bool done_ = false;
};

// A copy as one plain file, without a write-ahead log beside it.
Status copy_database(Database& from, const std::string& to) {
    auto target = TRY(Database::open(to, Database::Mode::Create));
    if (chmod(to.c_str(), 0600) != 0) return system_error("chmod " + to);
    sqlite3_backup* copy = sqlite3_backup_init(target.handle(), "main", from.handle(), "main");
    if (!copy) return sqlite_error(target.handle(), SQLITE_ERROR);
    const int code = sqlite3_backup_step(copy, -1);
    const int finished = sqlite3_backup_finish(copy);
    if (code != SQLITE_DONE) return sqlite_error(target.handle(), code);
    if (finished != SQLITE_OK) return sqlite_error(target.handle(), finished);
    return target.execute("PRAGMA journal_mode = DELETE");
}

Status remove_files(const DataDir& dir) {
    std::error_code error;
    for (const auto& path : {dir.wal(), dir.shm(), dir.file()}) {
        fs::remove(path, error);
        if (error) return base::internal(fmt::format("cannot remove {}: {}", path, error.message()));
    }
    return {};
}

// A second name for each file of the present store, so that it stays whole in a directory of its own.
Status keep_replaced(const DataDir& dir) {
    int number = 1;
    std::error_code error;
    while (fs::exists(fmt::format("{}/replaced-{}", dir.path, number), error)) ++number;
    const DataDir kept{fmt::format("{}/replaced-{}", dir.path, number)};
    fs::create_directory(kept.path, error);
    for (const auto& [from, to] : {std::pair{dir.file(), kept.file()}, std::pair{dir.wal(), kept.wal()},
                                   std::pair{dir.acknowledged(), kept.acknowledged()}}) {
        if (!error && TRY(size_of(from))) fs::create_hard_link(from, to, error);
    }
    if (error) return base::internal(fmt::format("cannot keep the old store in {}: {}", kept.path, error.message()));
    return sync_path(kept.path);
}

// While the marker is there nobody opens the store: between the first and the last step the directory holds parts of
// two.
Status swap_in(const DataDir& dir, Unfinished& fresh, Revision last) {
    const int marker = creat(dir.restoring().c_str(), 0600);
    if (marker < 0) return system_error("create " + dir.restoring());
    ::close(marker);
    TRY(sync_path(dir.path));
    TRY(remove_files(dir));
    TRY(Acknowledged::make(dir.acknowledged(), last));
    TRY(fresh.finish(dir.file()));
    std::error_code error;
    fs::remove(dir.restoring(), error);
    if (error) return base::internal(fmt::format("cannot remove {}: {}", dir.restoring(), error.message()));
    return sync_path(dir.path);
}

Result<Checked> check(LogFile& file) {
    Checked checked;
    checked.companions = TRY(read_companions(file.database())).size();
    checked.format = TRY(file.database().number("PRAGMA user_version"));
    TRY(file.quick_check());
    std::set<Key> keys;
    TRY(file.replay([&](Log::Change change) {
        ++checked.rows;
        if (change.deleted) {
            keys.erase(change.record->key);
        } else {
            keys.insert(change.record->key);
        }
        return RecordPtr();
    }));
    checked.objects = keys.size();
    checked.revision = file.extent().last;
    checked.floor = file.extent().floor;
    return checked;
}

// The newest revision that the store in `dir` is known to have given, as far as anything there can be read.
Revision newest_known(const DataDir& dir) {
    Revision newest = 0;
    if (const auto noted = Acknowledged::read(dir.acknowledged())) newest = *noted;
    if (const auto file = LogFile::open_to_read(dir.file())) newest = std::max(newest, (*file)->extent().last);
    return newest;
}

Result<Companions> take_companions(const std::string& path) {
    auto database = TRY(Database::open(path, Database::Mode::Write));
    auto companions = TRY(read_companions(database));
    TRY(erase_companions(database));
    return companions;
}

// Puts a copy of `from` in the place of what is in `dir`, which is kept. Under the lock.
Result<Checked> install(const std::string& from, const DataDir& dir,
                        const std::function<Status(const Companions&)>& place) {
    Unfinished fresh(dir.unfinished());
    std::error_code ignored;
    fs::remove(fresh.path(), ignored);
    Revision last = newest_known(dir);
    {
        auto source = TRY(LogFile::open_to_read(from));
        last = std::max(last, source->extent().last) + kRestoreLeap;
        TRY(copy_database(source->database(), fresh.path()));
    }
    const auto companions = TRY(take_companions(fresh.path()));
    TRY(LogFile::leap(fresh.path(), last));
    Checked checked = TRY(check_file(fresh.path()));
    checked.companions = companions.size();
    if (place) TRY(place(companions));
    if (TRY(size_of(dir.file())) && !TRY(size_of(dir.restoring()))) TRY(keep_replaced(dir));
    TRY(swap_in(dir, fresh, last));
    return checked;
}

}  // namespace

Result<Checked> check_file(const std::string& path) {
    return check(*TRY(LogFile::open_to_read(path)));
}

Result<Checked> check_store(const std::string& data_dir) {
    return check(*TRY(LogFile::open_to_read(DataDir{data_dir})));
}

Result<Checked> back_up(const std::string& data_dir, const std::string& to, const Companions& companions) {
    if (TRY(size_of(to))) return base::conflict(fmt::format("{} exists already: name a new file for the backup", to));
    auto source = TRY(LogFile::open_to_read(DataDir{data_dir}));
    Unfinished copy(to + ".unfinished");
    TRY(copy_database(source->database(), copy.path()));
    if (!companions.empty()) {
        auto database = TRY(Database::open(copy.path(), Database::Mode::Write));
        TRY(put_companions(database, companions));
    }
    Checked checked = TRY(check_file(copy.path()));
    TRY(copy.finish(to));
    return checked;
}

Result<Checked> restore(const std::string& from, const std::string& data_dir, RestoreOptions options) {
    const DataDir dir{data_dir};
    TRY(check_file(from));
    const auto lock = TRY(DirLock::take(dir));
    const bool occupied = TRY(size_of(dir.file())) || TRY(size_of(dir.restoring()));
    if (occupied && !options.force) {
        return base::conflict(
            fmt::format("{} holds a store already: --force replaces it and keeps the old one beside it", data_dir));
    }
    return install(from, dir, options.place);
}

Result<Checked> repair(const std::string& data_dir, RepairOptions options) {
    const DataDir dir{data_dir};
    const auto left = TRY(check_file(dir.file()));
    const auto lock = TRY(DirLock::take(dir));
    const auto sound = check_store(data_dir);
    if (sound)
        return base::conflict(fmt::format("the store in {} has lost nothing: there is nothing to repair", data_dir));
    if (!options.accept_loss) {
        return base::conflict(
            fmt::format("{}. What is left: {} objects, up to revision {}. --accept-loss goes on with them, keeps the "
                        "files as they are "
                        "beside it, and lets revisions go on far above all that were given",
                        sound.error().message, left.objects, left.revision));
    }
    return install(dir.file(), dir, {});
}

}  // namespace berth::store
