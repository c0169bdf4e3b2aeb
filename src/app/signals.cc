#include <sys/resource.h>

#include <csignal>
#include <ctime>

#include "app/server.h"
#include "base/stop_signals.h"

namespace berth::app {
namespace {

bool stopped_within(base::Duration pause) {
    const sigset_t set = base::stop_signals();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(pause);
    const timespec left{seconds.count(), (pause - seconds).count()};
    return sigtimedwait(&set, nullptr, &left) >= 0;
}

}  // namespace

void raise_file_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

void block_stop_signals() {
    const sigset_t set = base::stop_signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

void wait_for_stop(const std::function<void()>& chores, base::Duration every) {
    while (!stopped_within(every)) chores();
}

void rest_until_stop(const std::function<base::Duration()>& chores) {
    while (!stopped_within(chores())) {
    }
}

}  // namespace berth::app
