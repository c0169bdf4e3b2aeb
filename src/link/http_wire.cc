#include "link/http_wire.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <set>
#include <thread>

#include "base/log.h"
#include "link/http_connection.h"

namespace berth::link {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr auto kSweep = std::chrono::milliseconds(250);
// Shorter than servers keep idle connections, so that a request rarely meets one that is just being closed.
constexpr auto kKeepIdle = std::chrono::seconds(30);

Result<std::unique_ptr<asio::ssl::context>> tls_context(const Access& access) {
    auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
    SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
    error_code ec;
    const auto failed = [&](std::string_view what) {
        return base::bad_request(fmt::format("{}: the {} cannot be used: {}", access.url(), what, ec.message()));
    };
    if (access.ca_pem.empty()) {
        context->set_default_verify_paths(ec);
    } else {
        context->add_certificate_authority(asio::buffer(access.ca_pem), ec);
    }
    if (ec) return failed("certificate authority");
    context->set_verify_mode(access.skip_verify ? asio::ssl::verify_none : asio::ssl::verify_peer, ec);
    if (access.certificate_pem.empty()) return context;
    context->use_certificate_chain(asio::buffer(access.certificate_pem), ec);
    if (ec) return failed("client certificate");
    context->use_private_key(asio::buffer(access.key_pem), asio::ssl::context::pem, ec);
    if (ec) return failed("client key");
    return context;
}

// Also refuses what would end the line it stands in.
Result<std::string> request_bytes(const Access& access, const WireRequest& request) {
    const auto bad = [](unsigned char c) { return c <= ' ' || c == 0x7f; };
    if (std::any_of(request.target.begin(), request.target.end(), bad)) {
        return base::bad_request(fmt::format("\"{}\" is not a path", request.target));
    }
    const bool bare = access.host.find(':') == std::string::npos;
    std::string out = fmt::format(
        "{} {}{} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: berth\r\nAccept: application/json\r\n", request.method,
        access.path, request.target, bare ? access.host : "[" + access.host + "]", access.port);
    if (!access.token.empty()) out += fmt::format("Authorization: Bearer {}\r\n", access.token);
    if (!request.body.empty()) out += fmt::format("Content-Type: {}\r\n", request.content_type);
    if (!request.body.empty() || request.method != "GET") {
        out += fmt::format("Content-Length: {}\r\n", request.body.size());
    }
    out += "\r\n";
    return out + request.body;
}

// base::Loop over an io_context: one thread, real time.
class AsioLoop final : public base::Loop {
public:
    explicit AsioLoop(asio::io_context& io) : io_(io) {}

    void post(Task task) override { asio::post(io_, std::move(task)); }
    base::TimerId run_at(base::Instant at, Task task) override {
        const uint64_t id = ++last_;
        auto& timer = timers_.try_emplace(id, io_).first->second;
        timer.expires_at(SteadyTime(std::chrono::nanoseconds(at.nanos)));
        timer.async_wait([this, id, task = std::move(task)](error_code ec) {
            if (ec || timers_.erase(id) == 0) return;
            task();
        });
        return {id};
    }
    bool cancel(base::TimerId timer) override { return timers_.erase(timer.value) > 0; }
    const base::Clock& clock() const override { return base::system_clock(); }

private:
    asio::io_context& io_;
    std::map<uint64_t, asio::steady_timer> timers_;
    uint64_t last_ = 0;
};

class HttpWire final : public Wire {
public:
    explicit HttpWire(FreshAccess access) : access_(std::move(access)) {}
    ~HttpWire() override { stop(); }

    Status start() {
        TRY(use(access_.get(base::system_clock().now())));
        arm_sweep();
        thread_ = std::thread([this] { io_.run(); });
        return {};
    }

    base::Loop& loop() override { return loop_; }
    bool refresh() override { return access_.refresh(loop_.clock().now()); }

    void call(WireRequest request, base::Duration most, std::function<void(WireResult)> done) override {
        const auto answer = std::make_shared<WireAnswer>();
        Turn turn;
        turn.due = steady_clock::now() + most;
        turn.head = [answer](const HttpHead& head) {
            answer->code = head.code;
            answer->retry_after = head.retry_after;
        };
        const size_t most_body = request.most_body;
        const auto too_large = std::make_shared<bool>(false);
        turn.data = [answer, too_large, most_body](std::string_view bytes) {
            *too_large = *too_large || answer->body.size() + bytes.size() > most_body;
            if (!*too_large) answer->body.append(bytes);
            return true;
        };
        turn.end = [answer, too_large, most_body, done = std::move(done)](const WireTrouble* trouble) {
            if (!trouble && *too_large) {
                return done(WireTrouble{fmt::format("the answer is larger than {} bytes", most_body), true});
            }
            done(trouble != nullptr ? WireResult(*trouble) : WireResult(std::move(*answer)));
        };
        begin(std::move(request), std::move(turn));
    }

