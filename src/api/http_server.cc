#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/resource.h>

#include <boost/asio/post.hpp>
#include <ctime>

#include "api/http_exchange.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/tls_server.h"

namespace berth::api {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto kShortestPause = std::chrono::milliseconds(1);
constexpr size_t kSlice = 64;
constexpr auto kLongestPause = std::chrono::milliseconds(20);

std::string http_date(base::Time at) {
    const time_t seconds = at.nanos / 1'000'000'000;
    tm parts{};
    gmtime_r(&seconds, &parts);
    char text[40];
    return {text, std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

// Each connection is a file; an eighth is left for the store, the log and those who are just going.
size_t files_for_connections() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
    return static_cast<size_t>(limit.rlim_cur - limit.rlim_cur / 8);
}

// Without the wrapping that an IPv4 address has on a socket for both.
std::string address_of(const tcp::socket& socket) {
    error_code ec;
    const auto address = socket.remote_endpoint(ec).address();
    if (ec) return "";
    if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address.to_string();
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
}

// OpenSSL works out what a certificate says when it is first used; after this the I/O threads only read it.
void work_out_authorities(SSL_CTX* context) {
    auto* objects = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
    for (int i = 0; i < sk_X509_OBJECT_num(objects); ++i) {
        if (auto* authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i))) {
            X509_check_purpose(authority, -1, 0);
        }
    }
}

Result<std::unique_ptr<asio::ssl::context>> tls_context(const TlsKeys& keys) {
    auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
    SSL_CTX* native = context->native_handle();
    if (!base::harden_tls_server(native)) {
        return base::internal("this OpenSSL lacks the groups or suites that TLS is served with");
    }
    error_code ec;
    context->use_certificate_chain(asio::buffer(keys.certificate_pem), ec);
    if (!ec) context->use_private_key(asio::buffer(keys.key_pem), asio::ssl::context::pem, ec);
    if (!ec) context->add_certificate_authority(asio::buffer(keys.client_ca_pem), ec);
    if (!ec) context->set_verify_mode(asio::ssl::verify_peer, ec);
    if (ec) return base::internal("the TLS keys cannot be used: " + ec.message());
    work_out_authorities(native);
    return context;
}

}  // namespace

void IoThread::start() {
    date_ = http_date(shared_.options.clock->wall());
    arm_second();
    // What was accepted is made safe and placed before more is let in.
    thread_ = base::named_thread("http", [this] { run(); }, base::Turn::Behind);
}

// Everything that runs here is guarded where it belongs to somebody; what is left must not end the process either.
void IoThread::run() {
    for (bool ended = false; !ended;) {
        guarded(nullptr, [&] {
            io_.run();
            ended = true;
        });
    }
}

void IoThread::failed(Exchange* exchange, std::string_view what) {
    shared_.counters->exceptions.fetch_add(1, std::memory_order_relaxed);
    base::log_error("A connection's handler failed", {{"error", what}});
    if (exchange != nullptr) exchange->close();
}

// A connection may end others, so each is looked for again.
void IoThread::each(const std::function<void(Exchange&)>& work) {
    const std::vector<Exchange*> all(all_.begin(), all_.end());
    for (Exchange* exchange : all) {
        if (!all_.contains(exchange)) continue;
        const auto hold = exchange->shared_from_this();
        guarded(exchange, [&] { work(*exchange); });
    }
}

void IoThread::arm_second() {
    second_.expires_after(std::chrono::seconds(1));
    second_.async_wait([this](error_code ec) {
        if (ec) return;
        arm_second();
        each_second();
    });
}

void IoThread::each_second() {
    date_ = http_date(shared_.options.clock->wall());
    each([now = now()](Exchange& exchange) { exchange.check_deadline(now); });
}

void IoThread::add(Exchange* exchange) {
    all_.insert(exchange);
    shared_.counters->connections.fetch_add(1, std::memory_order_relaxed);
}

void IoThread::remove(Exchange* exchange) {
    all_.erase(exchange);
    streams_.erase(exchange);
    shared_.counters->connections.fetch_sub(1, std::memory_order_relaxed);
}

void IoThread::wake() {
    if (wake_pending_.exchange(true)) return;
    asio::post(io_, [this] { on_wake(); });
}

void IoThread::on_wake() {
    if (flush_armed_) return;
    const auto rest = last_flush_ + pause_ - now();
    if (rest <= base::Duration::zero()) return flush();
    flush_armed_ = true;
    flush_.expires_after(rest);
    flush_.async_wait([this](error_code ec) {
        flush_armed_ = false;
        if (!ec) flush();
    });
}

void IoThread::flush() {
    flush_armed_ = true;
    wake_pending_ = false;
    round_.assign(streams_.begin(), streams_.end());
    flush_begin_ = now();
    flush_some();
}

