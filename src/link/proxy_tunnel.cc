#include "link/proxy_tunnel.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <memory>

#include "base/base64.h"

namespace berth::link {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Done = std::function<void(const std::string& trouble)>;

constexpr uint32_t kMostHead = 16u << 10;

std::string lost(const Access& access, error_code ec) {
    return fmt::format("the proxy {} gave up: {}", access.proxy->url(), ec.message());
}

// CONNECT, RFC 9110 9.3.6.
struct HttpTunnel : std::enable_shared_from_this<HttpTunnel> {
    HttpTunnel(tcp::socket& s, const Access& a, Done d) : socket(s), access(a), done(std::move(d)) {}

    void open() {
        request.method(http::verb::connect);
        request.target(access.authority());
        request.version(11);
        request.set(http::field::host, access.authority());
        request.set(http::field::user_agent, "berth");
        const std::string who = proxy_authorization(*access.proxy);
        if (!who.empty()) request.set(http::field::proxy_authorization, who);
        answer.header_limit(kMostHead);
        answer.skip(true);  // nothing follows its head
        http::async_write(socket, request, [self = shared_from_this()](error_code ec, size_t) {
            if (ec) return self->done(lost(self->access, ec));
            http::async_read_header(self->socket, self->buffer, self->answer,
                                    [self](error_code failed, size_t) { self->on_answer(failed); });
        });
    }
    void on_answer(error_code ec) {
        if (ec) return done(lost(access, ec));
        const auto code = answer.get().result_int();
        if (code / 100 != 2) {
            const auto reason = answer.get().reason();
            return done(fmt::format("the proxy {} answered {} {}", access.proxy->url(), code,
                                    std::string_view(reason.data(), reason.size())));
        }
        // A TLS server does not speak first.
        done(buffer.size() == 0 ? "" : fmt::format("the proxy {} said more than its answer", access.proxy->url()));
    }

    tcp::socket& socket;
    const Access& access;
    Done done;
    http::request<http::empty_body> request;
    http::response_parser<http::empty_body> answer;
    boost::beast::flat_buffer buffer;
};

// RFC 1928, and RFC 1929 for a user with a password. The proxy resolves the server's name.
struct SocksTunnel : std::enable_shared_from_this<SocksTunnel> {
    SocksTunnel(tcp::socket& s, const Access& a, Done d) : socket(s), access(a), done(std::move(d)) {}

    void open() {
        if (access.host.size() > 255) return done("the server's name is too long for a SOCKS proxy");
        const bool user = !access.proxy->user.empty();
        say(user ? std::string("\x05\x02\x00\x02", 4) : std::string("\x05\x01\x00", 3), 2, [this] { on_method(); });
    }

private:
    void on_method() {
        if (heard[0] != 5 || (heard[1] != 0 && heard[1] != 2)) return refuse("offers no way to log in that we know");
        if (heard[1] == 0) return ask_way();
        const auto& [user, password] = std::pair(access.proxy->user, access.proxy->password);
        say("\x01" + sized(user) + sized(password), 2, [this] {
            if (heard[1] != 0) return refuse("refused its user and password");
            ask_way();
        });
    }
    void ask_way() {
        const auto port = static_cast<uint16_t>(std::stoi(access.port));
        const std::string port_bytes{static_cast<char>(port >> 8), static_cast<char>(port & 0xff)};
        say(std::string("\x05\x01\x00\x03", 4) + sized(access.host) + port_bytes, 5, [this] { on_way(); });
    }
    // The rest is the address it uses itself: of four, sixteen or a named number of bytes, and a port.
    void on_way() {
        if (heard[0] != 5 || heard[1] != 0) return refuse(fmt::format("answered {}", heard[1]));
        const size_t more = (heard[3] == 1 ? 3 : heard[3] == 4 ? 15 : heard[4]) + 2;
        say("", more, [this] { done(""); });
    }

    static std::string sized(const std::string& text) { return static_cast<char>(text.size()) + text; }
    void refuse(std::string_view what) { done(fmt::format("the proxy {} {}", access.proxy->url(), what)); }

    void say(std::string text, size_t answer, std::function<void()> next) {
        out = std::move(text);
        asio::async_write(socket, asio::buffer(out),
                          [self = shared_from_this(), answer, next = std::move(next)](error_code ec, size_t) {
                              if (ec) return self->done(lost(self->access, ec));
                              self->hear(answer, next);
                          });
    }
    void hear(size_t size, std::function<void()> next) {
        asio::async_read(socket, asio::buffer(heard.data(), size),
                         [self = shared_from_this(), next = std::move(next)](error_code ec, size_t) {
                             if (ec) return self->done(lost(self->access, ec));
                             next();
                         });
    }

    tcp::socket& socket;
    const Access& access;
    Done done;
    std::string out;
    std::array<uint8_t, 300> heard{};
};

}  // namespace

std::string proxy_authorization(const Proxy& proxy) {
    return proxy.user.empty() ? "" : "Basic " + base::to_base64(proxy.user + ":" + proxy.password);
}

void open_tunnel(tcp::socket& socket, const Access& access, Done done) {
    if (access.proxy->kind == Proxy::Kind::Http) {
        std::make_shared<HttpTunnel>(socket, access, std::move(done))->open();
    } else {
        std::make_shared<SocksTunnel>(socket, access, std::move(done))->open();
    }
}

}  // namespace berth::link
