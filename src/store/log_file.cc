#include "store/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "store/log_row.h"
#include "store/wal_scan.h"

namespace berth::store {
namespace {

namespace fs = std::filesystem;

constexpr int kLoaded = 8;  // so much longer a write-ahead log may become under load
constexpr const char* kSave = "UPDATE state SET last = ?, floor = ?, rows = ?, sum = ?";

Status make_file(const DataDir& dir, const std::string& vfs) {
    std::error_code ignored;
    fs::remove(dir.unfinished(), ignored);
    fs::remove(dir.unfinished() + "-journal", ignored);
    {
        auto database = TRY(Database::open(dir.unfinished(), Database::Mode::Create, vfs));
        if (chmod(dir.unfinished().c_str(), 0600) != 0) return system_error("chmod " + dir.unfinished());
        TRY(database.execute("PRAGMA synchronous = FULL"));
        TRY(make_tables(database));
    }
    TRY(sync_path(dir.unfinished()));
    TRY(Acknowledged::make(dir.acknowledged(), 0));
    return rename_durably(dir.unfinished(), dir.file());
}

// Only a directory that never had a store gets a new one.
Status make_if_new(const DataDir& dir, const std::string& vfs) {
    if (TRY(size_of(dir.restoring()))) {
        return base::conflict(
            fmt::format("a restore into {} was interrupted: run 'berth store restore' again with --force", dir.path));
    }
    if (const auto size = TRY(size_of(dir.file()))) return *size > 0 ? Status() : base::invalid("it is empty");
    if (TRY(size_of(dir.wal())).value_or(0) > 0) {
        return base::invalid(fmt::format("it is missing, but its write-ahead log {} is there", dir.wal()));
    }
    if (const auto known = Acknowledged::read(dir.acknowledged()); known && *known > 0) {
        return base::invalid(fmt::format("it is missing, but revision {} was acknowledged", *known));
    }
    return make_file(dir, vfs);
}

Status fill_wal(const std::string& path, size_t size) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return system_error("open " + path);
    struct stat info = {};
    Status filled;
    if (fstat(fd, &info) == 0 && static_cast<size_t>(info.st_size) < size) {
        // Page by page: after one large write the kernel would keep the file in large pieces, and look through all of
        // such a piece for each of SQLite's small writes.
        const std::array<char, 4096> zeros = {};
        size_t rest = size - static_cast<size_t>(info.st_size);
        while (filled && rest > 0) {
            const size_t piece = std::min(rest, zeros.size());
            if (::write(fd, zeros.data(), piece) != static_cast<ssize_t>(piece)) filled = system_error("write " + path);
            rest -= piece;
        }
        if (filled && fsync(fd) != 0) filled = system_error("write " + path);
    }
    ::close(fd);
    return filled;
}

Log::Change change_of(const LogRow& row) {
    auto record = std::make_shared<Record>();
    record->key = {std::string(row.kind), std::string(row.ns), std::string(row.name)};
    record->uid = row.uid;
    record->created = static_cast<Revision>(row.created);
    record->revision = revision_of(row.id);
    record->part = part_of(row.id);
    if (row.object) record->bytes = std::make_shared<const std::string>(*row.object);
    return {std::move(record), row.object == nullptr};
}

}  // namespace

Error LogFile::damaged(const Error& cause) const {
    if (cause.reason != Reason::Invalid) return cause;
    return base::invalid(fmt::format(
        "the store {} is damaged: {}. Nothing was changed. 'berth store check' says more; 'berth store restore' puts a "
        "backup in its place and keeps this file",
        path_, cause.message));
}

Result<std::unique_ptr<LogFile>> LogFile::open(const DataDir& dir, const FileTuning& tuning) {
    std::unique_ptr<LogFile> file(new LogFile(dir.file(), tuning));
    if (auto opened = file->open_in(dir); !opened) return file->damaged(opened.error());
    return file;
}

Status LogFile::open_in(const DataDir& dir) {
    TRY(make_if_new(dir, tuning_.vfs));
    auto acknowledged = Acknowledged::open(dir.acknowledged(), tuning_.vfs);
    TRY(open_database(dir));
    TRY(expect_all(dir, acknowledged ? Result<Revision>((*acknowledged)->revision()) : acknowledged.error()));
    if (acknowledged) acknowledged_ = std::move(*acknowledged);
    auto ready = get_ready(dir);
    if (ready) return {};
    if (ready.error().reason == Reason::Invalid) return ready;
    // It was read, and that is something: on a full disk, reads are served.
    read_only_ = ready.error();
    static_cast<void>(database_.execute("ROLLBACK"));
    return {};
}

