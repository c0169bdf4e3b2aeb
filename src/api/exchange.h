#pragma once

#include <memory>

#include "api/http.h"

namespace berth::api {

// One client connection, seen from outside. answer() and answer_stream() may come from any thread; the rest belongs to
// the thread's thread. They take over the caller's reference, so that the last one is dropped on the thread's thread.
class Exchange : public std::enable_shared_from_this<Exchange> {
public:
    virtual ~Exchange() = default;
    virtual void start() = 0;
    virtual void answer(std::shared_ptr<Exchange> self, Response response) = 0;
    virtual void answer_stream(std::shared_ptr<Exchange> self, Response head, std::unique_ptr<Source> source) = 0;
    // Pulls from the source unless a write is under way.
    virtual void pump() = 0;
    // Once a second.
    virtual void check_deadline(base::Instant now) = 0;
    // The server stops: ends the stream, closes when idle.
    virtual void finish() = 0;
    virtual void close() = 0;
};

}  // namespace berth::api
