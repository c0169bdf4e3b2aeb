#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "link/wake_event.h"

namespace berth::cli {

// Ctrl-C and SIGTERM, for a command that has something to put back before it ends. It must be made before any other
// thread, so that the signals come here.
class Interrupt {
public:
    Interrupt();
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    bool came() const { return came_; }
    // Whom to wake; nullptr: nobody waits.
    void wake(link::WakeEvent* wake);

private:
    std::atomic<bool> came_ = false;
    std::atomic<bool> over_ = false;
    std::mutex mutex_;
    link::WakeEvent* wake_ = nullptr;
    std::thread thread_;
};

}  // namespace berth::cli
