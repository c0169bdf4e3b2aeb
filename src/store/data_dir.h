#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

// The directory a store lives in: its files, and the lock that keeps a second process out.
namespace berth::store {

struct DataDir {
    std::string path;
    std::string file() const { return path + "/store.db"; }
    std::string wal() const { return path + "/store.db-wal"; }
    std::string shm() const { return path + "/store.db-shm"; }
    // A new file in the making; becomes file() by rename when it is whole.
    std::string unfinished() const { return path + "/store.db.new"; }
    std::string lock() const { return path + "/store.lock"; }
    std::string acknowledged() const { return path + "/store.acknowledged"; }
    // There while a restore swaps files.
    std::string restoring() const { return path + "/store.restoring"; }
};

// Held while a process may write; dropped with the object, or with the process.
class DirLock {
public:
    // Makes the directory (0700) when it is missing. Conflict, naming the process, when somebody else holds it.
    static Result<std::unique_ptr<DirLock>> take(const DataDir&);
    ~DirLock();
    DirLock(const DirLock&) = delete;
    DirLock& operator=(const DirLock&) = delete;

private:
    explicit DirLock(int fd) : fd_(fd) {}
    int fd_;
};

// Files as they were when they were opened. Whoever writes into a file that has lost its name, or whose name leads to
// another, writes for nobody.
class InPlace {
public:
    Status remember(const std::string& path);
    // An Error that names the first one that was removed or replaced.
    Status check() const;

private:
    struct File {
        std::string path;
        uint64_t device = 0;
        uint64_t number = 0;
    };
    std::vector<File> files_;
};

// The size of a file; none: there is none. An Error where nobody can see that (a closed directory, a loop of links).
Result<std::optional<uint64_t>> size_of(const std::string& path);

// What POSIX needs so that names and contents survive a power cut.
Status sync_path(const std::string& path);
// rename(2), then sync of the directory.
Status rename_durably(const std::string& from, const std::string& to);
// "open /path: No such file or directory"
Error system_error(const std::string& what);

}  // namespace berth::store
