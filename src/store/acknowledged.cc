#include "store/acknowledged.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "store/data_dir.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace berth::store {
namespace {

constexpr int kSlots = 2;
constexpr off_t kApart = 4096;
constexpr uint64_t kSeed = 0x42727468'41636b31;  // "Brth", "Ack1"

struct Slot {
    uint64_t revision = 0;
    uint64_t sum = 0;
};

Slot slot_of(Revision revision) {
    return {revision, XXH3_64bits_withSeed(&revision, sizeof revision, kSeed)};
}

// The newest whole slot: its number and what it says.
struct Newest {
    int slot = 0;
    Revision revision = 0;
};

Result<Newest> newest(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return base::not_found(fmt::format("there is no {}", path));
    if (fd < 0) return system_error("open " + path);
    std::optional<Newest> found;
    for (int i = 0; i < kSlots; ++i) {
        Slot slot;
        if (::pread(fd, &slot, sizeof slot, i * kApart) != sizeof slot) continue;
        if (slot.sum != slot_of(slot.revision).sum) continue;
        if (!found || slot.revision > found->revision) found = Newest{i, slot.revision};
    }
    ::close(fd);
    if (!found) return base::invalid(fmt::format("{}, which knows what was acknowledged, cannot be read", path));
    return *found;
}

Error failed(const std::string& path, int code) {
    return base::internal(fmt::format("{}: {} (SQLite code {})", path, sqlite3_errstr(code), code));
}

}  // namespace

Status Acknowledged::make(const std::string& path, Revision revision) {
    const std::string fresh = path + ".new";
    const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return system_error("open " + fresh);
    std::array<char, kSlots * kApart> bytes = {};
    const Slot slot = slot_of(revision);
    for (int i = 0; i < kSlots; ++i) std::memcpy(&bytes[static_cast<size_t>(i * kApart)], &slot, sizeof slot);
    const bool written = ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    const Status synced = written && fsync(fd) == 0 ? Status() : Status(system_error("write " + fresh));
    ::close(fd);
    TRY(synced);
    return rename_durably(fresh, path);
}

Result<Revision> Acknowledged::read(const std::string& path) {
    return TRY(newest(path)).revision;
}

Result<std::unique_ptr<Acknowledged>> Acknowledged::open(const std::string& path, const std::string& vfs) {
    const Newest found = TRY(newest(path));
    std::unique_ptr<Acknowledged> out(new Acknowledged(path));
    out->revision_ = found.revision;
    out->next_ = (found.slot + 1) % kSlots;
    sqlite3_vfs* system = sqlite3_vfs_find(vfs.empty() ? nullptr : vfs.c_str());
    CHECK(system != nullptr);
    out->memory_ = std::make_unique<char[]>(static_cast<size_t>(system->szOsFile));
    auto* file = reinterpret_cast<sqlite3_file*>(out->memory_.get());
    const int code =
        system->xOpen(system, out->path_.c_str(), file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_SUPER_JOURNAL, nullptr);
    if (code != SQLITE_OK) return failed(path, code);
    out->file_ = file;
    return out;
}

Acknowledged::~Acknowledged() {
    if (file_ != nullptr) file_->pMethods->xClose(file_);
}

Status Acknowledged::write(Revision revision) {
    const Slot slot = slot_of(revision);
    const int code = file_->pMethods->xWrite(file_, &slot, sizeof slot, next_ * kApart);
    if (code != SQLITE_OK) return failed(path_, code);
    revision_ = revision;
    next_ = (next_ + 1) % kSlots;
    return {};
}

Status Acknowledged::sync() {
    const int code = file_->pMethods->xSync(file_, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    if (code != SQLITE_OK) return failed(path_, code);
    return {};
}

}  // namespace berth::store
