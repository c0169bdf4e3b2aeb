#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include "api/http_exchange.h"
#include "api/http_reader.h"

namespace berth::api {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using PlainStream = tcp::socket;
using TlsStream = asio::ssl::stream<tcp::socket>;

constexpr size_t kJoinBody = 64u << 10;
constexpr size_t kDrainBlock = 16u << 10;

Response plain_error(int status, std::string_view message) {
    Response out;
    out.status = status;
    out.content_type = "text/plain; charset=utf-8";
    out.body = message;
    out.body += '\n';
    return out;
}

// One connection: reads a request, hands it over, writes the answer, again. All members belong to the thread's thread.
template <class Stream>
class Connection final : public Exchange {
    static constexpr bool kTls = std::is_same_v<Stream, TlsStream>;
    enum class Phase : uint8_t { Handshake, Idle, Header, Body, Handling, Answering, Streaming, Closing };

public:
    Connection(IoThread& thread, Stream stream, std::unique_ptr<Guest> guest)
        : thread_(thread), guest_(std::move(guest)), stream_(std::move(stream)), reader_(thread.shared().options) {
        thread_.add(this);
    }
    ~Connection() override {
        drop_source();
        thread_.remove(this);
    }

    void start() override {
        enter(Phase::Handshake);
        if (!guest_->on_eviction([&thread = thread_, weak = weak_from_this()] {
                asio::post(thread.io(), [weak] {
                    if (const auto self = weak.lock()) std::static_pointer_cast<Connection>(self)->close_evicted();
                });
            })) {
            return close_evicted();
        }
        if constexpr (kTls) {
            stream_.set_verify_callback([this](bool verified, asio::ssl::verify_context&) {
                bad_certificate_ = bad_certificate_ || !verified;
                return true;
            });
            stream_.async_handshake(TlsStream::server, then([this](error_code ec) {
                                        if (ec) return close();
                                        peer_ = bad_certificate_ ? nullptr : peer_of(stream_.native_handle());
                                        if (peer_ != nullptr) guest_->set_known();
                                        next_request();
                                    }));
        } else {
            next_request();
        }
    }

    void answer(std::shared_ptr<Exchange> own, Response response) override {
        asio::dispatch(thread_.io(), then(std::move(own), [this, response = std::move(response)]() mutable {
                           if (phase_ == Phase::Handling) send(std::move(response));
                       }));
    }

    void answer_stream(std::shared_ptr<Exchange> own, Response head, std::unique_ptr<Source> source) override {
        asio::dispatch(thread_.io(),
                       then(std::move(own), [this, head = std::move(head), source = std::move(source)]() mutable {
                           if (phase_ == Phase::Handling) begin_stream(std::move(head), std::move(source));
                       }));
    }

    void pump() override {
        if (phase_ != Phase::Streaming || writing_ || ending_) return;
        outgoing_.clear();
        const auto state = source_->pull(outgoing_);
        if (state == Source::State::Broken) return close();
        ending_ = state == Source::State::Ended;
        if (chunked_) frame_chunk();
        if (outgoing_.empty() && !ending_) return;
        if (outgoing_.empty()) return end_stream();
        writing_ = true;
        progressed_ = thread_.now();
        asio::async_write(stream_, asio::buffer(outgoing_), then([this](error_code ec, size_t) {
                              writing_ = false;
                              if (ec) return close();
                              if (ending_) return end_stream();
                              pump();
                          }));
    }

