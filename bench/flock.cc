#include "bench/flock.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <vector>

namespace berth::bench {
namespace {

struct Wire {
    SSL* ssl = nullptr;
    int fd = -1;
    std::string text;

    Wire() = default;
    Wire(const Wire&) = delete;
    Wire& operator=(const Wire&) = delete;
    ~Wire() {
        SSL_free(ssl);
        if (fd >= 0) ::close(fd);
    }
};

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

struct BenchFlock::Wires {
    SSL_CTX* context = nullptr;
    int epoll = -1;
    std::vector<std::unique_ptr<Wire>> all;

    Wires() = default;
    Wires(const Wires&) = delete;
    Wires& operator=(const Wires&) = delete;
    ~Wires() {
        all.clear();
        SSL_CTX_free(context);
        if (epoll >= 0) ::close(epoll);
    }
};

BenchFlock::BenchFlock(std::unique_ptr<Wires> wires) : wires_(std::move(wires)) {}
BenchFlock::BenchFlock(BenchFlock&&) noexcept = default;
BenchFlock& BenchFlock::operator=(BenchFlock&&) noexcept = default;
BenchFlock::~BenchFlock() = default;

Result<BenchFlock> BenchFlock::connect(uint16_t port, const std::string& pki, size_t count) {
    auto wires = std::make_unique<Wires>();
    wires->context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_load_verify_locations(wires->context, (pki + "/ca.crt").c_str(), nullptr);
    SSL_CTX_use_certificate_chain_file(wires->context, (pki + "/admin.crt").c_str());
    SSL_CTX_use_PrivateKey_file(wires->context, (pki + "/admin.key").c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_set_verify(wires->context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_mode(wires->context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(wires->context, 1);  // a record is read at once, not its head and then its body
    wires->epoll = ::epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < count; ++i) {
        auto wire = std::make_unique<Wire>();
        wire->fd = dial(port);
        wire->ssl = SSL_new(wires->context);
        SSL_set_fd(wire->ssl, wire->fd);
        if (wire->fd < 0 || SSL_connect(wire->ssl) != 1) return base::internal("cannot connect to the server");
        ::fcntl(wire->fd, F_SETFL, ::fcntl(wire->fd, F_GETFL) | O_NONBLOCK);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = i;
        ::epoll_ctl(wires->epoll, EPOLL_CTL_ADD, wire->fd, &event);
        wires->all.push_back(std::move(wire));
    }
    return BenchFlock(std::move(wires));
}

size_t BenchFlock::size() const {
    return wires_->all.size();
}

Status BenchFlock::send(size_t connection, std::string_view bytes) {
    SSL* ssl = wires_->all[connection]->ssl;
    const int sent = SSL_write(ssl, bytes.data(), static_cast<int>(bytes.size()));
    // A request is far smaller than what the kernel takes when nothing else is under way.
    if (sent != static_cast<int>(bytes.size())) return base::internal("cannot send to the server");
    return {};
}

Status BenchFlock::poll(int milliseconds, const Take& f) {
    std::array<epoll_event, 64> events;
    const int count = ::epoll_wait(wires_->epoll, events.data(), static_cast<int>(events.size()), milliseconds);
    for (int i = 0; i < count; ++i) {
        const size_t connection = events[static_cast<size_t>(i)].data.u64;
        Wire& wire = *wires_->all[connection];
        __attribute__((uninitialized)) std::array<char, 16384> block;
        int n = 0;
        do {
            n = SSL_read(wire.ssl, block.data(), static_cast<int>(block.size()));
            if (n > 0) wire.text.append(block.data(), static_cast<size_t>(n));
        } while (n > 0 && SSL_has_pending(wire.ssl));  // what is left in the socket, epoll tells of again
        if (n <= 0 && SSL_get_error(wire.ssl, n) != SSL_ERROR_WANT_READ) {
            return base::internal("the server closed a connection");
        }
        if (!wire.text.empty()) TRY(f(connection, wire.text));
    }
    return {};
}

std::string request_text(std::string_view method, std::string_view path, std::string_view body) {
    return fmt::format(
        "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", method,
        path, body.size(), body);
}

std::optional<BenchAnswer> take_answer(std::string& text) {
    const size_t head = text.find("\r\n\r\n");
    if (head == std::string::npos) return std::nullopt;
    const size_t whole = head + 4 + content_length(std::string_view(text).substr(0, head + 2));
    if (text.size() < whole) return std::nullopt;
    BenchAnswer out;
    std::from_chars(text.data() + 9, text.data() + 12, out.code);
    out.body = text.substr(head + 4, whole - head - 4);
    text.erase(0, whole);
    return out;
}

}  // namespace berth::bench
