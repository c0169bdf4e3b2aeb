#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/check.h"

namespace berth::store {

// A new directory under the system's temporary one, gone with the object.
class TempDir {
public:
    TempDir() : path_((std::filesystem::temp_directory_path() / "berth-XXXXXX").string()) {
        CHECK(mkdtemp(path_.data()) != nullptr);
    }
    ~TempDir() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

}  // namespace berth::store
