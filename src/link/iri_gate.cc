#include "link/iri_gate.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <list>
#include <optional>

#include "base/log.h"
#include "base/thread.h"
#include "base/tls_server.h"
#include "link/iri_pin.h"

namespace berth::link {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Local = asio::local::stream_protocol;
using Any = asio::generic::stream_protocol;
using Socket = Any::socket;

constexpr std::string_view kAlpn = "\x02h2";
constexpr auto kNoFiles = std::chrono::milliseconds(100);

int choose_h2(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* in, unsigned int in_size,
              void*) {
    auto* chosen = const_cast<unsigned char**>(out);
    const auto* ours = reinterpret_cast<const unsigned char*>(kAlpn.data());
    const int found = SSL_select_next_proto(chosen, size, ours, kAlpn.size(), in, in_size);
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

Result<std::unique_ptr<asio::ssl::context>> tls_context(const IriKeys& keys) {
    auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
    SSL_CTX* native = context->native_handle();
    if (!base::harden_tls_server(native)) {
        return base::internal("this OpenSSL lacks the groups or suites that TLS is served with");
    }
    SSL_CTX_set_alpn_select_cb(native, choose_h2, nullptr);
    error_code ec;
    context->use_certificate_chain(asio::buffer(keys.certificate), ec);
    if (!ec) context->use_private_key(asio::buffer(keys.key), asio::ssl::context::pem, ec);
    if (!ec) context->add_certificate_authority(asio::buffer(keys.ca), ec);
    if (!ec) context->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert, ec);
    if (ec) return base::bad_request(fmt::format("--tls-cert, --tls-key, --tls-ca: no use: {}", ec.message()));
    return context;
}

// Of three files that a connection has, half of all there are at most.
size_t connections_of_files() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
    return static_cast<size_t>(limit.rlim_cur) / 6;
}

class Gate;

// One connection, and the pair of sockets behind it.
class Passing : public std::enable_shared_from_this<Passing> {
public:
    Passing(Gate& gate, Socket outer, base::Instant now);

    void start();
    void close(std::string_view why);
    void close_if_late(base::Instant now);
    bool known() const { return check_.begun() && !stranger_; }
    bool idle() const { return check_.open_streams() == 0; }
    size_t held() const { return check_.held(); }

private:
    static constexpr size_t kPiece = size_t{16} << 10;

    void shook_hands();
    bool open_inner();
    void read_outer();
    void send_outer(std::string_view bytes, std::function<void(error_code)> then);
    void tell_stranger();
    void take_from_outer(std::string_view piece);
    void read_inner();

    Gate& gate_;
    Socket outer_;
    std::optional<asio::ssl::stream<Socket&>> tls_;
    Local::socket inner_;
    FrameCheck check_;
    std::array<char, kPiece> up_{};
    std::array<char, kPiece> down_{};
    std::string upward_;  // on its way in
    const base::Instant born_;
    std::optional<base::Instant> writing_;  // to the client, since
    bool stranger_ = false;                 // a certificate, but not one that may ask: he is told so
    std::string told_;                      // what is on its way to him
    bool closed_ = false;
};

class Gate final : public IriGate {
public:
    Gate(Take take, base::Metrics* metrics, const GateLimits& limits, const base::Clock& clock)
        : take_(std::move(take)), limits_(limits), clock_(clock) {
        if (metrics != nullptr) {
            ended_ = &metrics->counter(
                "berth_fleet_ended_connections_total",
                "Connections of clients that were ended: more of them, or more in them, than may be.");
            strangers_ = &metrics->counter("berth_fleet_refused_clients_total",
                                           "Clients whose certificate has none of the names of --client-name.");
        }
        limits_.known = std::min(limits_.known, connections_of_files());
        limits_.unknown = std::min(limits_.unknown, connections_of_files());
    }
    ~Gate() override {
        asio::post(io_, [this] {
            stopping_ = true;
            error_code ignored;
            acceptor_.close(ignored);
            second_.cancel();
            retry_.cancel();
            for (const auto& one : std::list(all_)) one->close("");
        });
        if (thread_.joinable()) thread_.join();
        tell_refused();
        if (!path_.empty()) ::unlink(path_.c_str());
    }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    int port() const override { return port_; }

