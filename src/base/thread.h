#pragma once

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace berth::base {

// Whether a thread steps behind the others when there is not enough processor for all.
enum class Turn { Equal, Behind };

// A thread that profiles, debuggers and `top -H` show under that name, a literal: at most 15 letters.
template <class Work>
std::thread named_thread(const char* name, Work work, Turn turn = Turn::Equal) {
    return std::thread([name, work = std::move(work), turn]() mutable {
        // By itself: from outside it is a write to /proc, which Landlock refuses.
        ::pthread_setname_np(::pthread_self(), name);
        constexpr int kBehind = 5;  // a third of the others' share
        if (turn == Turn::Behind) ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kBehind);
        work();
    });
}

// The processor time that this thread has used since it began.
inline std::chrono::nanoseconds processor_time() {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace berth::base
