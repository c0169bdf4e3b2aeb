#include "hostile_requests.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <thread>

namespace berth::fuzz {
namespace {

using Text = std::string_view;

constexpr std::array<Text, 9> kMethods{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "get"};
constexpr std::array<Text, 16> kTargets{"/",
                                        "/livez",
                                        "/version",
                                        "/metrics",
                                        "/api/v1/namespaces/default/configmaps",
                                        "/api/v1/namespaces/default/configmaps/a",
                                        "/api/v1/namespaces/default/pods/p/binding",
                                        "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1",
                                        "/api/v1/pods?limit=1&continue=x",
                                        "/apis/apps/v1/deployments?labelSelector=a%20in%20(b)",
                                        "*",
                                        "http://127.0.0.1/livez",
                                        "/api/v1/%2e%2e/%00",
                                        "/api/v1/nodes?fieldSelector=%",
                                        "//livez",
                                        "/openapi/v3?hash=1"};
constexpr std::array<Text, 5> kVersions{"HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/1.1 ", "http/1.1"};
constexpr std::array<Text, 30> kHeaders{"Content-Length: 0",
                                        "Content-Length: 5",
                                        "Content-Length: -1",
                                        "Content-Length: 5, 5",
                                        "Content-Length: 99999999999999999999",
                                        "Content-Length: 0x5",
                                        "Transfer-Encoding: chunked",
                                        "Transfer-Encoding: gzip, chunked",
                                        "Transfer-Encoding: chunked, gzip",
                                        "Transfer-Encoding : chunked",
                                        "Expect: 100-continue",
                                        "Expect: 200-maybe",
                                        "Connection: close",
                                        "Connection: keep-alive, upgrade",
                                        "Upgrade: h2c",
                                        "Host: evil.example",
                                        "Host:",
                                        "Origin: https://evil.example",
                                        "Authorization: Bearer x",
                                        "Authorization: Basic eDp5",
                                        "Impersonate-User: a",
                                        "Impersonate-Extra-%zz: b",
                                        "Accept: application/json;as=Table;v=v1;g=meta.k8s.io",
                                        "Accept: ;;;,*/*;q=9",
                                        "Content-Encoding: gzip",
                                        "Content-Type: application/yaml",
                                        "Content-Type: application/vnd.kubernetes.protobuf",
                                        "Content-Type: application/json-patch+json",
                                        "X: y\r\n folded",
                                        "NoColon"};
constexpr std::array<Text, 7> kBodies{"",
                                      "hello",
                                      "{}",
                                      R"({"metadata":{"name":"a"}})",
                                      R"([{"op":"add","path":"/data/a","value":"b"}])",
                                      "metadata: {name: [*a, &a b]}",
                                      R"({"metadata":{"name":"a","labels":{"a":"b"}},"data":{"c":"d"}})"};
constexpr std::array<Text, 11> kChunkSizes{"0",
                                           "00000000000000000005",
                                           "ffffffffffffffff",
                                           "fffffffffffffffff",
                                           "-1",
                                           "0x5",
                                           "5 ",
                                           "",
                                           "g",
                                           "7fffffffffffffff",
                                           "300001"};
constexpr std::array<Text, 8> kExtensions{";", ";a", ";a=b", ";a=\"b\"", ";a=\"", ";a=b;c=d", " ;a = b", ";a=\"\\"};
// Around every limit there is, and far above.
constexpr std::array<size_t, 12> kSizes{100,    1000,   4096,    16'383,  32'768,  65'535,
                                        65'536, 65'537, 100'000, 262'145, 300'000, 400'000};

class Socket {
public:
    Socket() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {}
    ~Socket() { ::close(fd_); }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    bool connect(uint16_t port) {
        const int yes = 1;
        ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        const timeval patience{5, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    }
    bool send(Text text) {
        while (!text.empty()) {
            const ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
            if (n <= 0) return false;
            text.remove_prefix(static_cast<size_t>(n));
        }
        return true;
    }
    std::string read_to_end() {
        ::shutdown(fd_, SHUT_WR);
        std::string out;
        char block[16384];
        for (ssize_t n = 0; (n = ::recv(fd_, block, sizeof(block), 0)) > 0;) {
            if (out.size() < 1u << 20) out.append(block, static_cast<size_t>(n));
        }
        return out;
    }

private:
    int fd_;
};

}  // namespace

std::string HostileRequests::noise(size_t size) {
    static constexpr Text kOdd("\0\r\n\t :;=,\"\\%\x7f\xff{}[]", 19);
    std::string out(size, 'a');
    for (char& c : out) c = one_in(4) ? kOdd[below(kOdd.size())] : static_cast<char>(dice_());
    return out;
}

std::string HostileRequests::blown_up(std::string_view seed) {
    const size_t size = one_in(4) ? kSizes[below(kSizes.size())] : kSizes[below(4)];
    std::string out;
    const Text unit = seed.empty() ? Text("0") : seed;
    while (out.size() < size) out += unit.substr(0, size - out.size());
    return out;
}

HostileRequests::Parts HostileRequests::sound() {
    Parts out;
    out.method = any(kMethods);
    out.target = any(kTargets);
    out.version = "HTTP/1.1";
    out.headers = {"Host: 127.0.0.1", "Content-Type: application/json"};
    if (!authorization_.empty() && one_in(3)) out.headers.push_back("Authorization: " + authorization_);
    out.body = any(kBodies);
    out.chunked = one_in(2);
    if (!out.chunked) {
        if (!out.body.empty()) out.headers.push_back("Content-Length: " + std::to_string(out.body.size()));
        return out;
    }
    out.headers.emplace_back("Transfer-Encoding: chunked");
    for (size_t at = 0; at < out.body.size();) {
        const size_t size = 1 + below(out.body.size() - at);
        char text[20];
        std::snprintf(text, sizeof(text), "%zx", size);
        out.chunks.push_back({text, "", out.body.substr(at, size), "\r\n"});
        at += size;
    }
    out.chunks.push_back({"0", "", "", ""});
    out.chunks_end = "\r\n";
    return out;
}

void HostileRequests::change_line(Parts& parts) {
    switch (below(5)) {
        case 0:
            parts.method = one_in(2) ? noise(1 + below(10)) : blown_up("M");
            break;
        case 1:
            parts.target = one_in(2) ? "/" + noise(1 + below(40)) : blown_up(parts.target);
            break;
        case 2:
            parts.target += blown_up("?a=%41&");
            break;
        default:
            parts.version = any(kVersions);
    }
}

void HostileRequests::change_headers(Parts& parts) {
    auto& headers = parts.headers;
    const size_t at = below(headers.size() + 1);
    switch (below(6)) {
        case 0:
            if (at < headers.size()) headers.erase(headers.begin() + static_cast<ptrdiff_t>(at));
            break;
        case 1:
            headers.push_back("X-" + blown_up("n") + ": v");
            break;
        case 2:
            headers.push_back("X: " + blown_up("v"));
            break;
        case 3:
            headers.insert(headers.begin() + static_cast<ptrdiff_t>(at), 1 + below(1500), "a:b");
            break;
        case 4:
            headers.insert(headers.begin() + static_cast<ptrdiff_t>(at), noise(1 + below(30)));
            break;
        default:
            headers.insert(headers.begin() + static_cast<ptrdiff_t>(at), std::string(any(kHeaders)));
    }
}

void HostileRequests::change_chunks(Parts& parts) {
    if (!parts.chunked) return;
    Chunk& chunk = parts.chunks[below(parts.chunks.size())];
    switch (below(7)) {
        case 0:
            chunk.size = any(kChunkSizes);
            break;
        case 1:
            chunk.extension = any(kExtensions);
            break;
        case 2:
            chunk.extension = ";" + blown_up("0");
            break;
        case 3:
            chunk.extension = ";" + noise(1 + below(20));
            break;
        case 4:
            chunk.size = blown_up("0");
            break;
        case 5:
            chunk.end = one_in(2) ? "" : "\n";
            break;
        default:
            parts.chunks.push_back(chunk);
    }
}

void HostileRequests::change_trailers(Parts& parts) {
    if (!parts.chunked) return;
    switch (below(4)) {
        case 0:
            parts.trailers.emplace_back(any(kHeaders));
            break;
        case 1:
            parts.trailers.push_back("T: " + blown_up("t"));
            break;
        case 2:
            parts.trailers.push_back(noise(1 + below(30)));
            break;
        default:
            parts.chunks_end = one_in(2) ? "" : blown_up("A: b\r\n");
    }
}

void HostileRequests::change_bytes(std::string& bytes) {
    if (bytes.empty()) return;
    const size_t at = below(bytes.size());
    switch (below(6)) {
        case 0:
            bytes[at] = static_cast<char>(dice_());
            break;
        case 1:
            bytes.insert(at, noise(1 + below(8)));
            break;
        case 2:
            bytes.erase(at, 1 + below(8));
            break;
        case 3:
            bytes.resize(at);
            break;
        case 4:
            bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(200)));
            break;
        default:
            if (const size_t line = bytes.find("\r\n", at); line != std::string::npos) bytes.erase(line, 1);
    }
}

