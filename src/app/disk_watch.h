#pragma once

#include <memory>
#include <string>

#include "app/server.h"
#include "link/recorder.h"

namespace berth::app {

// Tells people about the disk under a server's store, each thing once: in the log and as an event when little of it is
// left, and in the log when every write is refused. That cannot be stored then, so it is noted in a file that was there
// before, and the next start that can write makes the event. One thread.
class DiskWatch {
public:
    DiskWatch(Server& server, const std::string& data_dir);
    void look();

private:
    void look_at_room();
    void tell_of_failure(const Error& failure);
    void tell_of_last_time();

    Server& server_;
    const std::string dir_, note_;
    std::unique_ptr<link::ApiClient> door_;
    link::Recorder recorder_;
    bool low_ = false, failed_ = false;
};

// Bytes that are left on the disk of this directory; 0 when nobody knows.
double disk_free_bytes(const std::string& dir);

}  // namespace berth::app
