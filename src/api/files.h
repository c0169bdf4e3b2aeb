#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace berth::api {

// While it lives no other process holds one of the same directory.
class DirectoryLock {
public:
    static Result<DirectoryLock> take(const std::string& path);
    DirectoryLock(DirectoryLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    DirectoryLock& operator=(DirectoryLock&&) = delete;
    ~DirectoryLock();

private:
    explicit DirectoryLock(int fd) : fd_(fd) {}
    int fd_;
};

// NotFound when there is no such file.
Result<std::string> read_file(const std::string& path);
// Without what an editor leaves at its end.
Result<std::string> read_token(const std::string& path);
// Mode 0600, whole or not at all: a temporary file, synced, renamed.
Status write_private_file(const std::string& path, std::string_view text);

}  // namespace berth::api
