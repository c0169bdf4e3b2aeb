#include "link/http2_connection.h"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <map>

#include "base/check.h"
#include "link/http_connection.h"

namespace berth::link {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t kReadBlock = 64u << 10;
constexpr size_t kWriteBlock = 64u << 10;
// How much a server may send before we take it: a page of a list is some megabytes.
constexpr int32_t kWindow = 16 << 20;

struct Stream {
    HttpCall call;
    base::Instant since;
    WireAnswer answer = {};
    size_t body_sent = 0;
    bool too_large = false;
};

std::string_view text(const uint8_t* bytes, size_t size) {
    return {reinterpret_cast<const char*>(bytes), size};
}

nghttp2_nv field(std::string_view name, std::string_view value, uint8_t flags = NGHTTP2_NV_FLAG_NONE) {
    const auto bytes = [](std::string_view of) {
        return const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(of.data()));  // nghttp2 only reads it
    };
    return {bytes(name), bytes(value), name.size(), value.size(), flags};
}

Stream* stream_of(nghttp2_session* session, int32_t id) {
    return static_cast<Stream*>(nghttp2_session_get_stream_user_data(session, id));
}

int on_header(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
              const uint8_t* value, size_t value_size, uint8_t, void*) {
    Stream* stream = stream_of(session, frame->hd.stream_id);
    if (stream == nullptr) return 0;
    const auto key = text(name, name_size);
    if (key == ":status") stream->answer.code = std::atoi(std::string(text(value, value_size)).c_str());
    if (key == "retry-after") stream->answer.retry_after = read_retry_after(text(value, value_size));
    return 0;
}

int on_data(nghttp2_session* session, uint8_t, int32_t id, const uint8_t* bytes, size_t size, void*) {
    Stream* stream = stream_of(session, id);
    if (stream == nullptr) return 0;
    std::string& body = stream->answer.body;
    stream->too_large = stream->too_large || body.size() + size > stream->call.request.most_body;
    if (!stream->too_large) body.append(text(bytes, size));
    return 0;
}