Status LogFile::open_database(const DataDir& dir) {
    const auto attempt = [&](const char* mode) -> Status {
        database_ = TRY(Database::open(dir.file(), Database::Mode::Write, tuning_.vfs));
        checkpoint_on_close(false);
        TRY(database_.execute(mode));  // before anything is read
        TRY(recognise(database_, dir.file()));
        TRY(
            database_.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                              "PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -4096"));
        return load_state();
    };
    auto opened = attempt("");
    if (opened || opened.error().reason != Reason::InternalError) return opened;
    // A full disk has no room for what SQLite shares with other processes; alone it needs none.
    if (attempt("PRAGMA locking_mode = EXCLUSIVE")) read_only_ = opened.error();
    return read_only_ ? Status() : opened;
}

// What is only needed for writing.
Status LogFile::get_ready(const DataDir& dir) {
    if (read_only_) return *read_only_;
    TRY(fill_wal(dir.wal(), tuning_.wal_bytes));
    if (!acknowledged_) {
        TRY(Acknowledged::make(dir.acknowledged(), extent_.last));
        acknowledged_ = TRY(Acknowledged::open(dir.acknowledged(), tuning_.vfs));
    }
    TRY(upgrade(database_));
    TRY(load_state());
    return prepare_writes(dir);
}

Result<std::unique_ptr<LogFile>> LogFile::open_to_read(const DataDir& dir) {
    // Before the file, which may grow meanwhile.
    const auto acknowledged = Acknowledged::read(dir.acknowledged());
    auto file = TRY(open_to_read(dir.file()));
    TRY(file->expect_all(dir, acknowledged));
    return file;
}

Result<std::unique_ptr<LogFile>> LogFile::open_to_read(const std::string& path) {
    std::unique_ptr<LogFile> file(new LogFile(path, {}));
    const auto opened = [&]() -> Status {
        const auto size = TRY(size_of(path));
        if (!size) return base::not_found(fmt::format("there is no store {}", path));
        if (*size == 0) return base::invalid("it is empty");
        file->database_ = TRY(Database::open(path, Database::Mode::Read));
        TRY(recognise(file->database_, path));
        TRY(file->database_.execute("BEGIN"));
        return file->load_state();
    }();
    if (!opened) return file->damaged(opened.error());
    return file;
}

Status LogFile::leap(const std::string& path, Revision last) {
    LogFile file(path, {});
    file.database_ = TRY(Database::open(path, Database::Mode::Write));
    TRY(upgrade(file.database_));
    TRY(file.load_state());
    file.save_ = TRY(file.database_.prepare(kSave));
    file.extent_ = {last, last};
    return file.save_state();
}

Status LogFile::load_state() {
    format_ = TRY(database_.number("PRAGMA user_version"));
    auto state = TRY(database_.prepare(!tallied(format_) ? "SELECT last, floor, 0, 0 FROM state"
                                                         : "SELECT last, floor, rows, sum FROM state"));
    if (!TRY(state.step())) return base::invalid("its state row is missing");
    extent_ = {static_cast<Revision>(state.integer(1)), static_cast<Revision>(state.integer(0))};
    tally_.rows = state.integer(2);
    tally_.sum = static_cast<uint64_t>(state.integer(3)) - checksum_of_state(extent_.last, extent_.floor, tally_.rows);
    return {};
}

Status LogFile::expect_all(const DataDir& dir, const Result<Revision>& acknowledged) const {
    if (acknowledged && *acknowledged <= extent_.last) return {};
    const WalScan wal = scan_wal(dir.wal());
    std::string cause;
    if (acknowledged) {
        cause = fmt::format("revision {} was acknowledged and it ends with {}; {}", *acknowledged, extent_.last,
                            wal.describe(dir.wal()));
    } else if (acknowledged.error().reason != Reason::NotFound || notes_acknowledged(format_)) {
        cause = fmt::format("{}; it ends with revision {}, and nobody knows whether that was the last",
                            acknowledged.error().message, extent_.last);
    } else if (wal.ends_behind > 0) {
        cause = wal.describe(dir.wal());
    } else {
        return {};
    }
    return base::conflict(
        fmt::format("the store {} has lost acknowledged writes, or may have: {}. Nothing was changed. Put its files "
                    "back as they were, "
                    "or a backup with 'berth store restore --force'; 'berth store repair' goes on with what is left",
                    path_, cause));
}

