#pragma once

#include <pthread.h>

#include <thread>

namespace berth::base {

// A thread that profiles, debuggers and `top -H` show under that name: at most 15 letters.
template <class Work>
std::thread named_thread(const char* name, Work work) {
    std::thread thread(std::move(work));
    ::pthread_setname_np(thread.native_handle(), name);
    return thread;
}

}  // namespace berth::base
