#include "base/private_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

namespace berth::base {

Status check_private(const std::string& path) {
    if (path.starts_with("/run/secrets/") || path.starts_with("/var/run/secrets/")) return {};
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
    const mode_t others = info.st_uid == 0 ? 037 : 077;
    if ((info.st_mode & others) == 0) return {};
    return bad_request(
        fmt::format("{} holds a secret, and others may read or change it (mode {:04o}): run chmod 600 {}", path,
                    info.st_mode & 07777, path));
}

Status make_private_directory(const std::string& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
    std::filesystem::path plain(path);
    if (!plain.has_filename()) plain = plain.parent_path();  // a slash at its end
    std::error_code error;
    if (plain.has_parent_path()) std::filesystem::create_directories(plain.parent_path(), error);
    if (!error && ::mkdir(plain.c_str(), 0700) != 0) error = std::error_code(errno, std::generic_category());
    if (!error) return {};
    return internal(fmt::format("cannot make the directory {}: {}", path, error.message()));
}

Status check_unwritable(const std::string& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || (info.st_mode & 022) == 0) return {};
    return bad_request(
        fmt::format("{} names a program to run, and others may change it (mode {:04o}): run chmod go-w {}", path,
                    info.st_mode & 07777, path));
}

}  // namespace berth::base
