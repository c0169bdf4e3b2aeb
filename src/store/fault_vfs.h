#pragma once

#include <sqlite3.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"

// For tests: a file system for SQLite that fails on command, and that knows what a power cut would leave.
namespace berth::store {

class FaultVfs {
public:
    enum class Fault { None, Error, Full, Short };  // of a write; a sync always fails with an error

    explicit FaultVfs(std::string name) : name_(std::move(name)), real_(sqlite3_vfs_find(nullptr)) {
        vfs_ = *real_;
        vfs_.zName = name_.c_str();
        vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
        vfs_.pAppData = this;
        vfs_.xOpen = open;
        vfs_.xDelete = erase;
        CHECK(sqlite3_vfs_register(&vfs_, 0) == SQLITE_OK);
    }
    ~FaultVfs() { sqlite3_vfs_unregister(&vfs_); }
    FaultVfs(const FaultVfs&) = delete;
    FaultVfs& operator=(const FaultVfs&) = delete;

    // The operation with this number (writes, truncations and syncs count, from 1) fails once; 0: none.
    void fail_at(int64_t operation, Fault fault) {
        fail_at_ = operation;
        fault_ = fault;
    }
    // The same, and all after it.
    void fail_from(int64_t operation, Fault fault) {
        fail_at(operation, fault);
        for_good_ = true;
    }
    int64_t operations() const {
        const std::lock_guard lock(mutex_);
        return operations_;
    }
    // Called before every operation, on the thread that does it.
    void before_each(std::function<void()> call) { before_ = std::move(call); }

    // Writes into `dir` what a power cut now could leave of the files seen so far: all that was synced, and of the rest
    // each 512-byte sector with probability kept/4.
    void power_cut(const std::string& dir, base::Random& random, uint64_t kept) const {
        const std::lock_guard lock(mutex_);
        for (const auto& [path, disk] : disks_) {
            std::string image = disk->synced;
            for (const Unsynced& each : disk->unsynced) each.apply(image, random, kept);
            std::ofstream out(dir + "/" + std::filesystem::path(path).filename().string(), std::ios::binary);
            out << image;
        }
    }

private:
    struct Unsynced {
        size_t offset = 0;
        std::string data;

        void apply(std::string& image, base::Random& random, uint64_t kept) const {
            for (size_t at = 0; at < data.size(); at += 512) {
                if (!random.chance(kept, 4)) continue;
                const size_t size = std::min<size_t>(512, data.size() - at);
                if (image.size() < offset + at + size) image.resize(offset + at + size);
                image.replace(offset + at, size, data, at, size);
            }
        }
    };
    struct Disk {
        std::string synced;
        std::vector<Unsynced> unsynced;
    };
    struct File {
        sqlite3_file base;
        FaultVfs* owner;
        Disk* disk;
        sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
    };

    static File& of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
    static FaultVfs& of(sqlite3_vfs* vfs) { return *static_cast<FaultVfs*>(vfs->pAppData); }

    Fault next() {
        if (before_) before_();
        ++operations_;
        const bool fails = operations_ == fail_at_ || (for_good_ && operations_ > fail_at_);
        return fails ? fault_ : Fault::None;
    }

    // What processes share has no room either, and is no operation: a log that is alone does without.
    bool is_full() const {
        const std::lock_guard lock(mutex_);
        return for_good_ && fault_ == Fault::Full && operations_ + 1 >= fail_at_;
    }

    Disk* disk_of(const char* path) {
        if (!path) return nullptr;
        auto& disk = disks_[path];
        if (!disk) {
            disk = std::make_unique<Disk>();
            std::ifstream in(path, std::ios::binary);
            disk->synced.assign(std::istreambuf_iterator<char>(in), {});
        }
        return disk.get();
    }

    static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out_flags) {
        FaultVfs& self = of(vfs);
        const std::lock_guard lock(self.mutex_);
        File& mine = of(file);
        const int code = self.real_->xOpen(self.real_, path, mine.real(), flags, out_flags);
        mine.base.pMethods = mine.real()->pMethods ? &self.methods() : nullptr;
        mine.owner = &self;
        mine.disk = self.disk_of(path);
        return code;
    }
    static int erase(sqlite3_vfs* vfs, const char* path, int sync_dir) {
        const std::lock_guard lock(of(vfs).mutex_);
        of(vfs).disks_.erase(path);
        return of(vfs).real_->xDelete(of(vfs).real_, path, sync_dir);
    }

