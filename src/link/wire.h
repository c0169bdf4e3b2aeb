#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/loop.h"

// The door to the network below the remote server: requests and bodies, nothing about Kubernetes. The real one speaks
// HTTP/1.1 (http_wire.h); tests script theirs. Everything here belongs to the loop's thread.
namespace berth::link {

struct WireRequest {
    std::string method;
    std::string target;  // path with its query
    std::string body = {};
    std::string content_type = {};
    size_t most_body = size_t{512} << 20;  // of the answer; a larger one is trouble
};

struct WireAnswer {
    int code = 0;
    std::string body;
    std::optional<base::Duration> retry_after = {};
};

// No answer. `sent`: bytes of the request may have reached the server, so it may have taken effect.
struct WireTrouble {
    std::string what;
    bool sent = false;
};

using WireResult = std::variant<WireAnswer, WireTrouble>;

// What a stream tells: its head once, then bytes, then its end, which is the last call.
struct StreamSink {
    std::function<void(int code)> head;
    // False: read no more until resume().
    std::function<bool(std::string_view bytes)> data;
    // Empty: the server ended it in good order.
    std::function<void(const std::string& trouble)> end;
};

// Destroying it closes the connection; nothing is told after that.
class WireStream {
public:
    virtual ~WireStream() = default;
    virtual void resume() = 0;
};

class Wire {
public:
    virtual ~Wire() = default;
    virtual base::Loop& loop() = 0;
    virtual void call(WireRequest request, base::Duration most, std::function<void(WireResult)> done) = 0;
    // Ends with trouble when nothing at all comes for `idle`.
    virtual std::unique_ptr<WireStream> open(WireRequest request, base::Duration idle, StreamSink sink) = 0;
    // The server refused who we are: renews the credentials, and tells, maybe inside this call, whether they changed.
    virtual void refresh(std::function<void(bool changed)> done) = 0;
    // Ends the loop's thread. Nothing is called back after that.
    virtual void stop() = 0;
};

}  // namespace berth::link
