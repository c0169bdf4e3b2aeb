#include "link/http_connection.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>

namespace berth::link {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr size_t kReadBlock = 64u << 10;
constexpr uint32_t kMostHeaders = 64u << 10;
constexpr auto kConnectWithin = std::chrono::seconds(10);

// A peer that is gone without a word is noticed within about half a minute, on idle connections too.
void set_socket_options(tcp::socket& socket) {
    const int fd = socket.native_handle();
    const auto set = [fd](int level, int name, int value) { ::setsockopt(fd, level, name, &value, sizeof(value)); };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

std::optional<base::Duration> retry_after(std::string_view text) {
    if (text.empty()) return std::nullopt;
    int seconds = 1;  // a date means soon
    std::from_chars(text.data(), text.data() + text.size(), seconds);
    return std::chrono::seconds(std::max(0, seconds));
}

class Connection final : public HttpConnection {
    enum class Phase : uint8_t { New, Connecting, Idle, Writing, Head, Body, Closed };
    using Parser = http::response_parser<http::string_body>;

public:
    explicit Connection(std::shared_ptr<HttpShared> shared)
        : shared_(std::move(shared)), resolver_(shared_->io), socket_(shared_->io) {}

    void begin(Turn turn) override {
        turn_ = std::make_shared<Turn>(std::move(turn));
        since_ = steady_clock::now();
        if (phase_ == Phase::Idle) return write();
        phase_ = Phase::Connecting;
        resolver_.async_resolve(shared_->access.host, shared_->access.port,
                                [self = self()](error_code ec, const tcp::resolver::results_type& found) {
                                    if (self->phase_ != Phase::Connecting) return;
                                    if (ec) return self->fail("cannot resolve the host: " + ec.message());
                                    self->connect(found);
                                });
    }

    void resume() override {
        if (!paused_ || phase_ != Phase::Body) return;
        paused_ = false;
        since_ = steady_clock::now();
        parse();
    }

    void abort() override {
        turn_.reset();
        close();
    }

    bool reusable() override {
        if (phase_ != Phase::Idle) return false;
        char byte = 0;
        const auto n = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }

    void check(SteadyTime now) override {
        if (!turn_) return;
        if (phase_ == Phase::Connecting && now - since_ > kConnectWithin) return fail("connecting took too long");
        if (phase_ == Phase::Body && turn_->idle) {
            if (!paused_ && now - since_ > *turn_->idle) fail("nothing came for too long");
        } else if (now > turn_->due) {
            fail("the answer took too long");
        }
    }

    SteadyTime since() const override { return since_; }

private:
    std::shared_ptr<Connection> self() { return std::static_pointer_cast<Connection>(shared_from_this()); }

    template <class F>
    void with_stream(F f) {
        if (tls_) {
            f(*tls_);
        } else {
            f(socket_);
        }
    }

    void connect(const tcp::resolver::results_type& found) {
        asio::async_connect(socket_, found, [self = self()](error_code ec, const tcp::endpoint&) {
            if (self->phase_ != Phase::Connecting) return;
            if (ec) return self->fail("cannot connect: " + ec.message());
            set_socket_options(self->socket_);
            self->shared_->access.tls ? self->handshake() : self->write();
        });
    }

    void handshake() {
        const Access& access = shared_->access;
        tls_.emplace(socket_, *shared_->tls);
        error_code ignored;
        asio::ip::make_address(access.server_name, ignored);
        if (ignored) SSL_set_tlsext_host_name(tls_->native_handle(), access.server_name.c_str());
        if (!access.skip_verify) tls_->set_verify_callback(asio::ssl::host_name_verification(access.server_name));
        tls_->async_handshake(asio::ssl::stream_base::client, [self = self()](error_code ec) {
            if (self->phase_ != Phase::Connecting) return;
            if (!ec) return self->write();
            const long why = SSL_get_verify_result(self->tls_->native_handle());
            self->fail("the TLS handshake failed: " +
                       (why == X509_V_OK ? ec.message() : X509_verify_cert_error_string(why)));
        });
    }

    void write() {
        phase_ = Phase::Writing;
        parser_.emplace();
        parser_->header_limit(kMostHeaders);
        parser_->body_limit(boost::none);
        parser_->eager(true);
        with_stream([&](auto& stream) {
            asio::async_write(stream, asio::buffer(turn_->bytes), [self = self()](error_code ec, size_t) {
                if (self->phase_ != Phase::Writing) return;
                if (ec) return self->fail("cannot send: " + ec.message());
                self->phase_ = Phase::Head;
                self->read();
            });
        });
    }

    void read() {
        with_stream([&](auto& stream) {
            stream.async_read_some(buffer_.prepare(kReadBlock), [self = self()](error_code ec, size_t n) {
                if (self->phase_ != Phase::Head && self->phase_ != Phase::Body) return;
                if (ec) return self->at_end(ec);
                self->buffer_.commit(n);
                self->since_ = steady_clock::now();
                self->parse();
            });
        });
    }

    // A body without a length ends with the connection; anything else was cut off.
    void at_end(error_code ec) {
        error_code trouble;
        if (phase_ == Phase::Body) parser_->put_eof(trouble);
        if (phase_ == Phase::Body && !trouble && parser_->is_done()) return finish();
        const bool closed = ec == asio::error::eof || ec == asio::ssl::error::stream_truncated;
        fail(closed ? "the server closed the connection" : "cannot receive: " + ec.message());
    }

    void parse() {
        while (!parser_->is_done()) {
            if (buffer_.size() == 0) return read();
            error_code ec;
            buffer_.consume(parser_->put(buffer_.data(), ec));
            if (ec && ec != http::error::need_more) return fail("the answer is not HTTP: " + ec.message());
            if (phase_ == Phase::Head && parser_->is_header_done() && !tell_head()) return;
            if (phase_ == Phase::Body && !tell_data()) return;
            if (ec && !parser_->is_done()) return read();
        }
        finish();
    }

    // Both are false when the turn ended inside the call, or nothing more shall be read for now.
    bool tell_head() {
        phase_ = Phase::Body;
        const auto field = parser_->get()[http::field::retry_after];
        const auto turn = turn_;  // abort() inside the call leaves it whole
        turn->head({static_cast<int>(parser_->get().result_int()), retry_after({field.data(), field.size()})});
        return turn_ != nullptr;
    }
    bool tell_data() {
        std::string bytes;
        bytes.swap(parser_->get().body());
        if (bytes.empty()) return true;
        const auto turn = turn_;
        const bool more = turn->data(bytes);
        if (!turn_) return false;
        paused_ = !more && !parser_->is_done();
        return !paused_;
    }

    void finish() {
        const auto keep = self();
        const auto turn = std::move(turn_);
        since_ = steady_clock::now();
        if (parser_->keep_alive() && buffer_.size() == 0) {
            phase_ = Phase::Idle;
            shared_->freed(keep);
        } else {
            close();
        }
        turn->end(nullptr);
    }

    void fail(const std::string& what) {
        const auto keep = self();
        const bool sent = phase_ != Phase::New && phase_ != Phase::Connecting;
        const auto turn = std::move(turn_);
        close();
        const WireTrouble trouble{fmt::format("{}: {}", shared_->access.url(), what), sent};
        if (turn) turn->end(&trouble);
    }

    void close() {
        if (phase_ == Phase::Closed) return;
        phase_ = Phase::Closed;
        resolver_.cancel();
        error_code ignored;
        socket_.close(ignored);
        shared_->closed(this);
    }

    std::shared_ptr<HttpShared> shared_;
    tcp::resolver resolver_;
    tcp::socket socket_;
    std::optional<asio::ssl::stream<tcp::socket&>> tls_;
    boost::beast::flat_buffer buffer_;
    std::optional<Parser> parser_;
    std::shared_ptr<Turn> turn_;  // null: nobody waits
    SteadyTime since_ = steady_clock::now();
    Phase phase_ = Phase::New;
    bool paused_ = false;
};

}  // namespace

HttpConnectionPtr make_http_connection(std::shared_ptr<HttpShared> shared) {
    return std::make_shared<Connection>(std::move(shared));
}

}  // namespace berth::link
