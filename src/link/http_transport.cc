#include "link/http_transport.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>

#include "link/proxy_tunnel.h"

namespace berth::link {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// As ALPN writes them: a length, then the name.
constexpr std::string_view kHttp2OrHttp1 = "\x02h2\x08http/1.1";

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

}  // namespace

HttpTransport::HttpTransport(std::shared_ptr<const HttpTarget> target)
    : target_(std::move(target)), resolver_(target_->io), socket_(target_->io) {}

void HttpTransport::connect(Offer offer, std::function<void(const std::string& trouble)> done) {
    const Access& access = target_->access;
    const std::string way = access.proxy ? fmt::format("the proxy {}: ", access.proxy->url()) : "";
    const auto connected = [this, offer, done, way](error_code ec, const tcp::endpoint&) {
        if (closed_) return;
        if (ec) return done(way + "cannot connect: " + ec.message());
        set_socket_options(socket_);
        target_->access.tunnelled() ? go_through(offer, done) : arrive(offer, done);
    };
    resolver_.async_resolve(access.proxy ? access.proxy->host : access.host,
                            access.proxy ? access.proxy->port : access.port,
                            [this, connected, done, way](error_code ec, const tcp::resolver::results_type& found) {
                                if (closed_) return;
                                if (ec) return done(way + "cannot resolve the host: " + ec.message());
                                asio::async_connect(socket_, found, connected);
                            });
}

void HttpTransport::go_through(Offer offer, std::function<void(const std::string& trouble)> done) {
    open_tunnel(socket_, target_->access, [this, offer, done = std::move(done)](const std::string& trouble) {
        if (closed_) return;
        trouble.empty() ? arrive(offer, done) : done(trouble);
    });
}

void HttpTransport::arrive(Offer offer, std::function<void(const std::string& trouble)> done) {
    target_->tls ? shake_hands(offer, std::move(done)) : done({});
}

void HttpTransport::shake_hands(Offer offer, std::function<void(const std::string& trouble)> done) {
    const Access& access = target_->access;
    tls_.emplace(socket_, *target_->tls);
    SSL* ssl = tls_->native_handle();
    error_code no_address;
    asio::ip::make_address(access.server_name, no_address);
    if (no_address) SSL_set_tlsext_host_name(ssl, access.server_name.c_str());
    if (offer == Offer::Http2OrHttp1) {
        SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(kHttp2OrHttp1.data()), kHttp2OrHttp1.size());
    }
    if (!access.skip_verify) tls_->set_verify_callback(asio::ssl::host_name_verification(access.server_name));
    tls_->async_handshake(asio::ssl::stream_base::client, [this, done = std::move(done)](error_code ec) {
        if (closed_) return;
        if (!ec) return done({});
        const long why = SSL_get_verify_result(tls_->native_handle());
        done("the TLS handshake failed: " + (why == X509_V_OK ? ec.message() : X509_verify_cert_error_string(why)));
    });
}

bool HttpTransport::http2() {
    if (!tls_) return false;
    const unsigned char* chosen = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(tls_->native_handle(), &chosen, &size);
    return size == 2 && chosen[0] == 'h' && chosen[1] == '2';
}

size_t HttpTransport::read_on(void* to, size_t room) {
    size_t taken = 0;
    size_t record = 0;
    while (tls_ && taken < room &&
           SSL_read_ex(tls_->native_handle(), static_cast<char*>(to) + taken, room - taken, &record) == 1) {
        taken += record;
    }
    ERR_clear_error();
    return taken;
}

void HttpTransport::close() {
    closed_ = true;
    resolver_.cancel();
    error_code ignored;
    socket_.close(ignored);
}

}  // namespace berth::link