    static int write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
        File& mine = of(file);
        const std::lock_guard lock(mine.owner->mutex_);
        const Fault fault = mine.owner->next();
        if (fault == Fault::Error) return SQLITE_IOERR_WRITE;
        if (fault == Fault::Full) return SQLITE_FULL;
        const int count = fault == Fault::Short ? size / 2 : size;
        if (mine.disk) {
            mine.disk->unsynced.push_back(
                {static_cast<size_t>(offset), std::string(static_cast<const char*>(data), static_cast<size_t>(count))});
        }
        const int code = mine.real()->pMethods->xWrite(mine.real(), data, count, offset);
        return fault == Fault::Short ? SQLITE_IOERR_WRITE : code;
    }
    static int truncate(sqlite3_file* file, sqlite3_int64 size) {
        File& mine = of(file);
        const std::lock_guard lock(mine.owner->mutex_);
        if (mine.owner->next() != Fault::None) return SQLITE_IOERR_TRUNCATE;
        return mine.real()->pMethods->xTruncate(mine.real(), size);
    }
    static int sync(sqlite3_file* file, int flags) {
        File& mine = of(file);
        const std::lock_guard lock(mine.owner->mutex_);
        const bool failed = mine.owner->next() != Fault::None;
        if (mine.disk && !failed) {
            base::Random all(0);
            for (const Unsynced& each : mine.disk->unsynced) each.apply(mine.disk->synced, all, 4);
        }
        // After a failed fsync the kernel may have dropped the pages and marked them clean.
        if (mine.disk) mine.disk->unsynced.clear();
        return failed ? SQLITE_IOERR_FSYNC : mine.real()->pMethods->xSync(mine.real(), flags);
    }

    static sqlite3_io_methods& methods() {
        static sqlite3_io_methods methods = make_methods();
        return methods;
    }
    static sqlite3_io_methods make_methods();

    std::string name_;
    sqlite3_vfs* real_;
    sqlite3_vfs vfs_;
    // The log syncs on a thread of its own. Recursive: before_each() may look at us.
    mutable std::recursive_mutex mutex_;
    std::map<std::string, std::unique_ptr<Disk>> disks_;
    int64_t operations_ = 0;
    int64_t fail_at_ = 0;
    bool for_good_ = false;
    Fault fault_ = Fault::Error;
    std::function<void()> before_;
};

inline sqlite3_io_methods FaultVfs::make_methods() {
    sqlite3_io_methods m = {};
    m.iVersion = 2;
    m.xClose = [](sqlite3_file* f) { return of(f).real()->pMethods->xClose(of(f).real()); };
    m.xRead = [](sqlite3_file* f, void* data, int size, sqlite3_int64 offset) {
        return of(f).real()->pMethods->xRead(of(f).real(), data, size, offset);
    };
    m.xWrite = write;
    m.xTruncate = truncate;
    m.xSync = sync;
    m.xFileSize = [](sqlite3_file* f, sqlite3_int64* size) {
        return of(f).real()->pMethods->xFileSize(of(f).real(), size);
    };
    m.xLock = [](sqlite3_file* f, int level) { return of(f).real()->pMethods->xLock(of(f).real(), level); };
    m.xUnlock = [](sqlite3_file* f, int level) { return of(f).real()->pMethods->xUnlock(of(f).real(), level); };
    m.xCheckReservedLock = [](sqlite3_file* f, int* out) {
        return of(f).real()->pMethods->xCheckReservedLock(of(f).real(), out);
    };
    m.xFileControl = [](sqlite3_file* f, int op, void* arg) {
        return of(f).real()->pMethods->xFileControl(of(f).real(), op, arg);
    };
    m.xSectorSize = [](sqlite3_file* f) { return of(f).real()->pMethods->xSectorSize(of(f).real()); };
    m.xDeviceCharacteristics = [](sqlite3_file* f) {
        return of(f).real()->pMethods->xDeviceCharacteristics(of(f).real());
    };
    m.xShmMap = [](sqlite3_file* f, int page, int size, int extend, void volatile** out) {
        if (extend != 0 && of(f).owner->is_full()) return SQLITE_IOERR_SHMSIZE;
        return of(f).real()->pMethods->xShmMap(of(f).real(), page, size, extend, out);
    };
    m.xShmLock = [](sqlite3_file* f, int offset, int n, int flags) {
        return of(f).real()->pMethods->xShmLock(of(f).real(), offset, n, flags);
    };
    m.xShmBarrier = [](sqlite3_file* f) { of(f).real()->pMethods->xShmBarrier(of(f).real()); };
    m.xShmUnmap = [](sqlite3_file* f, int remove) { return of(f).real()->pMethods->xShmUnmap(of(f).real(), remove); };
    return m;
}

}  // namespace berth::store
