#pragma once

#include <memory>

#include "link/http_transport.h"
#include "link/wire.h"

// One HTTP/1.1 connection to the server. Only the HTTP units include this.
namespace berth::link {

struct HttpHead {
    int code = 0;
    std::optional<base::Duration> retry_after = {};
};

// One request and who wants its answer.
struct Turn {
    WireRequest request;
    base::Instant due;                        // by then the answer is whole; of a stream: its head has come
    std::optional<base::Duration> idle = {};  // a stream, that ends when nothing comes for so long
    std::function<void(const HttpHead&)> head;
    std::function<bool(std::string_view)> data;
    std::function<void(const WireTrouble*)> end;  // null: in good order
};

class HttpConnection;
using HttpConnectionPtr = std::shared_ptr<HttpConnection>;

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
public:
    virtual ~HttpConnection() = default;
    // Connects first where it must. One turn at a time.
    virtual void begin(Turn turn) = 0;
    virtual void resume() = 0;
    // Closes; the turn is not told.
    virtual void abort() = 0;
    // Between two turns, and the server has not closed it.
    virtual bool reusable() = 0;
    // Now and then: gives up what is overdue.
    virtual void check(base::Instant now) = 0;
    virtual base::Instant since() const = 0;  // the beginning or end of its last turn
};

// `freed` gets a connection whose turn is over; `closed` one that is of no more use.
struct HttpConnectionOwner {
    std::function<void(HttpConnectionPtr)> freed;
    std::function<void(HttpConnection*)> closed;
};

// Over a transport that is connected already, or, without one, over its own.
HttpConnectionPtr make_http_connection(std::shared_ptr<const HttpTarget> target, HttpConnectionOwner owner,
                                       std::unique_ptr<HttpTransport> connected = nullptr);

// Of a Retry-After header.
std::optional<base::Duration> read_retry_after(std::string_view text);

}  // namespace berth::link
