#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "link/kubeconfig.h"

// The bytes below HTTP. Only the HTTP units include this.
namespace berth::link {

constexpr auto kConnectWithin = std::chrono::seconds(10);

// Where connections go, and as whom.
struct HttpTarget {
    boost::asio::io_context& io;
    const base::Clock& clock;
    Access access;
    std::unique_ptr<boost::asio::ssl::context> tls;  // null: plain TCP
};

// One TCP connection, with TLS where the target has it.
class HttpTransport {
public:
    using Socket = boost::asio::ip::tcp::socket;
    enum class Offer : uint8_t { Http1, Http2OrHttp1 };

    explicit HttpTransport(std::shared_ptr<const HttpTarget> target);

    // Calls back with what went wrong, or an empty text; not at all after close(). `done` keeps the transport alive.
    void connect(Offer offer, std::function<void(const std::string& trouble)> done);
    // What the server chose of the offer.
    bool http2();
    void close();
    Socket& socket() { return socket_; }
    // After a read: what has been received besides, as far as there is room, without asking the socket. A read gives
    // one TLS record at a time, and servers write many small ones. What fails here fails at the next read.
    size_t read_on(void* to, size_t room);

    template <class F>
    void with_stream(F f) {
        if (tls_) {
            f(*tls_);
        } else {
            f(socket_);
        }
    }

private:
    void go_through(Offer offer, std::function<void(const std::string& trouble)> done);
    void arrive(Offer offer, std::function<void(const std::string& trouble)> done);
    void shake_hands(Offer offer, std::function<void(const std::string& trouble)> done);

    std::shared_ptr<const HttpTarget> target_;
    boost::asio::ip::tcp::resolver resolver_;
    Socket socket_;
    std::optional<boost::asio::ssl::stream<Socket&>> tls_;
    bool closed_ = false;
};

}  // namespace berth::link
