#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "base/stop_signals.h"
#include "base/thread.h"

namespace berth::cli {

Interrupt::Interrupt() {
    const sigset_t set = base::stop_signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    thread_ = base::named_thread("interrupt", [this, set] {
        for (int signal = 0; sigwait(&set, &signal) == 0 && !over_;) {
            // Who says it twice does not want to wait for anything.
            if (came_.exchange(true)) ::_exit(128 + signal);
            const std::lock_guard lock(mutex_);
            if (wake_ != nullptr) wake_->notify();
        }
    });
}

Interrupt::~Interrupt() {
    over_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
}

void Interrupt::wake(link::WakeEvent* wake) {
    const std::lock_guard lock(mutex_);
    wake_ = wake;
}

}  // namespace berth::cli
