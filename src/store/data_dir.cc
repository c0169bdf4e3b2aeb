#include "store/data_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace berth::store {
namespace {

std::string holder(int fd) {
    char text[32] = {};
    const ssize_t got = pread(fd, text, sizeof text - 1, 0);
    return got > 0 ? fmt::format("process {}", std::string_view(text, static_cast<size_t>(got))) : "another process";
}

Status make_directory(const std::string& path) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) return {};
    std::filesystem::create_directories(path, error);
    if (error) return base::internal(fmt::format("cannot make the directory {}: {}", path, error.message()));
    if (chmod(path.c_str(), 0700) != 0) return system_error("chmod " + path);
    return {};
}

}  // namespace

Error system_error(const std::string& what) {
    return base::internal(fmt::format("{}: {}", what, std::strerror(errno)));
}

Result<std::unique_ptr<DirLock>> DirLock::take(const DataDir& dir) {
    TRY(make_directory(dir.path));
    const int fd = open(dir.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return system_error("open " + dir.lock());
    std::unique_ptr<DirLock> lock(new DirLock(fd));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        return base::conflict(fmt::format("the store in {} is in use by {}: stop it first, or use another --data-dir",
                                          dir.path, holder(fd)));
    }
    // Only for the message above, so a full disk does not matter; the lock itself is the kernel's.
    const std::string pid = std::to_string(getpid());
    if (ftruncate(fd, 0) == 0) (void)!pwrite(fd, pid.data(), pid.size(), 0);
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
