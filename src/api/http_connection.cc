#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "api/http_exchange.h"

namespace berth::api {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using PlainStream = tcp::socket;
using TlsStream = asio::ssl::stream<tcp::socket>;

constexpr size_t kReadBlock = 16u << 10;
constexpr size_t kJoinBody = 64u << 10;

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
}

std::vector<std::string> names_in(X509_NAME* subject, int nid) {
    std::vector<std::string> out;
    for (int at = X509_NAME_get_index_by_NID(subject, nid, -1); at >= 0;
         at = X509_NAME_get_index_by_NID(subject, nid, at)) {
        unsigned char* utf8 = nullptr;
        const int size = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
        if (size >= 0) out.emplace_back(reinterpret_cast<char*>(utf8), static_cast<size_t>(size));
        OPENSSL_free(utf8);
    }
    return out;
}

std::shared_ptr<const PeerCertificate> peer_of(SSL* ssl) {
    X509* certificate = SSL_get1_peer_certificate(ssl);
    if (certificate == nullptr) return nullptr;
    X509_NAME* subject = X509_get_subject_name(certificate);
    auto peer = std::make_shared<PeerCertificate>();
    auto names = names_in(subject, NID_commonName);
    if (!names.empty()) peer->common_name = std::move(names.front());
    peer->organizations = names_in(subject, NID_organizationName);
    X509_free(certificate);
    return peer;
}

bool parse_query(std::string_view text, Pairs& out) {
    while (!text.empty()) {
        const auto end = text.find('&');
        const auto part = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
        if (part.empty()) continue;
        const auto equals = part.find('=');
        std::string name, value;
        if (!percent_decode(part.substr(0, equals), true, name)) return false;
        if (equals != std::string_view::npos && !percent_decode(part.substr(equals + 1), true, value)) return false;
        out.emplace_back(std::move(name), std::move(value));
    }
    return true;
}

Response plain_error(int status, std::string_view message) {
    Response out;
    out.status = status;
    out.content_type = "text/plain; charset=utf-8";
    out.body = message;
    out.body += '\n';
    return out;
}

// One connection: reads a request, hands it over, writes the answer, again. All members belong to the lane's thread.
template <class Stream>
class Connection final : public Exchange {
    static constexpr bool kTls = std::is_same_v<Stream, TlsStream>;
    enum class Phase : uint8_t { Handshake, Idle, Header, Body, Handling, Answering, Streaming, Closing };
    using Parser = http::request_parser<http::string_body>;

public:
    Connection(Lane& lane, Stream stream) : lane_(lane), stream_(std::move(stream)) { lane_.add(this); }
    ~Connection() override { lane_.remove(this); }

    void start() override {
        enter(Phase::Handshake);
        if constexpr (kTls) {
            stream_.set_verify_callback([this](bool verified, asio::ssl::verify_context&) {
                bad_certificate_ = bad_certificate_ || !verified;
                return true;
            });
            stream_.async_handshake(TlsStream::server, [self = self()](error_code ec) {
                if (ec) return self->close();
                self->peer_ = self->bad_certificate_ ? nullptr : peer_of(self->stream_.native_handle());
                self->next_request();
            });
        } else {
            next_request();
        }
    }

    void answer(std::shared_ptr<Exchange> own, Response response) override {
        asio::dispatch(lane_.io(), [self = std::static_pointer_cast<Connection>(std::move(own)),
                                    response = std::move(response)]() mutable {
            if (self->phase_ == Phase::Handling) self->send(std::move(response));
        });
    }

    void answer_stream(std::shared_ptr<Exchange> own, Response head, std::unique_ptr<Source> source) override {
        asio::dispatch(lane_.io(), [self = std::static_pointer_cast<Connection>(std::move(own)), head = std::move(head),
                                    source = std::move(source)]() mutable {
            if (self->phase_ == Phase::Handling) self->begin_stream(std::move(head), std::move(source));
        });
    }

    void pump() override {
        if (phase_ != Phase::Streaming || writing_ || ending_) return;
        outgoing_.clear();
        const auto state = source_->pull(outgoing_);
        ending_ = state == Source::State::Ended;
        if (chunked_) frame_chunk();
        if (outgoing_.empty() && !ending_) return;
        if (outgoing_.empty()) return end_stream();
        writing_ = true;
        progressed_ = std::chrono::steady_clock::now();
        asio::async_write(stream_, asio::buffer(outgoing_), [self = self()](error_code ec, size_t) {
            self->writing_ = false;
            if (ec) return self->close();
            if (self->ending_) return self->end_stream();
            self->pump();
        });
    }

    void check_deadline(SteadyTime now) override {
        const auto& options = lane_.shared().options;
        const auto spent = std::chrono::duration_cast<std::chrono::seconds>(now - since_).count();
        switch (phase_) {
            case Phase::Handshake:
            case Phase::Header:
                if (spent >= options.header_seconds) close();
                break;
            case Phase::Idle:
                if (spent >= options.idle_seconds) close();
                break;
            case Phase::Body:
                if (spent >= options.body_grace_seconds &&
                    body_bytes_ < static_cast<size_t>(spent) * options.min_body_rate) {
                    close();
                }
                break;
            case Phase::Answering:
                if (spent >= options.write_seconds) close_slow();
                break;
            case Phase::Streaming:
                if (writing_ && now - progressed_ >= std::chrono::seconds(options.write_seconds)) return close_slow();
                pump();
                break;
            case Phase::Closing:
                if (spent >= 2) close();
                break;
            case Phase::Handling:
                break;
        }
    }