    Status open(const IriAddress& where, const IriKeys& keys) {
        constexpr std::string_view kUnix = "unix:";
        if (keys.given()) tls_ = TRY(tls_context(keys));
        clients_ = keys.clients;
        TRY(where.unix_socket ? listen_at_path(where.target.substr(kUnix.size())) : listen_at(where.target));
        accept();
        tick();
        thread_ = base::named_thread("iri", [this] { run(); });
        return {};
    }

    // --- for the connections
    asio::io_context& io() { return io_; }
    base::Instant now() const { return clock_.now(); }
    asio::ssl::context* tls() { return tls_.get(); }
    const GateLimits& limits() const { return limits_; }
    // Whether who showed this certificate may not ask.
    bool refuses(const X509* certificate) {
        const auto why = why_not(certificate, clients_);
        if (why.empty()) return false;
        if (strangers_ != nullptr) strangers_->add();
        ++refused_;
        last_why_ = why;
        return true;
    }
    void take(int fd) { take_(fd); }
    void left(const std::shared_ptr<Passing>& one, std::string_view why) {
        all_.remove(one);
        if (why.empty()) return;
        if (ended_ != nullptr) ended_->add();
        ++refused_;
        last_why_ = why;
    }
    // The oldest who asks nothing goes for one who is known now.
    void became_known(Passing& newcomer) {
        const auto known = [](const auto& one) { return one->known(); };
        if (static_cast<size_t>(std::count_if(all_.begin(), all_.end(), known)) <= limits_.known) return;
        for (const auto& one : std::list(all_)) {
            if (one.get() != &newcomer && one->known() && one->idle()) return one->close("others needed its place");
        }
        newcomer.close("there are too many connections");
    }
    // Who holds most goes first.
    void keep_budget() {
        size_t sum = 0;
        std::shared_ptr<Passing> most;
        for (const auto& one : all_) {
            sum += one->held();
            if (!most || one->held() > most->held()) most = one;
        }
        if (sum > limits_.requests) most->close("all together ask too much at once");
    }

private:
    // What fails in one connection's handler ends none of the others.
    void run() {
        for (bool ended = false; !ended;) {
            try {
                io_.run();
                ended = true;
            } catch (const std::exception& error) {
                base::log_error("A connection's handler failed", {{"error", error.what()}});
            }
        }
    }

    Status listen_at(const std::string& target) {
        const auto colon = target.rfind(':');
        std::string host = target.substr(0, colon);
        if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
        const auto refuse = [&](const error_code& why) {
            return base::bad_request(fmt::format("--listen {}: it cannot be listened at: {}", target, why.message()));
        };
        error_code ec;
        const auto found = asio::ip::tcp::resolver(io_).resolve(host, target.substr(colon + 1), ec);
        if (ec || found.empty()) return refuse(ec);
        const asio::ip::tcp::endpoint at = *found.begin();
        asio::ip::tcp::acceptor typed(io_, at.protocol());
        typed.set_option(asio::socket_base::reuse_address(true), ec);
        if (!ec) typed.bind(at, ec);
        if (!ec) typed.listen(asio::socket_base::max_listen_connections, ec);
        if (ec) return refuse(ec);
        port_ = typed.local_endpoint().port();
        acceptor_.assign(Any(at.protocol()), typed.release());
        return {};
    }

