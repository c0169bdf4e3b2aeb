#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/check.h"

namespace berth::store {

// A new directory, gone with the object: under the system's temporary one, or in memory where there is such a place
// (where fsync costs nothing, for tests that bring their own idea of a disk).
class TempDir {
public:
    enum class Where { Disk, Memory };
    explicit TempDir(Where where = Where::Disk) : path_(parent(where) + "/berth-XXXXXX") {
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
    static std::string parent(Where where) {
        const bool memory = where == Where::Memory && std::filesystem::is_directory("/dev/shm");
        return memory ? "/dev/shm" : std::filesystem::temp_directory_path().string();
    }
    std::string path_;
};

}  // namespace berth::store
