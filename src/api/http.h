#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

// HTTP/1.1 over TLS or plain TCP, and nothing about Kubernetes. Boost.Beast stays behind this header.
namespace berth::api {

// The subject of a client certificate that our CA signed; the TLS layer has verified it.
struct PeerCertificate {
    std::string common_name;
    std::vector<std::string> organizations;
    std::string serial = {};  // in hex, as openssl prints it
    base::Time not_before = {};
    base::Time not_after = {};
};

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Request {
    std::string method;
    std::string path;  // as sent, without the query; its segments are still percent-encoded
    Pairs query;       // decoded, in order
    Pairs headers;     // names in lower case
    std::string body;
    std::shared_ptr<const PeerCertificate> peer;
    bool bad_certificate = false;  // the client showed one that our CA did not sign
    std::string address;           // the peer's, without a port

    std::string_view header(std::string_view lower_case_name) const;
    // The first value of a query parameter, or nullptr.
    const std::string* param(std::string_view name) const;
};

struct Response {
    int status = 200;
    std::string content_type = "application/json";
    Pairs headers = {};
    std::string body = {};
    std::shared_ptr<const std::string> shared_body = {};  // instead of `body`: one text for all who read it

    std::string_view content() const { return shared_body != nullptr ? *shared_body : body; }
    bool has_header(std::string_view name) const;
};

// The body of a streaming answer. The connection pulls on its own thread whenever the socket can take more, so a client
// that does not read is never buffered for: its source only falls behind.
class Source {
public:
    // Broken: the rest cannot be had; the connection is closed, so that nobody takes what was sent for the whole.
    enum class State : uint8_t { More, Waiting, Ended, Broken };
    virtual ~Source() = default;
    // Appends bytes. Waiting: nothing more until HttpServer::wake() or the next second.
    virtual State pull(std::string& out) = 0;
    // The server stops: end at the next pull.
    virtual void stop() = 0;
};

class Exchange;

// The answer to one request; move-only, may be used from any thread, answers once. Dropped unanswered it answers 500.
class Responder {
public:
    explicit Responder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
    Responder(Responder&&) noexcept = default;
    Responder& operator=(Responder&&) noexcept = default;
    ~Responder();
    void respond(Response response);
    void stream(Response head, std::unique_ptr<Source> source);

private:
    std::shared_ptr<Exchange> exchange_;
};

using Handler = std::function<void(Request, Responder)>;

// What is said to a request when its header has come and nothing of its body was read.
struct Screening {
    bool known = false;                    // it showed who it is
    std::optional<Response> refusal = {};  // it goes no further: the answer, and the end of the connection
};
using Screen = std::function<Screening(const Request& head)>;

struct TlsKeys {
    std::string certificate_pem;
    std::string key_pem;
    std::string client_ca_pem;
};

struct HttpCounters {
    std::atomic<int64_t> connections{0};
    std::atomic<int64_t> streams{0};
    std::atomic<size_t> held{0};  // bytes of requests
    std::atomic<uint64_t> requests{0};
    std::atomic<uint64_t> slow_closed{0};
    std::atomic<uint64_t> refused{0};     // what is no HTTP, or larger than a limit
    std::atomic<uint64_t> exceptions{0};  // each ended its connection
    std::atomic<uint64_t> evicted{0};     // who was not known, and whose place was needed
    std::atomic<uint64_t> too_much{0};    // requests refused because others hold too much already
};

struct HttpOptions {
    std::string host = "127.0.0.1";
    uint16_t port = 0;
    int threads = 2;
    std::optional<TlsKeys> tls = {};
    size_t max_connections = 20'000;
    size_t max_body = 3u << 20;
    size_t max_headers = 64u << 10;  // also of a chunk's line, and of trailers
    size_t max_header_fields = 1000;
    size_t max_url = 32u << 10;
    int header_seconds = 10;
    int idle_seconds = 90;
    int unknown_idle_seconds = 10;  // of who has not shown who he is
    int request_seconds = 60;       // from the first byte of a request to its last
    int body_grace_seconds = 10;    // after that a body must arrive at min_body_rate on average
    size_t min_body_rate = 1024;
    int write_seconds = 30;          // a client that takes nothing for so long is cut off
    size_t max_idle_per_peer = 100;  // of who is not known; above it the longest idle goes when the next one comes
    size_t max_held_per_peer = 64u << 20;  // bytes of requests, from when they are read until they are answered
    size_t max_held = 256u << 20;
    std::shared_ptr<HttpCounters> counters = {};  // where to count; its own when there is none
    const base::Clock* clock = &base::system_clock();
};

class HttpServer {
public:
    // Without a screen nobody is known, and every body is read.
    HttpServer(HttpOptions options, Handler handler, Screen screen = {});
    ~HttpServer();
    // Binds, listens and starts the threads; the port that was chosen.
    Result<uint16_t> start();
    // Ends streams with a clean last chunk, lets running requests finish (two seconds at most), closes the rest.
    void stop();
    // Any thread: streams may have something to send. Joined: a burst of calls costs one round of pulls.
    void wake();
    std::shared_ptr<const HttpCounters> counters() const;

private:
    class Engine;
    std::unique_ptr<Engine> engine_;
};

// "%41" -> "A"; false when malformed. In a query '+' is a space.
bool percent_decode(std::string_view text, bool plus_is_space, std::string& out);
std::string_view status_text(int code);
// What a Host header names, without port and brackets.
std::string_view host_of(std::string_view header);
// An IP address, localhost or nothing: what no foreign name server can point at us, and so no foreign page either.
bool is_address(std::string_view host);

}  // namespace berth::api
