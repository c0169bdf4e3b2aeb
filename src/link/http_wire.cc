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
#include "base/thread.h"
#include "link/fresh_access.h"
#include "link/http2_connection.h"
#include "link/http_connection.h"
#include "link/plugin_thread.h"
#include "link/wake_throttle.h"

namespace berth::link {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

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

// What would end the line it stands in is no path.
bool is_path(std::string_view target) {
    return std::none_of(target.begin(), target.end(), [](unsigned char c) { return c <= ' ' || c == 0x7f; });
}

// A call as the turn of a connection that serves one at a time.
Turn turn_of(HttpCall call) {
    struct Taken {
        HttpCall call;
        WireAnswer answer = {};
        bool too_large = false;
    };
    Turn turn;
    turn.request = call.request;
    turn.due = call.due;
    const auto taken = std::make_shared<Taken>(Taken{std::move(call)});
    turn.head = [taken](const HttpHead& head) {
        taken->answer.code = head.code;
        taken->answer.retry_after = head.retry_after;
    };
    turn.data = [taken](std::string_view bytes) {
        std::string& body = taken->answer.body;
        taken->too_large = taken->too_large || body.size() + bytes.size() > taken->call.request.most_body;
        if (!taken->too_large) body.append(bytes);
        return true;
    };
    turn.end = [taken](const WireTrouble* trouble) {
        const auto& [request, due, done] = taken->call;
        if (!trouble && taken->too_large) {
            return done(WireTrouble{fmt::format("the answer is larger than {} bytes", request.most_body), true});
        }
        done(trouble != nullptr ? WireResult(*trouble) : WireResult(std::move(taken->answer)));
    };
    return turn;
}

// base::Loop over an io_context: one thread.
class AsioLoop final : public base::Loop {
public:
    AsioLoop(asio::io_context& io, const base::Clock& clock) : io_(io), clock_(clock) {}

    void post(Task task) override { asio::post(io_, std::move(task)); }
    base::TimerId run_at(base::Instant at, Task task) override {
        const uint64_t id = ++last_;
        auto& timer = timers_.try_emplace(id, io_).first->second;
        timer.expires_after(at - clock_.now());
        timer.async_wait([this, id, task = std::move(task)](error_code ec) {
            if (ec || timers_.erase(id) == 0) return;
            task();
        });
        return {id};
    }
    bool cancel(base::TimerId timer) override { return timers_.erase(timer.value) > 0; }
    const base::Clock& clock() const override { return clock_; }

private:
    asio::io_context& io_;
    const base::Clock& clock_;
    std::map<uint64_t, asio::steady_timer> timers_;
    uint64_t last_ = 0;
};

class HttpWire final : public Wire {
public:
    HttpWire(FreshAccess access, const base::Clock& clock) : clock_(clock), access_(std::move(access)) {}
    ~HttpWire() override { stop(); }

    Status start() {
        access_.run_plugins_by([this](const ExecPlugin& plugin, std::function<void(Result<Credential>)> done) {
            plugin_.run(plugin, std::move(done));
        });
        TRY(use(access_.get()));
        arm_sweep();
        thread_ = base::named_thread("wire", [this] { run(); });
        return {};
    }

    base::Loop& loop() override { return loop_; }
    void refresh(std::function<void(bool)> done) override { access_.refresh(std::move(done)); }

    // Where the server speaks HTTP/2 all calls share a connection. Streams have one each, so that one whose reader
    // rests, or that the network lost, is nobody else's trouble.
    void call(WireRequest request, base::Duration most, std::function<void(WireResult)> done) override {
        freshen();
        if (!is_path(request.target)) {
            return loop_.post([done = std::move(done), what = no_path(request)] { done(WireTrouble{what, false}); });
        }
        HttpCall call{std::move(request), clock_.now() + most, std::move(done)};
        if (!try_http2_) {
            begin(turn_of(std::move(call)));
            return;
        }
        if (!http2_ || !http2_->usable()) renew_http2();
        http2_->begin(std::move(call));
    }

    std::unique_ptr<WireStream> open(WireRequest request, base::Duration idle, StreamSink sink) override {
        freshen();
        Turn turn;
        turn.due = clock_.now() + std::chrono::seconds(30);
        turn.idle = idle;
        turn.head = [head = std::move(sink.head)](const HttpHead& from) { head(from.code); };
        turn.data = std::move(sink.data);
        turn.end = [end = std::move(sink.end)](const WireTrouble* trouble) { end(trouble ? trouble->what : ""); };
        if (!is_path(request.target)) {
            loop_.post([end = std::move(turn.end), what = no_path(request)] {
                const WireTrouble trouble{what, false};
                end(&trouble);
            });
            return std::make_unique<Handle>(HttpConnectionPtr());
        }
        turn.request = std::move(request);
        return std::make_unique<Handle>(begin(std::move(turn)));
    }

