#include "store/data_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/private_file.h"

namespace berth::store {
namespace {

std::string holder(int fd) {
    char text[32] = {};
    const ssize_t got = pread(fd, text, sizeof text - 1, 0);
    return got > 0 ? fmt::format("process {}", std::string_view(text, static_cast<size_t>(got))) : "another process";
}

// Whoever held it before may have removed the file: then this is a lock of nothing.
bool leads_to(const std::string& path, int fd) {
    struct stat named = {}, locked = {};
    return stat(path.c_str(), &named) == 0 && fstat(fd, &locked) == 0 && named.st_dev == locked.st_dev &&
           named.st_ino == locked.st_ino;
}

}  // namespace

Error system_error(const std::string& what) {
    return base::internal(fmt::format("{}: {}", what, std::strerror(errno)));
}

Result<std::unique_ptr<DirLock>> DirLock::take(const DataDir& dir) {
    TRY(base::make_private_directory(dir.path));
    std::unique_ptr<DirLock> lock;
    do {
        const int fd = open(dir.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0) return system_error("open " + dir.lock());
        lock.reset(new DirLock(fd));
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            return base::conflict(
                fmt::format("{} is in use by {}: stop it first, or use another --data-dir", dir.path, holder(fd)));
        }
    } while (!leads_to(dir.lock(), lock->fd_));
    // Only for the message above, so a full disk does not matter; the lock itself is the kernel's.
    const std::string pid = std::to_string(getpid());
    if (ftruncate(lock->fd_, 0) == 0) (void)!pwrite(lock->fd_, pid.data(), pid.size(), 0);
    return lock;
}

DirLock::~DirLock() {
    close(fd_);
}

Status InPlace::remember(const std::string& path) {
    struct stat info = {};
    if (stat(path.c_str(), &info) != 0) return system_error("stat " + path);
    files_.push_back({path, info.st_dev, info.st_ino});
    return {};
}

Status InPlace::check() const {
    for (const File& file : files_) {
        struct stat info = {};
        const bool same =
            stat(file.path.c_str(), &info) == 0 && info.st_dev == file.device && info.st_ino == file.number;
        if (!same) return base::internal(fmt::format("{} was removed or replaced while it was in use", file.path));
    }
    return {};
}

Result<std::optional<uint64_t>> size_of(const std::string& path) {
    struct stat info = {};
    if (stat(path.c_str(), &info) == 0) {
        if (!S_ISREG(info.st_mode)) {
            return base::invalid(
                fmt::format("{} is {}, not a file", path, S_ISDIR(info.st_mode) ? "a directory" : "a pipe or device"));
        }
        return std::optional<uint64_t>(info.st_size);
    }
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<uint64_t>();
    return system_error("look at " + path);
}

Status sync_path(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return system_error("open " + path);
    const int code = fsync(fd);
    const int saved = errno;
    close(fd);
    errno = saved;
    if (code != 0) return system_error("fsync " + path);
    return {};
}

Status rename_durably(const std::string& from, const std::string& to) {
    if (std::rename(from.c_str(), to.c_str()) != 0) return system_error(fmt::format("rename {} to {}", from, to));
    const auto parent = std::filesystem::path(to).parent_path().string();
    return sync_path(parent.empty() ? "." : parent);
}

}  // namespace berth::store
