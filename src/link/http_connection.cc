#include "link/http_connection.h"

#include <fmt/format.h>

#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>

#include "link/proxy_tunnel.h"

namespace berth::link {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kReadBlock = 64u << 10;
constexpr uint32_t kMostHeaders = 64u << 10;

std::string request_bytes(const Access& access, const WireRequest& request) {
    const bool asks_proxy = access.proxy && !access.tunnelled();
    const std::string path = asks_proxy ? access.url() : access.path;
    std::string out = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: berth\r\nAccept: application/json\r\n",
                                  request.method, path, request.target, access.authority());
    if (asks_proxy && !access.proxy->user.empty()) {
        out += fmt::format("Proxy-Authorization: {}\r\n", proxy_authorization(*access.proxy));
    }
    if (!access.token.empty()) out += fmt::format("Authorization: Bearer {}\r\n", access.token);
    if (!request.body.empty()) out += fmt::format("Content-Type: {}\r\n", request.content_type);
    if (!request.body.empty() || request.method != "GET") {
        out += fmt::format("Content-Length: {}\r\n", request.body.size());
    }
    out += "\r\n";
    return out + request.body;
}

class Connection final : public HttpConnection {
    enum class Phase : uint8_t { New, Connecting, Idle, Writing, Head, Body, Closed };
    using Parser = http::response_parser<http::string_body>;

public:
    Connection(std::shared_ptr<const HttpTarget> target, HttpConnectionOwner owner,
               std::unique_ptr<HttpTransport> connected)
        : target_(std::move(target)), owner_(std::move(owner)), phase_(connected ? Phase::Idle : Phase::New) {
        transport_ = connected ? std::move(connected) : std::make_unique<HttpTransport>(target_);
        since_ = now();
    }

    void begin(Turn turn) override {
        turn_ = std::make_shared<Turn>(std::move(turn));
        since_ = now();
        if (phase_ == Phase::Idle) return write();
        phase_ = Phase::Connecting;
        transport_->connect(HttpTransport::Offer::Http1, [self = self()](const std::string& trouble) {
            trouble.empty() ? self->write() : self->fail(trouble);
        });
    }

    void resume() override {
        if (!paused_ || phase_ != Phase::Body) return;
        paused_ = false;
        since_ = now();
        parse();
    }

    void abort() override {
        turn_.reset();
        close();
    }

    bool reusable() override {
        if (phase_ != Phase::Idle) return false;
        char byte = 0;
        const auto n = ::recv(transport_->socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }

    void check(base::Instant now) override {
        if (!turn_) return;
        if (phase_ == Phase::Connecting && now - since_ > kConnectWithin) return fail("connecting took too long");
        if (phase_ == Phase::Body && turn_->idle) {
            if (!paused_ && now - since_ > *turn_->idle) fail("nothing came for too long");
        } else if (now > turn_->due) {
            fail("the answer took too long");
        }
    }

    base::Instant since() const override { return since_; }

private:
    base::Instant now() const { return target_->clock.now(); }
    std::shared_ptr<Connection> self() { return std::static_pointer_cast<Connection>(shared_from_this()); }

    void write() {
        phase_ = Phase::Writing;
        bytes_ = request_bytes(target_->access, turn_->request);
        parser_.emplace();
        parser_->header_limit(kMostHeaders);
        parser_->body_limit(boost::none);
        parser_->eager(true);
        transport_->with_stream([&](auto& stream) {
            asio::async_write(stream, asio::buffer(bytes_), [self = self()](error_code ec, size_t) {
                if (self->phase_ != Phase::Writing) return;
                if (ec) return self->fail("cannot send: " + ec.message());
                self->phase_ = Phase::Head;
                self->read();
            });
        });
    }

    void read() {
        transport_->with_stream([&](auto& stream) {
            stream.async_read_some(buffer_.prepare(kReadBlock), [self = self()](error_code ec, size_t n) {
                if (self->phase_ != Phase::Head && self->phase_ != Phase::Body) return;
                if (ec) return self->at_end(ec);
                self->buffer_.commit(n);
                const auto room = self->buffer_.prepare(kReadBlock);
                self->buffer_.commit(self->transport_->read_on(room.data(), room.size()));
                self->since_ = self->now();
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
        turn->head({static_cast<int>(parser_->get().result_int()), read_retry_after({field.data(), field.size()})});
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
        since_ = now();
        if (parser_->keep_alive() && buffer_.size() == 0) {
            phase_ = Phase::Idle;
            owner_.freed(keep);
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
        const WireTrouble trouble{fmt::format("{}: {}", target_->access.url(), what), sent};
        if (turn) turn->end(&trouble);
    }

    void close() {
        if (phase_ == Phase::Closed) return;
        phase_ = Phase::Closed;
        transport_->close();
        owner_.closed(this);
    }

    std::shared_ptr<const HttpTarget> target_;
    HttpConnectionOwner owner_;
    std::unique_ptr<HttpTransport> transport_;
    std::string bytes_;  // the whole request
    boost::beast::flat_buffer buffer_;
    std::optional<Parser> parser_;
    std::shared_ptr<Turn> turn_;  // null: nobody waits
    base::Instant since_;
    Phase phase_;
    bool paused_ = false;
};

}  // namespace

std::optional<base::Duration> read_retry_after(std::string_view text) {
    if (text.empty()) return std::nullopt;
    int seconds = 1;  // a date means soon
    std::from_chars(text.data(), text.data() + text.size(), seconds);
    return std::chrono::seconds(std::max(0, seconds));
}

HttpConnectionPtr make_http_connection(std::shared_ptr<const HttpTarget> target, HttpConnectionOwner owner,
                                       std::unique_ptr<HttpTransport> connected) {
    return std::make_shared<Connection>(std::move(target), std::move(owner), std::move(connected));
}

}  // namespace berth::link