    void stop() override {
        if (!thread_.joinable()) return;
        io_.stop();
        thread_.join();
        plugin_.stop();
        // Before the io_context that their sockets belong to; what its handlers still hold goes with it.
        idle_.clear();
        leaving_.clear();
        http2_.reset();
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

    void run() {
        WakeThrottle throttle;
        while (io_.run_one() > 0) {
            io_.poll();
            std::this_thread::sleep_for(throttle.after(clock_.now(), base::processor_time()));
        }
    }

    static std::string no_path(const WireRequest& request) {
        return fmt::format("\"{}\" is not a path", request.target);
    }

    // New credentials mean new connections; those with a turn finish it.
    Status use(const Access& access) {
        if (target_ && target_->access == access) return {};
        HttpTarget target{io_, clock_, access, nullptr};
        if (access.tls) target.tls = TRY(tls_context(access));
        target_ = std::make_shared<const HttpTarget>(std::move(target));
        try_http2_ = access.tls;
        leave_http2();
        const auto old = std::move(idle_);
        idle_.clear();
        for (const auto& connection : old) connection->abort();
        return {};
    }
    void freshen() {
        if (auto used = use(access_.get()); !used) {
            base::log_warning("The new credentials cannot be used", {{"error", used.error()}});
        }
    }

    void leave_http2() {
        if (!http2_) return;
        http2_->leave();
        leaving_.push_back(std::move(http2_));
    }
    void renew_http2() {
        leave_http2();
        const auto refused = [this, target = target_](std::vector<HttpCall> calls,
                                                      std::unique_ptr<HttpTransport> connected) {
            if (target != target_) connected.reset();
            try_http2_ = try_http2_ && !connected;
            for (auto& call : calls) {
                const auto connection = connected ? new_connection(std::move(connected)) : free_connection();
                connection->begin(turn_of(std::move(call)));
            }
        };
        http2_ = make_http2_connection(target_, refused);
    }

    HttpConnectionPtr free_connection() {
        while (!idle_.empty()) {
            auto connection = std::move(idle_.back());
            idle_.pop_back();
            if (connection->reusable()) return connection;
            connection->abort();
        }
        return new_connection(nullptr);
    }
    HttpConnectionPtr new_connection(std::unique_ptr<HttpTransport> connected) {
        auto connection = make_http_connection(target_, owner_of(target_.get()), std::move(connected));
        connections_.emplace(connection.get(), connection);
        return connection;
    }
    HttpConnectionOwner owner_of(const HttpTarget* target) {
        const auto freed = [this, target](HttpConnectionPtr connection) {
            const bool stream = streams_.erase(connection.get()) > 0;
            if (target != target_.get() || stream) return connection->abort();
            idle_.push_back(std::move(connection));
        };
        const auto closed = [this](HttpConnection* connection) {
            streams_.erase(connection);
            connections_.erase(connection);
            std::erase_if(idle_, [&](const auto& idle) { return idle.get() == connection; });
        };
        return {freed, closed};
    }

    // A stream has its connection to itself, so that its handle never means somebody else's turn.
    HttpConnectionPtr begin(Turn turn) {
        const auto connection = free_connection();
        if (turn.idle) streams_.insert(connection.get());
        connection->begin(std::move(turn));
        return connection;
    }

    void arm_sweep() {
        sweep_.expires_after(kSweep);
        sweep_.async_wait([this](error_code ec) {
            if (ec) return;
            freshen();  // before a credential expires, also while nobody asks
            const auto now = clock_.now();
            std::vector<HttpConnectionPtr> all;
            for (const auto& [raw, weak] : connections_) {
                if (auto connection = weak.lock()) all.push_back(std::move(connection));
            }
            for (const auto& connection : all) connection->check(now);
            if (http2_) http2_->check(now);
            for (const auto& connection : std::vector(leaving_)) connection->check(now);
            std::erase_if(leaving_, [](const auto& connection) { return connection->closed(); });
            const auto idle = idle_;
            for (const auto& connection : idle) {
                if (now - connection->since() > kKeepIdle) connection->abort();
            }
            arm_sweep();
        });
    }

    const base::Clock& clock_;
    FreshAccess access_;
    std::shared_ptr<const HttpTarget> target_;
    bool try_http2_ = false;                                 // until the server has chosen otherwise
    std::shared_ptr<Http2Connection> http2_;                 // of the calls
    std::vector<std::shared_ptr<Http2Connection>> leaving_;  // earlier ones that still have calls
    std::map<HttpConnection*, std::weak_ptr<HttpConnection>> connections_;
    std::set<HttpConnection*> streams_;
    std::vector<HttpConnectionPtr> idle_;
    // After what its handlers use: dropping them drops connections.
    asio::io_context io_{1};
    asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
    AsioLoop loop_{io_, clock_};
    PluginThread plugin_{loop_};
    asio::steady_timer sweep_{io_};
    std::thread thread_;
};

Result<std::unique_ptr<Wire>> started(FreshAccess access, const base::Clock& clock) {
    auto wire = std::make_unique<HttpWire>(std::move(access), clock);
    TRY(wire->start());
    return std::unique_ptr<Wire>(std::move(wire));
}

}  // namespace

Result<std::unique_ptr<Wire>> http_wire(const AccessOptions& options, const base::Clock& clock) {
    return started(TRY(FreshAccess::open(options, clock)), clock);
}

Result<std::unique_ptr<Wire>> http_wire(Access access, const base::Clock& clock) {
    return started(FreshAccess(std::move(access)), clock);
}

}  // namespace berth::link
