#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/acknowledged.h"
#include "store/data_dir.h"
#include "store/log.h"
#include "store/log_format.h"
#include "store/sqlite.h"

namespace berth::store {

struct FileTuning {
    // SQLite's write-ahead log is copied into the file when it has this many pages of 4 KiB; under load eight times as
    // many.
    int checkpoint_pages = 1000;
    // It is kept at this size, filled with zeros, from the start: an fsync that overwrites takes about half as long as
    // one that also makes the file longer. SQLite takes zeros for an empty log.
    size_t wal_bytes = 6 << 20;
    std::string vfs = {};  // SQLite's name of a file system; tests put a failing one here
};

// The rows of a log in a SQLite file. One thread at a time; no decisions about when. After an Error from a writing
// function the file must not be written any more: abandon() it.
class LogFile {
public:
    // Makes, recognises, upgrades. Errors say which file and what to do about it. Refuses a store that ends before what
    // was acknowledged.
    static Result<std::unique_ptr<LogFile>> open(const DataDir&, const FileTuning&);
    // For looking only, whatever the format; also while a server writes.
    static Result<std::unique_ptr<LogFile>> open_to_read(const DataDir&);
    // One file alone: a backup, or a store of which some is lost.
    static Result<std::unique_ptr<LogFile>> open_to_read(const std::string& path);

    // Lets revisions go on after `last`, and the history begin there.
    static Status leap(const std::string& path, Revision last);

    Log::Extent extent() const { return extent_; }
    // Why it can only be read, if so: the disk is full, say.
    const std::optional<Error>& read_only() const { return read_only_; }
    Database& database() { return database_; }

    // SQLite's own look at every page.
    Status quick_check();
    // Every row in order; refuses a row whose checksum differs, or a file that lost one.
    Status replay(const Log::Replay&);
    // Into the open transaction, which begins with the first.
    Status add(std::span<const EntryPtr>);
    // Ends the transaction: what was added is all there or not at all after a crash, and safe once sync() has returned.
    Status commit();
    // Makes safe what was committed before the call. The only function that another thread may call meanwhile.
    Status sync();
    // To be called when what ends with this revision is safe, before anybody is told: notes it outside SQLite's files,
    // and refuses when they are no longer where they were. The note is safe once sync_acknowledged() has returned.
    Status acknowledge(Revision);
    Status sync_acknowledged();
    // Deletes superseded rows; the history then begins at `floor`.
    Status forget(std::span<const int64_t> ids, Revision floor);
    // Moves SQLite's write-ahead log into the file when it has grown enough; while others wait, only when it is large.
    Status checkpoint(bool others_wait);
    // Whether closing moves SQLite's write-ahead log into the file: not before all was read, nor after an error.
    void checkpoint_on_close(bool);

private:
    LogFile(std::string path, FileTuning tuning) : path_(std::move(path)), tuning_(std::move(tuning)) {}
    Status open_in(const DataDir&);
    Status open_database(const DataDir&);
    Status load_state();
    // Refuses when the file ends before what was acknowledged, or when nobody knows what was.
    Status expect_all(const DataDir&, const Result<Revision>& acknowledged) const;
    Status get_ready(const DataDir&);
    Status prepare_writes(const DataDir&);
    Status insert(const Event&);
    Status save_state();
    // The sentence for an operator whose file is damaged; other errors as they are.
    Error damaged(const Error& cause) const;

    std::string path_;
    FileTuning tuning_;
    Database database_;
    Log::Extent extent_;
    Tally tally_;
    int64_t format_ = 0;
    std::unique_ptr<Acknowledged> acknowledged_;
    InPlace in_place_;
    std::optional<Error> read_only_;
    Statement begin_;
    Statement commit_;
    Statement insert_;
    Statement delete_;
    Statement save_;
    sqlite3_file* wal_ = nullptr;  // SQLite's, for sync()
    bool adding_ = false;          // in a transaction
    int wal_pages_ = 0;            // set by SQLite's hook after each commit
};

}  // namespace berth::store
