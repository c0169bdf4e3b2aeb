#include "api/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

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

}  // namespace

Result<std::string> read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in && errno == ENOENT) return base::not_found(fmt::format("there is no file {}", path));
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) return trouble("read", path);
    return std::move(text).str();
}

Status write_private_file(const std::string& path, std::string_view text) {
    const std::string temporary = path + ".new";
    ::unlink(temporary.c_str());
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return trouble("create", temporary);
    const bool written = write_all(fd, text);
    if (::close(fd) != 0 || !written) return trouble("write", temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return trouble("rename to", path);
    return {};
}

Status make_private_directory(const std::string& path) {
    std::error_code ec;
    std::filesystem::create_directories(path, ec);
    if (ec) return base::internal(fmt::format("cannot create the directory {}: {}", path, ec.message()));
    if (::chmod(path.c_str(), 0700) != 0) return trouble("set the mode of", path);
    return {};
}

}  // namespace berth::api
