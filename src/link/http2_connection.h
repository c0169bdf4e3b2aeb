#pragma once

#include <memory>
#include <vector>

#include "link/http_transport.h"
#include "link/wire.h"

// One HTTP/2 connection to the server: many requests share its packets and its wake-ups. Only the HTTP units include
// this; nghttp2 stays behind it.
namespace berth::link {

// A request whose whole answer is wanted.
struct HttpCall {
    WireRequest request;
    base::Instant due;
    std::function<void(WireResult)> done;
};

class Http2Connection : public std::enable_shared_from_this<Http2Connection> {
public:
    virtual ~Http2Connection() = default;
    // Connects first where it must.
    virtual void begin(HttpCall call) = 0;
    // It takes more calls: neither side has closed it or said that it is about to.
    virtual bool usable() const = 0;
    // Takes no more calls, and closes when those under way have ended.
    virtual void leave() = 0;
    virtual bool closed() const = 0;
    // Now and then: gives up what is overdue.
    virtual void check(base::Instant now) = 0;
};

// Of a server that does not speak HTTP/2: the calls that waited for it, of which nothing was sent, and the way to it.
using Http2Refused = std::function<void(std::vector<HttpCall>, std::unique_ptr<HttpTransport>)>;

std::shared_ptr<Http2Connection> make_http2_connection(std::shared_ptr<const HttpTarget> target, Http2Refused refused);

}  // namespace berth::link
