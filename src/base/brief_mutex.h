#pragma once

#include <pthread.h>

#include "base/check.h"

namespace berth::base {

// A mutex for what takes microseconds: who finds it taken looks a few times more before it sleeps, since to sleep and
// be woken takes longer than most wait.
class BriefMutex {
public:
    BriefMutex() {
        pthread_mutexattr_t kind;
        CHECK(pthread_mutexattr_init(&kind) == 0);
        CHECK(pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP) == 0);
        CHECK(pthread_mutex_init(&mutex_, &kind) == 0);
        pthread_mutexattr_destroy(&kind);
    }
    ~BriefMutex() { pthread_mutex_destroy(&mutex_); }
    BriefMutex(const BriefMutex&) = delete;
    BriefMutex& operator=(const BriefMutex&) = delete;

    void lock() { CHECK(pthread_mutex_lock(&mutex_) == 0); }
    void unlock() { pthread_mutex_unlock(&mutex_); }

private:
    pthread_mutex_t mutex_;
};

}  // namespace berth::base