    std::unique_ptr<WireStream> open(WireRequest request, base::Duration idle, StreamSink sink) override {
        Turn turn;
        turn.due = steady_clock::now() + std::chrono::seconds(30);
        turn.idle = idle;
        turn.head = [head = std::move(sink.head)](const HttpHead& from) { head(from.code); };
        turn.data = std::move(sink.data);
        turn.end = [end = std::move(sink.end)](const WireTrouble* trouble) { end(trouble ? trouble->what : ""); };
        return std::make_unique<Handle>(begin(std::move(request), std::move(turn)));
    }

    void stop() override {
        if (!thread_.joinable()) return;
        io_.stop();
        thread_.join();
        idle_.clear();
    }

private:
    class Handle final : public WireStream {
    public:
        explicit Handle(std::weak_ptr<HttpConnection> connection) : connection_(std::move(connection)) {}
        // By then the connection may serve another turn, or be gone: see HttpWire::begin.
        ~Handle() override {
            if (const auto connection = connection_.lock()) connection->abort();
        }
        void resume() override {
            if (const auto connection = connection_.lock()) connection->resume();
        }

    private:
        std::weak_ptr<HttpConnection> connection_;
    };

    // New credentials mean new connections; those with a turn finish it.
    Status use(const Access& access) {
        if (shared_ && shared_->access == access) return {};
        auto shared = std::make_shared<HttpShared>(HttpShared{io_, access, nullptr, {}, {}});
        if (access.tls) shared->tls = TRY(tls_context(access));
        shared->freed = [this, raw = shared.get()](HttpConnectionPtr connection) {
            const bool stream = streams_.erase(connection.get()) > 0;
            if (raw != shared_.get() || stream) return connection->abort();
            idle_.push_back(std::move(connection));
        };
        shared->closed = [this](HttpConnection* connection) {
            streams_.erase(connection);
            connections_.erase(connection);
            std::erase_if(idle_, [&](const auto& idle) { return idle.get() == connection; });
        };
        shared_ = std::move(shared);
        const auto old = std::move(idle_);
        idle_.clear();
        for (const auto& connection : old) connection->abort();
        return {};
    }

    HttpConnectionPtr free_connection() {
        while (!idle_.empty()) {
            auto connection = std::move(idle_.back());
            idle_.pop_back();
            if (connection->reusable()) return connection;
            connection->abort();
        }
        auto connection = make_http_connection(shared_);
        connections_.emplace(connection.get(), connection);
        return connection;
    }

    // A stream has its connection to itself, so that its handle never means somebody else's turn.
    HttpConnectionPtr begin(WireRequest request, Turn turn) {
        if (auto used = use(access_.get(loop_.clock().now())); !used) {
            base::log_warning("The new credentials cannot be used", {{"error", used.error()}});
        }
        auto bytes = request_bytes(shared_->access, request);
        if (!bytes) {
            loop_.post(
                [end = std::move(turn.end), trouble = WireTrouble{bytes.error().message, false}] { end(&trouble); });
            return nullptr;
        }
        turn.bytes = std::move(*bytes);
        const auto connection = free_connection();
        if (turn.idle) streams_.insert(connection.get());
        connection->begin(std::move(turn));
        return connection;
    }

    void arm_sweep() {
        sweep_.expires_after(kSweep);
        sweep_.async_wait([this](error_code ec) {
            if (ec) return;
            const auto now = steady_clock::now();
            std::vector<HttpConnectionPtr> all;
            for (const auto& [raw, weak] : connections_) {
                if (auto connection = weak.lock()) all.push_back(std::move(connection));
            }
            for (const auto& connection : all) connection->check(now);
            const auto idle = idle_;
            for (const auto& connection : idle) {
                if (now - connection->since() > kKeepIdle) connection->abort();
            }
            arm_sweep();
        });
    }

    FreshAccess access_;
    std::shared_ptr<HttpShared> shared_;
    std::map<HttpConnection*, std::weak_ptr<HttpConnection>> connections_;
    std::set<HttpConnection*> streams_;
    std::vector<HttpConnectionPtr> idle_;
    // After what its handlers use: dropping them drops connections.
    asio::io_context io_{1};
    asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
    AsioLoop loop_{io_};
    asio::steady_timer sweep_{io_};
    std::thread thread_;
};

Result<std::unique_ptr<Wire>> started(FreshAccess access) {
    auto wire = std::make_unique<HttpWire>(std::move(access));
    TRY(wire->start());
    return std::unique_ptr<Wire>(std::move(wire));
}

}  // namespace

Result<std::unique_ptr<Wire>> http_wire(const AccessOptions& options) {
    return started(TRY(FreshAccess::open(options, base::system_clock().now())));
}

Result<std::unique_ptr<Wire>> http_wire(Access access) {
    return started(FreshAccess(std::move(access)));
}

}  // namespace berth::link
