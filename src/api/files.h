#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::api {

// NotFound when there is no such file.
Result<std::string> read_file(const std::string& path);
// Mode 0600, whole or not at all: a temporary file, synced, renamed.
Status write_private_file(const std::string& path, std::string_view text);
Status make_private_directory(const std::string& path);

}  // namespace berth::api
