#pragma once

#include <functional>
#include <thread>

#include "base/loop.h"
#include "link/exec_plugin.h"

namespace berth::link {

// Runs a plugin, one at a time, and tells on the loop's thread what came of it: a child process may take half a minute,
// in which the loop carries requests.
class PluginThread {
public:
    explicit PluginThread(base::Loop& loop);
    ~PluginThread();
    PluginThread(const PluginThread&) = delete;
    PluginThread& operator=(const PluginThread&) = delete;

    // Not before the last one has told.
    void run(const ExecPlugin& plugin, std::function<void(Result<Credential>)> done);
    // Ends what runs. Any thread, but not beside run().
    void stop();

private:
    base::Loop& loop_;
    int stop_;  // an eventfd
    std::thread thread_;
};

}  // namespace berth::link
