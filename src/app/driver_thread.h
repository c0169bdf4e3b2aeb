#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "app/component.h"
#include "base/thread.h"
#include "link/session.h"
#include "link/wake_event.h"
#include "link/wake_throttle.h"
#include "run/driver.h"

namespace berth::app {

// A driver with a thread that turns it: when something came, and when it said that there is more to do. Destroying it
// stops the driver, after what is under way has been answered.
class DriverThread final : public Component {
public:
    using Make = std::function<std::unique_ptr<run::Driver>(link::Wake wake)>;
    DriverThread(const char* name, const base::Clock& clock, const Make& make, base::Turn turn = base::Turn::Equal);
    ~DriverThread() override;
    DriverThread(const DriverThread&) = delete;
    DriverThread& operator=(const DriverThread&) = delete;

    bool synced() const override { return driver_->synced(); }

private:
    void run();
    // Until something came, or for at most that long. Whoever was woken rests first; see wake_throttle.h.
    void wait(base::Duration most);

    const base::Clock& clock_;
    link::WakeEvent wake_;
    link::WakeThrottle throttle_;
    std::atomic<bool> stopping_ = false;
    std::unique_ptr<run::Driver> driver_;
    std::thread thread_;
};

}  // namespace berth::app