    // For its owner alone. One that nobody listens at any more is in the way.
    Status listen_at_path(const std::string& path) {
        const auto refuse = [&](const std::string& why) {
            return base::bad_request(fmt::format("--listen unix://{}: it cannot be listened at: {}", path, why));
        };
        if (path.size() >= sizeof(sockaddr_un::sun_path)) return refuse("the path is too long for a socket");
        error_code ec;
        struct stat there{};
        if (::lstat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode)) {
            Local::socket(io_).connect(Local::endpoint(path), ec);
            if (!ec) return refuse("somebody else does");
            ::unlink(path.c_str());
        }
        Local::acceptor typed(io_, Local());
        ::fchmod(typed.native_handle(), S_IRUSR | S_IWUSR);
        ec = {};
        typed.bind(Local::endpoint(path), ec);
        if (!ec) typed.listen(asio::socket_base::max_listen_connections, ec);
        if (ec) return refuse(ec.message());
        path_ = path;
        acceptor_.assign(Any(AF_UNIX, 0), typed.release());
        return {};
    }

    void accept() {
        acceptor_.async_accept([this](error_code ec, Socket socket) {
            if (stopping_) return;
            if (!ec) {
                admit(std::move(socket));
                return accept();
            }
            // Such as no file left: those who are here end some time.
            retry_.expires_after(kNoFiles);
            retry_.async_wait([this](error_code) {
                if (!stopping_) accept();
            });
        });
    }

    // The oldest who has said nothing goes for one who comes.
    void admit(Socket socket) {
        size_t strangers = 0;
        std::shared_ptr<Passing> oldest;
        for (const auto& one : all_) {
            if (one->known()) continue;
            ++strangers;
            if (!oldest) oldest = one;
        }
        if (strangers >= limits_.unknown) oldest->close("it had not said who it is when others came");
        auto one = std::make_shared<Passing>(*this, std::move(socket), now());
        all_.push_back(one);
        one->start();
    }

    void tick() {
        second_.expires_after(std::chrono::seconds(1));
        second_.async_wait([this](error_code) {
            if (stopping_) return;
            const auto at = now();
            for (const auto& one : std::list(all_)) one->close_if_late(at);
            tell_refused();
            tick();
        });
    }

    // Once a second, and at the end.
    void tell_refused() {
        if (const auto count = std::exchange(refused_, 0); count > 0)
            base::log_warning("Connections were ended or refused", {{"count", count}, {"last", last_why_}});
    }

    const Take take_;
    GateLimits limits_;
    const base::Clock& clock_;
    std::unique_ptr<asio::ssl::context> tls_;
    std::vector<std::string> clients_;
    base::Counter* ended_ = nullptr;
    base::Counter* strangers_ = nullptr;
    asio::io_context io_;
    asio::basic_socket_acceptor<Any> acceptor_{io_};
    asio::steady_timer second_{io_};
    asio::steady_timer retry_{io_};
    std::list<std::shared_ptr<Passing>> all_;  // the oldest first
    int64_t refused_ = 0;                      // since the last second
    std::string last_why_;
    std::string path_;
    int port_ = 0;
    bool stopping_ = false;
    std::thread thread_;
};

// ---- a connection

Passing::Passing(Gate& gate, Socket outer, base::Instant now)
    : gate_(gate), outer_(std::move(outer)), inner_(gate.io()), check_(gate.limits().frames), born_(now) {}

void Passing::start() {
    const int yes = 1;
    ::setsockopt(outer_.native_handle(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));  // a unix socket has none
    if (gate_.tls() == nullptr) return read_outer();
    tls_.emplace(outer_, *gate_.tls());
    tls_->async_handshake(asio::ssl::stream_base::server,
                          [self = shared_from_this()](error_code ec) { ec ? self->close("") : self->shook_hands(); });
}

// A stranger is not known: he has his few seconds to hear that he is none of ours, and nothing is behind him.
void Passing::shook_hands() {
    if (closed_) return;
    const X509* certificate = SSL_get0_peer_certificate(tls_->native_handle());
    stranger_ = gate_.refuses(certificate);
    if (!stranger_) return read_outer();
    told_ = no_settings();
    send_outer(told_, [self = shared_from_this()](error_code) { self->read_outer(); });
}

