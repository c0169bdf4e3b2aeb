#include "link/plugin_thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/thread.h"

namespace berth::link {

PluginThread::PluginThread(base::Loop& loop) : loop_(loop), stop_(::eventfd(0, EFD_CLOEXEC)) {
    CHECK(stop_ >= 0);
}

PluginThread::~PluginThread() {
    stop();
    ::close(stop_);
}

void PluginThread::run(const ExecPlugin& plugin, std::function<void(Result<Credential>)> done) {
    if (thread_.joinable()) thread_.join();
    thread_ = base::named_thread("plugin", [this, plugin, done = std::move(done)] {
        auto came = run_exec_plugin(plugin, stop_);
        loop_.post([done, came = std::move(came)] { done(came); });
    });
}

void PluginThread::stop() {
    if (!thread_.joinable()) return;
    ::eventfd_write(stop_, 1);
    thread_.join();
}

}  // namespace berth::link
