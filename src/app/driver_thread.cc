#include "app/driver_thread.h"

#include <algorithm>

namespace berth::app {

DriverThread::DriverThread(const char* name, const base::Clock& clock, const Make& make, base::Turn turn)
    : clock_(clock), driver_(make([this] { wake_.notify(); })) {
    thread_ = base::named_thread(name, [this] { run(); }, turn);
}

DriverThread::~DriverThread() {
    stopping_ = true;
    wake_.notify();
    thread_.join();
}

void DriverThread::run() {
    while (true) {
        const bool stopping = stopping_;
        if (stopping) driver_->stop();
        driver_->turn(run::moment(clock_));
        if (stopping && driver_->idle()) return;
        const auto most = driver_->next() - clock_.now();
        if (most > base::Duration::zero()) wait(most);
    }
}

void DriverThread::wait(base::Duration most) {
    const auto now = clock_.now();
    std::this_thread::sleep_for(std::min(throttle_.after(now, base::processor_time()), most));
    wake_.wait(now + most - clock_.now());
}

}  // namespace berth::app