    void finish() override {
        if (phase_ == Phase::Idle || phase_ == Phase::Handshake || phase_ == Phase::Header) return close();
        if (phase_ == Phase::Streaming) {
            source_->stop();
            pump();
        }
    }

    void close() override {
        phase_ = Phase::Closing;
        drop_source();
        error_code ignored;
        stream_.lowest_layer().close(ignored);
    }

private:
    std::shared_ptr<Connection> self() { return std::static_pointer_cast<Connection>(shared_from_this()); }

    void enter(Phase phase) {
        phase_ = phase;
        since_ = std::chrono::steady_clock::now();
    }

    void next_request() {
        if (lane_.stopping()) return close();
        parser_.emplace();
        parser_->header_limit(static_cast<uint32_t>(lane_.shared().options.max_headers));
        parser_->body_limit(lane_.shared().options.max_body);
        parser_->eager(true);
        body_bytes_ = 0;
        enter(buffer_.size() > 0 ? Phase::Header : Phase::Idle);
        parse();
    }

    void read_more() {
        if (reading_) return;
        reading_ = true;
        stream_.async_read_some(buffer_.prepare(kReadBlock), [self = self()](error_code ec, size_t n) {
            self->reading_ = false;
            if (ec) return self->close();
            self->buffer_.commit(n);
            self->on_bytes(n);
        });
    }

    void on_bytes(size_t n) {
        if (phase_ == Phase::Idle) enter(Phase::Header);
        if (phase_ == Phase::Body) body_bytes_ += n;
        if (phase_ == Phase::Header || phase_ == Phase::Body) parse();
    }

    void parse() {
        while (!parser_->is_done()) {
            if (buffer_.size() == 0) return read_more();
            error_code ec;
            buffer_.consume(parser_->put(buffer_.data(), ec));
            if (ec && ec != http::error::need_more) return refuse(ec);
            if (phase_ == Phase::Header && parser_->is_header_done() && !on_header()) return;
            if (ec) return read_more();
        }
        hand_over();
    }

    // False when the request was refused, or parsing goes on later.
    bool on_header() {
        const auto& head = parser_->get();
        if (head.target().size() > lane_.shared().options.max_url) {
            reject(414, "the URL is longer than 32 KiB");
            return false;
        }
        const auto encoding = head[http::field::content_encoding];
        if (!encoding.empty() && encoding != "identity") {
            reject(415, "compressed request bodies are not accepted");
            return false;
        }
        enter(Phase::Body);
        if (parser_->is_done() || head[http::field::expect] != "100-continue") return true;
        send_continue();
        return false;
    }

    void send_continue() {
        static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        asio::async_write(stream_, asio::buffer(kContinue), [self = self()](error_code ec, size_t) {
            if (ec) return self->close();
            self->parse();
        });
    }

    void refuse(error_code ec) {
        if (ec == http::error::header_limit) return reject(431, "the request's headers are larger than 64 KiB");
        if (ec == http::error::body_limit) return reject(413, "the request's body is larger than 3 MiB");
        reject(400, "malformed HTTP request: " + ec.message());
    }

    void reject(int status, std::string_view message) {
        keep_alive_ = false;
        rejected_ = true;
        phase_ = Phase::Handling;
        send(plain_error(status, message));
    }

    void hand_over() {
        auto message = parser_->release();
        keep_alive_ = message.keep_alive();
        chunked_ = message.version() >= 11;
        Request request;
        request.method = std::string(message.method_string());
        head_only_ = request.method == "HEAD";
        const std::string_view target(message.target().data(), message.target().size());
        const auto question = target.find('?');
        request.path = std::string(target.substr(0, question));
        enter(Phase::Handling);
        if (target.empty() || target[0] != '/' ||
            (question != std::string_view::npos && !parse_query(target.substr(question + 1), request.query))) {
            return send(plain_error(400, "malformed URL"));
        }
        for (const auto& field : message) {
            request.headers.emplace_back(lower({field.name_string().data(), field.name_string().size()}),
                                         std::string(field.value().data(), field.value().size()));
        }
        request.body = std::move(message.body());
        request.peer = peer_;
        request.bad_certificate = bad_certificate_;
        lane_.shared().counters.requests.fetch_add(1, std::memory_order_relaxed);
        lane_.shared().handler(std::move(request), Responder(shared_from_this()));
    }

