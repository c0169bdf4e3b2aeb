#include "api/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace berth::api {
namespace {

Error trouble(std::string_view doing, const std::string& path) {
    return base::internal(fmt::format("cannot {} {}: {}", doing, path, std::strerror(errno)));
}

bool write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::write(fd, text.data(), text.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        text.remove_prefix(static_cast<size_t>(n));
    }
    return ::fsync(fd) == 0;
}

// What root makes in another's directory is the other's: a server reads what the commands of its operator wrote.
bool give_to_owner(int fd, const std::string& path) {
    struct stat folder{};
    if (::geteuid() != 0) return true;
    const auto home = std::filesystem::absolute(path).parent_path();
    return ::stat(home.c_str(), &folder) != 0 || folder.st_uid == 0 || ::fchown(fd, folder.st_uid, folder.st_gid) == 0;
}

}  // namespace

Result<DirectoryLock> DirectoryLock::take(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return trouble("open", path);
    DirectoryLock out(fd);
    while (::flock(fd, LOCK_EX) != 0) {
        if (errno != EINTR) return trouble("lock", path);
    }
    return out;
}

DirectoryLock::~DirectoryLock() {
    if (fd_ >= 0) ::close(fd_);
}

Result<std::string> read_file(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return base::not_found(fmt::format("there is no file {}", path));
    if (fd < 0) return trouble("open", path);
    std::string out;
    std::array<char, 16u << 10> block;
    while (true) {
        const ssize_t n = ::read(fd, block.data(), block.size());
        if (n < 0 && errno == EINTR) continue;
        if (n > 0) {
            out.append(block.data(), static_cast<size_t>(n));
            continue;
        }
        const Error failed = trouble("read", path);
        ::close(fd);
        if (n < 0) return failed;
        return out;
    }
}

Result<std::string> read_token(const std::string& path) {
    std::string out = TRY(read_file(path));
    out.erase(out.find_last_not_of(" \r\n") + 1);
    return out;
}

Status write_private_file(const std::string& path, std::string_view text) {
    const std::string temporary = path + ".new";
    ::unlink(temporary.c_str());
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return trouble("create", temporary);
    const bool written = give_to_owner(fd, path) && write_all(fd, text);
    if (::close(fd) != 0 || !written) return trouble("write", temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return trouble("rename to", path);
    return {};
}

}  // namespace berth::api