    void check_deadline(base::Instant now) override {
        const auto& options = thread_.shared().options;
        const auto spent = std::chrono::duration_cast<std::chrono::seconds>(now - since_).count();
        switch (phase_) {
            case Phase::Handshake:
            case Phase::Header:
                if (spent >= options.header_seconds) close();
                break;
            case Phase::Idle:
                if (spent >= (guest_->known() ? options.idle_seconds : options.unknown_idle_seconds)) close();
                break;
            case Phase::Body:
                if (now - began_ >= std::chrono::seconds(options.request_seconds)) return close();
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
    // What runs when an operation is over: an exception in it ends this connection, and nothing else.
    template <class Work>
    auto then(Work work) {
        return then(shared_from_this(), std::move(work));
    }
    template <class Work>
    auto then(std::shared_ptr<Exchange> own, Work work) {
        return [&thread = thread_, own = std::move(own), work = std::move(work)](auto... results) mutable {
            thread.guarded(own.get(), [&] { work(results...); });
        };
    }

    void enter(Phase phase) {
        phase_ = phase;
        since_ = thread_.now();
    }

    void next_request() {
        if (thread_.stopping()) return close();
        reader_.begin();
        guest_->hold(0);
        body_bytes_ = 0;
        enter(Phase::Idle);
        guest_->set_idle(since_);
        if (reader_.pending() > 0) begin_header();
        parse();
    }

    void begin_header() {
        enter(Phase::Header);
        began_ = since_;
    }

    void read_more() {
        if (reading_) return;
        reading_ = true;
        stream_.async_read_some(reader_.space(), then([this](error_code ec, size_t n) {
                                    reading_ = false;
                                    if (ec) return close();
                                    reader_.came(n);
                                    on_bytes(n);
                                }));
    }

    void on_bytes(size_t n) {
        if (phase_ == Phase::Idle) begin_header();
        if (phase_ == Phase::Body) body_bytes_ += n;
        if (phase_ == Phase::Streaming) return on_bytes_behind_stream();
        if (phase_ == Phase::Header || phase_ == Phase::Body) parse();
    }

    // The next request waits until the stream has ended; reading goes on, or nobody would notice that the client left.
    void on_bytes_behind_stream() {
        if (reader_.pending() > thread_.shared().options.max_headers) return close();
        read_more();
    }

    void parse() {
        switch (reader_.advance()) {
            case HttpReader::State::More:
                if (phase_ == Phase::Body && !guest_->hold(reader_.held())) return reject_for_now();
                return read_more();
            case HttpReader::State::Head:
                return on_head();
            case HttpReader::State::Whole:
                return hand_over();
            case HttpReader::State::Refused:
                return reject(reader_.refusal());
        }
    }

    void on_head() {
        keep_alive_ = reader_.keep_alive();
        chunked_ = reader_.http_11();
        head_only_ = reader_.head().method == "HEAD";
        enter(Phase::Body);
        guest_->set_busy();
        Request& head = reader_.head();
        head.peer = peer_;
        head.bad_certificate = bad_certificate_;
        head.address = guest_->address();
        // Who is known and sends no body is looked at once, by the handler.
        const auto& screen = thread_.shared().screen;
        if (screen && (!guest_->known() || reader_.body_follows())) {
            auto seen = screen(head);
            if (seen.known) guest_->set_known();
            if (seen.refusal) return refuse(std::move(*seen.refusal));
        }
        if (reader_.wants_continue()) return send_continue();
        parse();
    }

    void send_continue() {
        static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        asio::async_write(stream_, asio::buffer(kContinue), then([this](error_code ec, size_t) {
                              if (ec) return close();
                              parse();
                          }));
    }

    void reject(const HttpReader::Refusal& why) {
        thread_.shared().counters->refused.fetch_add(1, std::memory_order_relaxed);
        refuse(plain_error(why.status, why.message));
    }

    void reject_for_now() {
        thread_.shared().counters->too_much.fetch_add(1, std::memory_order_relaxed);
        auto answer = plain_error(429, "too much is being sent at once, please try again later");
        answer.headers.emplace_back("Retry-After", "1");
        refuse(std::move(answer));
    }

    // The last answer here: the rest of the request is not read.
    void refuse(Response answer) {
        keep_alive_ = false;
        rejected_ = true;
        reader_.begin();
        guest_->hold(0);
        send(std::move(answer));
    }

    void hand_over() {
        enter(Phase::Handling);
        thread_.shared().counters->requests.fetch_add(1, std::memory_order_relaxed);
        thread_.shared().handler(reader_.take(), Responder(shared_from_this()));
    }

    void write_head(const Response& response) {
        outgoing_ = "HTTP/1.1 ";
        outgoing_ += std::to_string(response.status);
        outgoing_ += ' ';
        outgoing_ += status_text(response.status);
        outgoing_ += "\r\nContent-Type: ";
        outgoing_ += response.content_type;
        outgoing_ += "\r\nDate: ";
        outgoing_ += thread_.date();
        outgoing_ += "\r\nX-Content-Type-Options: nosniff";
        if (!response.has_header("Cache-Control")) outgoing_ += "\r\nCache-Control: no-cache, private";
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
        outgoing_ += std::to_string(response.content().size());
        outgoing_ += "\r\n\r\n";
        if (head_only_) return send_last(outgoing_);
        if (response.content().size() <= kJoinBody) {
            outgoing_ += response.content();
            return send_last(outgoing_);
        }
        body_ = response.shared_body != nullptr ? std::move(response.shared_body)
                                                : std::make_shared<const std::string>(std::move(response.body));
        asio::async_write(stream_, asio::buffer(outgoing_), then([this](error_code ec, size_t) {
                              if (ec) return close();
                              send_last(*body_);
                          }));
    }

    void send_last(const std::string& text) {
        asio::async_write(
            stream_, asio::buffer(text),
            // The deadline is about progress, not about the size of the answer.
            [self = shared_from_this(), this](const error_code& ec, size_t) -> size_t {
                since_ = thread_.now();
                return ec ? 0 : 64u << 10;
            },
            then([this](error_code ec, size_t) {
                if (ec) return close();
                after_answer();
            }));
    }

    void after_answer() {
        if (outgoing_.capacity() > kJoinBody * 2) outgoing_ = {};
        body_.reset();
        if (keep_alive_) return next_request();
        shut_down();
    }

    void shut_down() {
        enter(Phase::Closing);
        if (reading_) return close();
        if constexpr (kTls) {
            if (rejected_) return drain();
            stream_.async_shutdown(then([this](error_code) { close(); }));
        } else {
            error_code ignored;
            stream_.shutdown(tcp::socket::shutdown_send, ignored);
            drain();
        }
    }

    // Reads what the client still sends, for two seconds at most: a close in the middle of its body would reset the
    // connection, and the answer would be lost.
    void drain() {
        if (outgoing_.size() < kDrainBlock) outgoing_.resize(kDrainBlock);
        stream_.async_read_some(asio::buffer(outgoing_), then([this](error_code ec, size_t) {
                                    if (ec) return close();
                                    drain();
                                }));
    }

    void begin_stream(Response head, std::unique_ptr<Source> source) {
        enter(head_only_ ? Phase::Answering : Phase::Streaming);
        if (!chunked_) keep_alive_ = false;
        write_head(head);
        if (chunked_) outgoing_ += "\r\nTransfer-Encoding: chunked";
        outgoing_ += "\r\n\r\n";
        if (head_only_) return send_last(outgoing_);
        source_ = std::move(source);
        ending_ = false;
        thread_.add_stream(this);
        thread_.shared().counters->streams.fetch_add(1, std::memory_order_relaxed);
        if (thread_.stopping()) source_->stop();
        writing_ = true;
        progressed_ = thread_.now();
        read_more();  // only to notice that the client left
        asio::async_write(stream_, asio::buffer(outgoing_), then([this](error_code ec, size_t) {
                              writing_ = false;
                              if (ec) return close();
                              pump();
                          }));
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
        thread_.remove_stream(this);
        thread_.shared().counters->streams.fetch_sub(1, std::memory_order_relaxed);
    }

    void close_slow() {
        thread_.shared().counters->slow_closed.fetch_add(1, std::memory_order_relaxed);
        close();
    }

    void close_evicted() {
        thread_.shared().counters->evicted.fetch_add(1, std::memory_order_relaxed);
        close();
    }

    IoThread& thread_;
    const std::unique_ptr<Guest> guest_;
    Stream stream_;
    HttpReader reader_;
    std::string outgoing_;
    std::shared_ptr<const std::string> body_;  // of a large answer
    std::unique_ptr<Source> source_;
    std::shared_ptr<const PeerCertificate> peer_;
    base::Instant since_{};
    base::Instant began_{};  // the request
    base::Instant progressed_{};
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

std::shared_ptr<Exchange> make_connection(IoThread& thread, tcp::socket socket, std::unique_ptr<Guest> guest) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    if (thread.shared().tls == nullptr) {
        return std::make_shared<Connection<PlainStream>>(thread, std::move(socket), std::move(guest));
    }
    return std::make_shared<Connection<TlsStream>>(thread, TlsStream(std::move(socket), *thread.shared().tls),
                                                   std::move(guest));
}

}  // namespace berth::api