    void write_head(const Response& response) {
        outgoing_ = "HTTP/1.1 ";
        outgoing_ += std::to_string(response.status);
        outgoing_ += ' ';
        outgoing_ += status_text(response.status);
        outgoing_ += "\r\nContent-Type: ";
        outgoing_ += response.content_type;
        outgoing_ += "\r\nDate: ";
        outgoing_ += lane_.date();
        for (const auto& [name, value] : response.headers) {
            outgoing_ += "\r\n";
            outgoing_ += name;
            outgoing_ += ": ";
            outgoing_ += value;
        }
        if (!keep_alive_) outgoing_ += "\r\nConnection: close";
    }

    void send(Response response) {
        enter(Phase::Answering);
        write_head(response);
        outgoing_ += "\r\nContent-Length: ";
        outgoing_ += std::to_string(response.body.size());
        outgoing_ += "\r\n\r\n";
        if (head_only_) response.body.clear();
        if (response.body.size() <= kJoinBody) {
            outgoing_ += response.body;
            return send_last();
        }
        body_ = std::move(response.body);
        asio::async_write(stream_, asio::buffer(outgoing_), [self = self()](error_code ec, size_t) {
            if (ec) return self->close();
            self->outgoing_ = std::move(self->body_);
            self->send_last();
        });
    }

    void send_last() {
        asio::async_write(
            stream_, asio::buffer(outgoing_),
            // The deadline is about progress, not about the size of the answer.
            [self = self()](const error_code& ec, size_t) -> size_t {
                self->since_ = std::chrono::steady_clock::now();
                return ec ? 0 : 64u << 10;
            },
            [self = self()](error_code ec, size_t) {
                if (ec) return self->close();
                self->after_answer();
            });
    }

    void after_answer() {
        if (outgoing_.capacity() > kJoinBody * 2) outgoing_ = {};
        if (keep_alive_) return next_request();
        shut_down();
    }

    void shut_down() {
        enter(Phase::Closing);
        if (reading_) return close();
        if constexpr (kTls) {
            if (rejected_) return drain();
            stream_.async_shutdown([self = self()](error_code) { self->close(); });
        } else {
            error_code ignored;
            stream_.shutdown(tcp::socket::shutdown_send, ignored);
            drain();
        }
    }

    // Reads what the client still sends, for two seconds at most: a close in the middle of its body would reset the
    // connection, and the answer would be lost.
    void drain() {
        buffer_.clear();
        stream_.async_read_some(buffer_.prepare(kReadBlock), [self = self()](error_code ec, size_t) {
            if (ec) return self->close();
            self->drain();
        });
    }

    void begin_stream(Response head, std::unique_ptr<Source> source) {
        enter(Phase::Streaming);
        source_ = std::move(source);
        ending_ = false;
        if (!chunked_) keep_alive_ = false;
        write_head(head);
        if (chunked_) outgoing_ += "\r\nTransfer-Encoding: chunked";
        outgoing_ += "\r\n\r\n";
        lane_.add_stream(this);
        lane_.shared().counters.streams.fetch_add(1, std::memory_order_relaxed);
        if (lane_.stopping()) source_->stop();
        writing_ = true;
        progressed_ = std::chrono::steady_clock::now();
        read_more();  // only to notice that the client left
        asio::async_write(stream_, asio::buffer(outgoing_), [self = self()](error_code ec, size_t) {
            self->writing_ = false;
            if (ec) return self->close();
            self->pump();
        });
    }

    void frame_chunk() {
        if (!outgoing_.empty()) {
            char size[20];
            const int n = std::snprintf(size, sizeof(size), "%zx\r\n", outgoing_.size());
            outgoing_.insert(0, size, static_cast<size_t>(n));
            outgoing_ += "\r\n";
        }
        if (ending_) outgoing_ += "0\r\n\r\n";
    }

    void end_stream() {
        drop_source();
        if (!keep_alive_) return shut_down();
        next_request();
    }

    void drop_source() {
        if (source_ == nullptr) return;
        source_.reset();
        lane_.remove_stream(this);
        lane_.shared().counters.streams.fetch_sub(1, std::memory_order_relaxed);
    }

    void close_slow() {
        lane_.shared().counters.slow_closed.fetch_add(1, std::memory_order_relaxed);
        close();
    }

    Lane& lane_;
    Stream stream_;
    boost::beast::flat_buffer buffer_{256u << 10};
    std::optional<Parser> parser_;
    std::string outgoing_;
    std::string body_;
    std::unique_ptr<Source> source_;
    std::shared_ptr<const PeerCertificate> peer_;
    SteadyTime since_{};
    SteadyTime progressed_{};
    size_t body_bytes_ = 0;
    Phase phase_ = Phase::Handshake;
    bool bad_certificate_ = false;
    bool reading_ = false;
    bool writing_ = false;
    bool ending_ = false;
    bool keep_alive_ = true;
    bool chunked_ = true;
    bool head_only_ = false;
    bool rejected_ = false;
};

}  // namespace

std::shared_ptr<Exchange> make_connection(Lane& lane, tcp::socket socket) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    if (lane.shared().tls == nullptr) return std::make_shared<Connection<PlainStream>>(lane, std::move(socket));
    return std::make_shared<Connection<TlsStream>>(lane, TlsStream(std::move(socket), *lane.shared().tls));
}

}  // namespace berth::api