std::string HostileRequests::written(const Parts& parts) {
    std::string out = parts.method + " " + parts.target + " " + parts.version + "\r\n";
    for (const auto& header : parts.headers) out += header + "\r\n";
    out += "\r\n";
    if (!parts.chunked) return out + parts.body;
    for (const auto& chunk : parts.chunks) out += chunk.size + chunk.extension + "\r\n" + chunk.data + chunk.end;
    for (const auto& trailer : parts.trailers) out += trailer + "\r\n";
    return out + parts.chunks_end;
}

Hostile HostileRequests::next() {
    Parts parts = sound();
    for (size_t i = below(4); i > 0; --i) {
        switch (below(4)) {
            case 0:
                change_line(parts);
                break;
            case 1:
                change_headers(parts);
                break;
            case 2:
                change_chunks(parts);
                break;
            default:
                change_trailers(parts);
        }
    }
    Hostile out{written(parts), {}};
    for (size_t i = below(3); i > 0; --i) change_bytes(out.bytes);
    if (one_in(8)) out.bytes += out.bytes;
    const bool each_byte = out.bytes.size() < 300 && one_in(50);
    const size_t most = each_byte ? out.bytes.size() : one_in(2) ? 0 : below(4);
    for (size_t i = 0; i < most && !out.bytes.empty(); ++i) {
        out.pauses.push_back(each_byte ? i : below(out.bytes.size()));
    }
    std::sort(out.pauses.begin(), out.pauses.end());
    return out;
}

Told tell(uint16_t port, const Hostile& request) {
    Socket socket;
    if (!socket.connect(port)) return {{}, false};
    Text rest = request.bytes;
    size_t sent = 0;
    for (const size_t pause : request.pauses) {
        if (!socket.send(rest.substr(0, pause - sent))) break;
        rest.remove_prefix(pause - sent);
        sent = pause;
        // Nothing depends on it: the server has the chance to read what came so far by itself.
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    socket.send(rest);
    return {socket.read_to_end()};
}

std::string wrong_with(const std::string& answer) {
    if (answer.empty()) return {};
    constexpr Text kLine = "HTTP/1.1 ";
    if (!answer.starts_with(kLine) || answer.size() < 13 || answer[12] != ' ') return "no HTTP";
    if (answer[9] < '1' || answer[9] > '4') return "status " + answer.substr(9, 3);
    if (answer.find("\r\n\r\n") == std::string::npos) return "no end of the header";
    return {};
}

}  // namespace berth::fuzz