// Each of his calls is answered, until his few seconds are over.
void Passing::tell_stranger() {
    told_.clear();
    for (const auto stream : check_.streams()) told_ += refused_call(stream);
    if (told_.empty()) return read_outer();
    if (const auto why = check_.from_server(told_, gate_.now()); !why.empty()) return close(why);
    send_outer(told_, [self = shared_from_this()](error_code) { self->read_outer(); });
}

// There is nothing behind a connection before its client has said that it speaks HTTP/2.
bool Passing::open_inner() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) return false;
    inner_.assign(Local(), ends[0]);
    gate_.take(ends[1]);
    read_inner();
    return true;
}

void Passing::read_outer() {
    if (closed_) return;
    const auto done = [self = shared_from_this()](error_code ec, size_t size) {
        if (ec) return self->close("");
        self->take_from_outer({self->up_.data(), size});
    };
    tls_ ? tls_->async_read_some(asio::buffer(up_), done) : outer_.async_read_some(asio::buffer(up_), done);
}

void Passing::take_from_outer(std::string_view piece) {
    if (closed_) return;
    const size_t held = check_.held();
    if (const auto why = check_.from_client(piece, gate_.now()); !why.empty()) return close(why);
    if (stranger_) return tell_stranger();
    if (check_.held() > held) gate_.keep_budget();
    upward_ += piece;
    if (!check_.begun()) return read_outer();
    if (!closed_ && !inner_.is_open()) {
        gate_.became_known(*this);
        if (!closed_ && !open_inner()) close("there are no files for it");
    }
    if (closed_) return;
    asio::async_write(inner_, asio::buffer(upward_), [self = shared_from_this()](error_code ec, size_t) {
        if (ec) return self->close("");
        self->upward_.clear();
        self->read_outer();
    });
}

void Passing::read_inner() {
    if (closed_) return;
    inner_.async_read_some(asio::buffer(down_), [self = shared_from_this()](error_code ec, size_t size) {
        if (ec || self->closed_) return self->close("");
        const auto now = self->gate_.now();
        const std::string_view bytes(self->down_.data(), size);
        if (const auto why = self->check_.from_server(bytes, now); !why.empty()) return self->close(why);
        self->send_outer(bytes, [self](error_code failed) { failed ? self->close("") : self->read_inner(); });
    });
}

// The bytes stay where they are until it is done.
void Passing::send_outer(std::string_view bytes, std::function<void(error_code)> then) {
    writing_ = gate_.now();
    const auto written = [self = shared_from_this(), then = std::move(then)](error_code ec, size_t) {
        self->writing_.reset();
        then(ec);
    };
    const auto buffer = asio::buffer(bytes);
    tls_ ? asio::async_write(*tls_, buffer, written) : asio::async_write(outer_, buffer, written);
}

void Passing::close_if_late(base::Instant now) {
    if (!known() && now - born_ > gate_.limits().handshake) return close("it did not say in time who it is");
    if (writing_ && now - *writing_ > gate_.limits().unread) close("it takes nothing");
}

void Passing::close(std::string_view why) {
    if (std::exchange(closed_, true)) return;
    error_code ignored;
    outer_.close(ignored);
    inner_.close(ignored);
    gate_.left(shared_from_this(), why);
}

}  // namespace

Result<std::unique_ptr<IriGate>> IriGate::start(const IriAddress& where, const IriKeys& keys, Take take,
                                                base::Metrics* metrics, const GateLimits& limits,
                                                const base::Clock& clock) {
    auto out = std::make_unique<Gate>(std::move(take), metrics, limits, clock);
    TRY(out->open(where, keys));
    return std::unique_ptr<IriGate>(std::move(out));
}

}  // namespace berth::link