ssize_t read_body(nghttp2_session*, int32_t, uint8_t* out, size_t most, uint32_t* flags, nghttp2_data_source* source,
                  void*) {
    auto& stream = *static_cast<Stream*>(source->ptr);
    const std::string& body = stream.call.request.body;
    const size_t size = body.copy(reinterpret_cast<char*>(out), most, stream.body_sent);
    stream.body_sent += size;
    if (stream.body_sent == body.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
}

class Connection final : public Http2Connection {
    enum class Phase : uint8_t { New, Connecting, Open, Closed };

public:
    Connection(std::shared_ptr<const HttpTarget> target, Http2Refused refused)
        : target_(std::move(target)),
          refused_(std::move(refused)),
          transport_(std::make_unique<HttpTransport>(target_)),
          authority_(target_->access.authority()),
          authorization_(target_->access.token.empty() ? "" : "Bearer " + target_->access.token) {}
    ~Connection() override { nghttp2_session_del(session_); }

    void begin(HttpCall call) override {
        if (phase_ == Phase::Open) return submit(std::move(call));
        waiting_.push_back(std::move(call));
        if (phase_ == Phase::Connecting) return;
        phase_ = Phase::Connecting;
        since_ = now();
        transport_->connect(HttpTransport::Offer::Http2OrHttp1, [self = self()](const std::string& trouble) {
            trouble.empty() ? self->opened() : self->fail(trouble);
        });
    }

    bool usable() const override {
        if (leaving_ || phase_ == Phase::Closed) return false;
        return phase_ != Phase::Open || nghttp2_session_check_request_allowed(session_) != 0;
    }
    void leave() override { leaving_ = true; }
    bool closed() const override { return phase_ == Phase::Closed; }

    void check(base::Instant now) override {
        if (phase_ == Phase::Connecting) return check_waiting(now);
        if (phase_ != Phase::Open) return;
        std::vector<int32_t> overdue;
        for (const auto& [id, stream] : streams_) {
            if (now <= stream->call.due) continue;
            // Not a word since it began: nobody is there any more.
            if (heard_ < stream->since) return fail("the answer took too long");
            overdue.push_back(id);
        }
        for (const auto id : overdue) {
            nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
            end(id, WireTrouble{trouble("the answer took too long"), true});
        }
        tell_ended();
        if (leaving_ && streams_.empty()) return close();
        flush();
    }

private:
    base::Instant now() const { return target_->clock.now(); }
    std::shared_ptr<Connection> self() { return std::static_pointer_cast<Connection>(shared_from_this()); }
    std::string trouble(std::string_view what) const { return fmt::format("{}: {}", target_->access.url(), what); }

    // A connection that is not made in time for one call is tried anew for all.
    void check_waiting(base::Instant now) {
        if (now - since_ > kConnectWithin) return fail("connecting took too long");
        for (const auto& call : waiting_) {
            if (now > call.due) return fail("the answer took too long");
        }
    }

    void opened() {
        if (!transport_->http2()) {
            phase_ = Phase::Closed;
            return refused_(std::exchange(waiting_, {}), std::move(transport_));
        }
        phase_ = Phase::Open;
        heard_ = now();
        make_session();
        for (auto& call : std::exchange(waiting_, {})) submit(std::move(call));
        read();
    }

    void make_session() {
        nghttp2_session_callbacks* calls = nullptr;
        CHECK(nghttp2_session_callbacks_new(&calls) == 0);
        nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
        nghttp2_session_callbacks_set_on_stream_close_callback(
            calls, [](nghttp2_session*, int32_t id, uint32_t code, void* self) {
                static_cast<Connection*>(self)->on_close(id, code);
                return 0;
            });
        // After GOAWAY what still waits for its turn is not sent at all.
        nghttp2_session_callbacks_set_on_frame_not_send_callback(
            calls, [](nghttp2_session*, const nghttp2_frame* frame, int, void* self) {
                if (frame->hd.type == NGHTTP2_HEADERS) {
                    static_cast<Connection*>(self)->on_close(frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
                }
                return 0;
            });
        CHECK(nghttp2_session_client_new(&session_, calls, this) == 0);
        nghttp2_session_callbacks_del(calls);
        const std::array settings{nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                  nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindow}};
        CHECK(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0);
        CHECK(nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kWindow) == 0);
    }

    void submit(HttpCall call) {
        auto stream = std::make_unique<Stream>(Stream{std::move(call), now()});
        const WireRequest& request = stream->call.request;
        const std::string path = target_->access.path + request.target;
        // Most paths come once: they would only push the others out of the table of headers.
        std::vector fields{field(":method", request.method), field(":scheme", "https"),
                           field(":authority", authority_),  field(":path", path, NGHTTP2_NV_FLAG_NO_INDEX),
                           field("user-agent", "berth"),     field("accept", "application/json")};
        if (!authorization_.empty()) fields.push_back(field("authorization", authorization_));
        if (!request.body.empty()) fields.push_back(field("content-type", request.content_type));
        const nghttp2_data_provider body{{.ptr = stream.get()}, read_body};
        const int32_t id = nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(),
                                                  request.body.empty() ? nullptr : &body, stream.get());
        if (id < 0) {
            ended_.emplace_back(std::move(stream), WireTrouble{trouble(nghttp2_strerror(id)), false});
        } else {
            streams_.emplace(id, std::move(stream));
        }
        flush_soon();
    }

    void on_close(int32_t id, uint32_t code) {
        const auto found = streams_.find(id);
        if (found == streams_.end()) return;
        const Stream& stream = *found->second;
        if (code == NGHTTP2_NO_ERROR && stream.answer.code != 0 && !stream.too_large) {
            return end(id, std::move(found->second->answer));
        }
        const std::string what = stream.too_large
                                     ? fmt::format("the answer is larger than {} bytes", stream.call.request.most_body)
                                     : fmt::format("the server ended the request: {}", nghttp2_http2_strerror(code));
        // A refused stream was not looked at: RFC 9113, 8.7.
        end(id, WireTrouble{trouble(what), code != NGHTTP2_REFUSED_STREAM});
    }

    // Told after nghttp2 has returned, so that whoever is told may begin the next call.
    void end(int32_t id, WireResult result) {
        const auto found = streams_.find(id);
        nghttp2_session_set_stream_user_data(session_, id, nullptr);
        ended_.emplace_back(std::move(found->second), std::move(result));
        streams_.erase(found);
    }
    void tell_ended() {
        for (auto& [stream, result] : std::exchange(ended_, {})) stream->call.done(std::move(result));
    }

    // Once for all that begins meanwhile.
    void flush_soon() {
        if (writing_ || std::exchange(flush_posted_, true)) return;
        asio::post(target_->io, [self = self()] {
            self->flush_posted_ = false;
            self->flush();
        });
    }

    void flush() {
        if (writing_ || phase_ != Phase::Open) return;
        out_.clear();
        while (out_.size() < kWriteBlock) {
            const uint8_t* bytes = nullptr;
            const auto size = nghttp2_session_mem_send(session_, &bytes);
            if (size < 0) return fail(nghttp2_strerror(static_cast<int>(size)));
            if (size == 0) break;
            out_.append(text(bytes, static_cast<size_t>(size)));
        }
        writing_ = !out_.empty();
        if (writing_) write();
        tell_ended();
    }

    void write() {
        transport_->with_stream([&](auto& stream) {
            asio::async_write(stream, asio::buffer(out_), [self = self()](error_code ec, size_t) {
                self->writing_ = false;
                if (self->phase_ != Phase::Open) return;
                if (ec) return self->fail("cannot send: " + ec.message());
                self->flush();
            });
        });
    }

    void read() {
        transport_->with_stream([&](auto& stream) {
            stream.async_read_some(asio::buffer(in_), [self = self()](error_code ec, size_t n) {
                if (self->phase_ != Phase::Open) return;
                if (ec) return self->at_end(ec);
                self->take(n + self->transport_->read_on(self->in_.data() + n, self->in_.size() - n));
            });
        });
    }

    void take(size_t size) {
        heard_ = now();
        const auto taken = nghttp2_session_mem_recv(session_, in_.data(), size);
        if (taken < 0) return fail(nghttp2_strerror(static_cast<int>(taken)));
        tell_ended();
        if (phase_ != Phase::Open) return;
        if (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0) {
            return fail("the server closed the connection");
        }
        if (nghttp2_session_want_write(session_) != 0) flush_soon();
        read();
    }

    void at_end(error_code ec) {
        const bool closed = ec == asio::error::eof || ec == asio::ssl::error::stream_truncated;
        fail(closed ? "the server closed the connection" : "cannot receive: " + ec.message());
    }

    void fail(const std::string& what) {
        const auto keep = self();
        close();
        while (!streams_.empty()) end(streams_.begin()->first, WireTrouble{trouble(what), true});
        tell_ended();
        for (auto& call : std::exchange(waiting_, {})) call.done(WireTrouble{trouble(what), false});
    }

    void close() {
        phase_ = Phase::Closed;
        transport_->close();
    }

    std::shared_ptr<const HttpTarget> target_;
    const Http2Refused refused_;
    std::unique_ptr<HttpTransport> transport_;
    const std::string authority_;
    const std::string authorization_;
    Phase phase_ = Phase::New;
    bool leaving_ = false;
    bool writing_ = false;
    bool flush_posted_ = false;
    base::Instant since_;  // connecting began
    base::Instant heard_;  // the last bytes
    nghttp2_session* session_ = nullptr;
    std::vector<HttpCall> waiting_;                       // for the connection
    std::map<int32_t, std::unique_ptr<Stream>> streams_;  // under way
    std::vector<std::pair<std::unique_ptr<Stream>, WireResult>> ended_;
    std::array<uint8_t, kReadBlock> in_;
    std::string out_;  // being written
};

}  // namespace

std::shared_ptr<Http2Connection> make_http2_connection(std::shared_ptr<const HttpTarget> target, Http2Refused refused) {
    return std::make_shared<Connection>(std::move(target), std::move(refused));
}

}  // namespace berth::link
