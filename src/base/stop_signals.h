#pragma once

#include <csignal>

namespace berth::base {

// What asks a process to end: Ctrl-C and `kill`.
inline sigset_t stop_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

}  // namespace berth::base
