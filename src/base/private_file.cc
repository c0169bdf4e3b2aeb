#include "base/private_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

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

}  // namespace berth::base