// A few streams at a time, so that requests need not wait for a thousand watches.
void IoThread::flush_some() {
    for (size_t i = 0; i < kSlice && !round_.empty(); ++i) {
        Exchange* exchange = round_.back();
        round_.pop_back();
        if (!streams_.contains(exchange)) continue;
        const auto hold = exchange->shared_from_this();
        guarded(exchange, [&] { hold->pump(); });
    }
    if (!round_.empty()) return asio::post(io_, [this] { flush_some(); });
    flush_armed_ = false;
    last_flush_ = now();
    pause_ = std::clamp<std::chrono::nanoseconds>(2 * (last_flush_ - flush_begin_), kShortestPause, kLongestPause);
    if (wake_pending_) on_wake();
}

void IoThread::stop() {
    asio::post(io_, [this] {
        stopping_ = true;
        each([](Exchange& exchange) { exchange.finish(); });
        close_when_quiet(100);
    });
}

void IoThread::close_when_quiet(int tries) {
    if (all_.empty() || tries == 0) {
        second_.cancel();
        return io_.stop();
    }
    flush_.expires_after(std::chrono::milliseconds(20));
    flush_.async_wait([this, tries](error_code) { close_when_quiet(tries - 1); });
}

void IoThread::join() {
    if (thread_.joinable()) thread_.join();
    each([](Exchange& exchange) { exchange.close(); });
}

class HttpServer::Engine {
public:
    Engine(HttpOptions options, Handler handler, Screen screen) {
        shared_.options = std::move(options);
        shared_.options.max_connections = std::min(shared_.options.max_connections, files_for_connections());
        shared_.handler = std::move(handler);
        shared_.screen = std::move(screen);
        if (shared_.options.counters) shared_.counters = shared_.options.counters;
    }

    Result<uint16_t> start() {
        if (shared_.options.tls) shared_.tls = TRY(tls_context(*shared_.options.tls));
        for (int i = 0; i < shared_.options.threads; ++i) threads_.push_back(std::make_unique<IoThread>(shared_));
        acceptor_.emplace(threads_[0]->io());
        const uint16_t port = TRY(listen());
        accept();
        for (auto& thread : threads_) thread->start();
        return port;
    }

    void stop() {
        if (threads_.empty()) return;
        asio::post(threads_[0]->io(), [this] {
            error_code ignored;
            acceptor_->close(ignored);
        });
        for (auto& thread : threads_) thread->stop();
        for (auto& thread : threads_) thread->join();
    }

    void wake() {
        for (auto& thread : threads_) thread->wake();
    }

    std::shared_ptr<const HttpCounters> counters() const { return shared_.counters; }

private:
    Result<uint16_t> listen() {
        const auto& options = shared_.options;
        error_code ec;
        tcp::resolver resolver(threads_[0]->io());
        const auto found = resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, ec);
        if (ec) return base::internal(fmt::format("cannot resolve {}: {}", options.host, ec.message()));
        const tcp::endpoint endpoint = found.begin()->endpoint();
        acceptor_->open(endpoint.protocol(), ec);
        if (!ec) acceptor_->set_option(tcp::acceptor::reuse_address(true), ec);
        if (!ec) acceptor_->bind(endpoint, ec);
        if (!ec) acceptor_->listen(4096, ec);
        if (ec)
            return base::internal(fmt::format("cannot listen on {}:{}: {}", options.host, options.port, ec.message()));
        return acceptor_->local_endpoint().port();
    }

    void accept() {
        IoThread& thread = *threads_[turn_++ % threads_.size()];
        acceptor_->async_accept(thread.io(), [this, &thread](error_code ec, tcp::socket socket) {
            if (ec == asio::error::operation_aborted || !acceptor_->is_open()) return;
            if (ec) return retry_accept();
            threads_[0]->guarded(nullptr, [&] { welcome(thread, std::move(socket)); });
            accept();
        });
    }

    void welcome(IoThread& thread, tcp::socket socket) {
        auto guest = shared_.guests.enter(address_of(socket), thread.now());
        if (guest == nullptr) return;
        asio::post(thread.io(), [&thread, socket = std::move(socket), guest = std::move(guest)]() mutable {
            const auto connection = make_connection(thread, std::move(socket), std::move(guest));
            thread.guarded(connection.get(), [&] { connection->start(); });
        });
    }

    // Out of file descriptors: wait for some to close instead of spinning.
    void retry_accept() {
        shared_.guests.make_place();
        retry_.emplace(threads_[0]->io(), std::chrono::milliseconds(100));
        retry_->async_wait([this](error_code ec) {
            if (!ec) accept();
        });
    }

    Shared shared_;
    std::vector<std::unique_ptr<IoThread>> threads_;
    std::optional<tcp::acceptor> acceptor_;
    std::optional<asio::steady_timer> retry_;
    size_t turn_ = 0;
};

HttpServer::HttpServer(HttpOptions options, Handler handler, Screen screen)
    : engine_(std::make_unique<Engine>(std::move(options), std::move(handler), std::move(screen))) {}
HttpServer::~HttpServer() {
    stop();
}
Result<uint16_t> HttpServer::start() {
    return engine_->start();
}
void HttpServer::stop() {
    engine_->stop();
}
void HttpServer::wake() {
    engine_->wake();
}
std::shared_ptr<const HttpCounters> HttpServer::counters() const {
    return engine_->counters();
}

}  // namespace berth::api