Status LogFile::prepare_writes(const DataDir& dir) {
    begin_ = TRY(database_.prepare("BEGIN IMMEDIATE"));
    commit_ = TRY(database_.prepare("COMMIT"));
    insert_ = TRY(database_.prepare("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
    delete_ = TRY(database_.prepare("DELETE FROM log WHERE id = ? RETURNING sum"));
    save_ = TRY(database_.prepare(kSave));
    int keep = 1;
    sqlite3_file_control(database_.handle(), nullptr, SQLITE_FCNTL_PERSIST_WAL, &keep);
    sqlite3_wal_hook(
        database_.handle(),
        [](void* self, sqlite3*, const char*, int pages) {
            static_cast<LogFile*>(self)->wal_pages_ = pages;
            return SQLITE_OK;
        },
        this);
    sqlite3_file_control(database_.handle(), nullptr, SQLITE_FCNTL_JOURNAL_POINTER, &wal_);
    for (const auto& path : {dir.file(), dir.wal(), dir.acknowledged()}) TRY(in_place_.remember(path));
    return sync();  // the first one also makes the file's name safe
}

Status LogFile::quick_check() {
    auto said = database_.text("PRAGMA quick_check(1)");
    if (!said) return damaged(said.error());
    if (*said != "ok") return damaged(base::invalid(*said));
    return {};
}

Status LogFile::replay(const Log::Replay& visit) {
    const auto replayed = [&]() -> Status {
        auto rows = TRY(database_.prepare("SELECT id, kind, ns, name, uid, created, object, sum FROM log ORDER BY id"));
        Tally found;
        while (TRY(rows.step())) {
            const std::string_view object = rows.text(6);
            LogRow row{rows.integer(0),
                       rows.text(1),
                       rows.text(2),
                       rows.text(3),
                       rows.text(4),
                       rows.integer(5),
                       rows.is_null(6) ? nullptr : &object};
            if (checksum(row) != rows.integer(7)) {
                return base::invalid(
                    fmt::format("the checksum of row {} ({} {}/{}) differs", row.id, row.kind, row.ns, row.name));
            }
            found.add(rows.integer(7));
            visit(change_of(row));
        }
        if (tallied(format_) && found != tally_) {
            return base::invalid(
                fmt::format("it should have {} rows and has {}, or its sum differs", tally_.rows, found.rows));
        }
        return {};
    }();
    if (!replayed) return damaged(replayed.error());
    return {};
}

Status LogFile::insert(const Event& event) {
    const Record& record = *event.record;
    const std::string_view object = *record.bytes;
    const bool gone = event.type == Event::Type::Deleted;
    const LogRow row{row_id(record),          record.key.kind, record.key.ns,
                     record.key.name,         record.uid,      static_cast<int64_t>(record.created),
                     gone ? nullptr : &object};
    const int64_t sum = checksum(row);
    insert_.bind(1, row.id).bind(2, row.kind).bind(3, row.ns).bind(4, row.name).bind(5, row.uid).bind(6, row.created);
    if (gone) {
        insert_.bind_null(7);
    } else {
        insert_.bind(7, object);
    }
    insert_.bind(8, sum);
    tally_.add(sum);
    return insert_.run();
}

Status LogFile::save_state() {
    return save_.bind(1, static_cast<int64_t>(extent_.last))
        .bind(2, static_cast<int64_t>(extent_.floor))
        .bind(3, tally_.rows)
        .bind(4, static_cast<int64_t>(tally_.sum + checksum_of_state(extent_.last, extent_.floor, tally_.rows)))
        .run();
}

Status LogFile::add(std::span<const EntryPtr> entries) {
    if (!adding_) TRY(begin_.run());
    adding_ = true;
    for (const EntryPtr& entry : entries) {
        for (const EventPtr& event : entry->events) TRY(insert(*event));
        extent_.last = entry->revision;
    }
    return {};
}

Status LogFile::commit() {
    TRY(save_state());
    adding_ = false;
    return commit_.run();
}

// SQLite in its mode NORMAL writes its log in the right order and leaves the fsync of a commit to us.
Status LogFile::sync() {
    const int code = wal_->pMethods->xSync(wal_, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    if (code != SQLITE_OK) return base::internal(fmt::format("{} (SQLite code {})", sqlite3_errstr(code), code));
    return {};
}

Status LogFile::acknowledge(Revision up_to) {
    TRY(in_place_.check());
    return acknowledged_->write(up_to);
}

Status LogFile::sync_acknowledged() {
    return acknowledged_->sync();
}

Status LogFile::forget(std::span<const int64_t> ids, Revision floor) {
    TRY(begin_.run());
    for (const int64_t id : ids) {
        delete_.bind(1, id);
        if (!TRY(delete_.step())) return base::invalid(fmt::format("row {} of {} is missing", id, path_));
        tally_.remove(delete_.integer(0));
        TRY(delete_.run());
    }
    extent_.floor = floor;
    TRY(save_state());
    return commit_.run();
}

Status LogFile::checkpoint(bool others_wait) {
    if (wal_pages_ < (others_wait ? kLoaded : 1) * tuning_.checkpoint_pages) return {};
    wal_pages_ = 0;
    const int code =
        sqlite3_wal_checkpoint_v2(database_.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
    // Busy: somebody reads (a backup); the next commit counts the pages again.
    if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY) return sqlite_error(database_.handle(), code);
    return {};
}

void LogFile::checkpoint_on_close(bool wanted) {
    sqlite3_db_config(database_.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, wanted ? 0 : 1, nullptr);
}

}  // namespace berth::store
