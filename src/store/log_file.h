#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

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
    // Makes, recognises, upgrades. Errors say which file and what to do about it.
    static Result<std::unique_ptr<LogFile>> open(const DataDir&, const FileTuning&);
    // For looking only, whatever the format; also a backup, also while a server writes.
    static Result<std::unique_ptr<LogFile>> open_to_read(const std::string& path);

    // Lets revisions go on `by` above the last one, and the history begin there.
    static Status leap(const std::string& path, Revision by);

    Log::Extent extent() const { return extent_; }
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
    // Deletes superseded rows; the history then begins at `floor`.
    Status forget(std::span<const int64_t> ids, Revision floor);
    // Moves SQLite's write-ahead log into the file when it has grown enough; while others wait, only when it is large.
    Status checkpoint(bool others_wait);
    // Closing will write nothing.
    void abandon();

private:
    LogFile(std::string path, FileTuning tuning) : path_(std::move(path)), tuning_(std::move(tuning)) {}
    Status load_state();
    Status prepare_writes();
    Status insert(const Event&);
    Status save_state();
    // The sentence for an operator whose file is damaged; other errors as they are.
    Error damaged(const Error& cause) const;

    std::string path_;
    FileTuning tuning_;
    Database database_;
    Log::Extent extent_;
    Tally tally_;
    bool tallied_ = true;  // format 1 was not
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
