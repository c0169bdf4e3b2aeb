#include "app/bench_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>

namespace berth::app {

struct BenchClient::Wire {
    SSL_CTX* context = nullptr;
    SSL* ssl = nullptr;
    int fd = -1;
    ~Wire() {
        SSL_free(ssl);
        SSL_CTX_free(context);
        if (fd >= 0) ::close(fd);
    }
};

namespace {

int dial(uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return fd;
    ::close(fd);
    return -1;
}

// The number behind "Content-Length: ".
size_t content_length(std::string_view head) {
    constexpr std::string_view kName = "\r\nContent-Length: ";
    const auto at = head.find(kName);
    size_t out = 0;
    if (at != std::string_view::npos) std::from_chars(head.data() + at + kName.size(), head.data() + head.size(), out);
    return out;
}

}  // namespace

BenchClient::BenchClient(std::unique_ptr<Wire> wire) : wire_(std::move(wire)) {}
BenchClient::BenchClient(BenchClient&&) noexcept = default;
BenchClient& BenchClient::operator=(BenchClient&&) noexcept = default;
BenchClient::~BenchClient() = default;

Result<BenchClient> BenchClient::connect(uint16_t port, const std::string& pki) {
    auto wire = std::make_unique<Wire>();
    wire->context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_load_verify_locations(wire->context, (pki + "/ca.crt").c_str(), nullptr);
    SSL_CTX_use_certificate_chain_file(wire->context, (pki + "/admin.crt").c_str());
    SSL_CTX_use_PrivateKey_file(wire->context, (pki + "/admin.key").c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_set_verify(wire->context, SSL_VERIFY_PEER, nullptr);
    wire->fd = dial(port);
    wire->ssl = SSL_new(wire->context);
    SSL_set_fd(wire->ssl, wire->fd);
    if (wire->fd < 0 || SSL_connect(wire->ssl) != 1) return base::internal("cannot connect to the server");
    return BenchClient(std::move(wire));
}

Status BenchClient::read(std::string& out) {
    char block[16384];
    const int n = SSL_read(wire_->ssl, block, sizeof(block));
    if (n <= 0) return base::internal("the server closed the connection");
    out.append(block, static_cast<size_t>(n));
    return {};
}

Status BenchClient::open_stream(std::string_view path) {
    const std::string request = fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    if (SSL_write(wire_->ssl, request.data(), static_cast<int>(request.size())) <= 0) {
        return base::internal("cannot send to the server");
    }
    return {};
}

Result<BenchClient::Answer> BenchClient::ask(std::string_view method, std::string_view path, std::string_view body) {
    std::string request =
        fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                    method, path, body.size());
    request += body;
    if (SSL_write(wire_->ssl, request.data(), static_cast<int>(request.size())) <= 0) {
        return base::internal("cannot send to the server");
    }
    size_t head = 0;
    while ((head = buffer_.find("\r\n\r\n")) == std::string::npos) TRY(read(buffer_));
    const size_t whole = head + 4 + content_length(std::string_view(buffer_).substr(0, head + 2));
    while (buffer_.size() < whole) TRY(read(buffer_));
    Answer out;
    std::from_chars(buffer_.data() + 9, buffer_.data() + 12, out.code);
    out.body = buffer_.substr(head + 4, whole - head - 4);
    buffer_.erase(0, whole);
    return out;
}

void BenchClient::shut() {
    ::shutdown(wire_->fd, SHUT_RDWR);
}

}  // namespace berth::app
