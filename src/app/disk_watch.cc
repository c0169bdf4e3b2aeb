#include "app/disk_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "api/files.h"
#include "app/local_link.h"
#include "base/log.h"
#include "model/times.h"

namespace berth::app {
namespace {

constexpr size_t kNote = 1024;
constexpr double kMiB = 1 << 20;
// So much is little, or a tenth of a small disk; twice as much is enough again.
constexpr double kLow = 256 * kMiB;

struct Room {
    double free = 0, all = 0;
};

Room room_in(const std::string& dir) {
    struct statvfs info{};
    if (::statvfs(dir.c_str(), &info) != 0) return {};
    const auto block = static_cast<double>(info.f_frsize);
    return {static_cast<double>(info.f_bavail) * block, static_cast<double>(info.f_blocks) * block};
}

// In place: a full disk has no room for another file.
void overwrite(const std::string& path, std::string text) {
    text.resize(kNote, ' ');
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (::pwrite(fd, text.data(), text.size(), 0) >= 0) ::fsync(fd);
    ::close(fd);
}

// Events without a namespaced subject are in the namespace default.
link::Subject whole_cluster() {
    return {"v1", "Namespace", "", "default", ""};
}

}  // namespace

double disk_free_bytes(const std::string& dir) {
    return room_in(dir).free;
}

DiskWatch::DiskWatch(Server& server, const std::string& data_dir)
    : server_(server),
      dir_(data_dir),
      note_(data_dir + "/store.failure"),
      door_(local_link(server, {"system:apiserver", {std::string(api::kMasters)}})),
      recorder_(*door_, "berth") {
    tell_of_last_time();
    look();
}

void DiskWatch::look() {
    if (failed_) return;
    if (const auto failure = server_.store().failure()) return tell_of_failure(*failure);
    look_at_room();
}

void DiskWatch::look_at_room() {
    const Room room = room_in(dir_);
    if (room.all == 0) return;
    const double low = std::min(kLow, room.all / 10);
    if (low_ && room.free > 2 * low) low_ = false;
    if (low_ || room.free >= low) return;
    low_ = true;
    const std::string left = fmt::format("{:.1f} MiB", room.free / kMiB);
    base::log_warning("The disk of the store is nearly full", {{"dir", dir_}, {"left", left}});
    recorder_.warning(whole_cluster(), "DiskNearlyFull",
                      fmt::format("{} are left on the disk of {}: when it is full every write is refused", left, dir_),
                      base::system_clock().wall());
}

void DiskWatch::tell_of_failure(const Error& failure) {
    failed_ = true;
    base::log_error("Every write is refused until the disk is mended and the server started again; reads go on",
                    {{"error", failure}});
    overwrite(note_, fmt::format("{} {}", model::time_text(base::system_clock().wall()), failure.message));
}

void DiskWatch::tell_of_last_time() {
    if (server_.store().failure()) return;
    auto note = api::read_token(note_);
    if (!note) return static_cast<void>(api::write_private_file(note_, std::string(kNote, ' ')));
    if (note->empty()) return;
    recorder_.warning(whole_cluster(), "StoreFailed", "before this start every write was refused, since " + *note,
                      base::system_clock().wall());
    overwrite(note_, "");
}

}  // namespace berth::app
