#include "api/http.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace berth::api {
namespace {

// A client that reads until it has seen enough, or the server closes.
class Client {
public:
    explicit Client(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
        const timeval patience{20, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    }
    ~Client() { ::close(fd_); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    void send(std::string_view text) {
        while (!text.empty()) {
            const ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
            if (n <= 0) return;
            text.remove_prefix(static_cast<size_t>(n));
        }
    }
    std::string read_until(std::string_view end) {
        std::string out;
        char block[4096];
        while (out.find(end) == std::string::npos) {
            const ssize_t n = ::recv(fd_, block, sizeof(block), 0);
            if (n < 0 && errno == EAGAIN) ADD_FAILURE() << "neither an answer nor the end of the connection";
            if (n <= 0) break;
            out.append(block, static_cast<size_t>(n));
        }
        return out;
    }
    std::string read_all() { return read_until(std::string_view("\0never", 6)); }

private:
    int fd_;
};

class Ticker : public Source {
public:
    State pull(std::string& out) override {
        if (stopped_) return State::Ended;
        out += "tick\n";
        return State::Waiting;
    }
    void stop() override { stopped_ = true; }

private:
    bool stopped_ = false;
};

// Always has more.
class Endless : public Source {
public:
    State pull(std::string& out) override {
        out.append(1u << 16, 'x');
        return stopped_ ? State::Ended : State::More;
    }
    void stop() override { stopped_ = true; }

private:
    bool stopped_ = false;
};

// Says something once for each `due`, and is silent in between.
class Quiet : public Source {
public:
    static inline std::atomic<int> due = 0;
    State pull(std::string& out) override {
        for (; said_ < due; ++said_) out += "tick\n";
        return State::Waiting;
    }
    void stop() override {}

private:
    int said_ = 0;
};

void serve(Request request, Responder responder) {
    if (request.path == "/quiet") return responder.stream({}, std::make_unique<Quiet>());
    if (request.path == "/stream") return responder.stream({}, std::make_unique<Ticker>());
    if (request.path == "/endless") return responder.stream({}, std::make_unique<Endless>());
    if (request.path == "/drop") return;
    if (request.path == "/headers") {
        for (const auto& [name, value] : request.headers) request.body += " " + name;
    }
    if (request.path == "/throw") throw std::runtime_error("a bug");
    Response out;
    out.body = request.method + " " + request.path + " " + request.body + ".";
    responder.respond(std::move(out));
}

struct Running {
    explicit Running(HttpOptions options = {}, Screen screen = {})
        : server(quick(std::move(options)), serve, std::move(screen)) {
        port = server.start().value();
    }
    static HttpOptions quick(HttpOptions options) {
        options.threads = 1;
        return options;
    }
    HttpServer server;
    uint16_t port = 0;
};

TEST(Http, KeepsAConnectionForSeveralRequests) {
    Running running;
    Client client(running.port);
    client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    const auto text = client.read_until("GET /b .");
    EXPECT_NE(text.find("GET /a ."), std::string::npos);
    EXPECT_NE(text.find("GET /b ."), std::string::npos);
}

TEST(Http, ReadsChunkedBodiesAndContinues) {
    Running running;
    Client client(running.port);
    client.send("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_NE(client.read_until("100 Continue").find("100 Continue"), std::string::npos);
    client.send("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    EXPECT_NE(client.read_until("abcde.").find("POST /a abcde."), std::string::npos);
}

TEST(Http, ReadsABodyThatComesByteByByte) {
    Running running;
    const std::string head =
        "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n";
    for (const std::string body : {"0\r\n\r\n", "1\r\na\r\n0\r\n\r\n", "0;e=f\r\nT: u\r\n\r\n"}) {
        Client client(running.port);
        client.send(head);
        client.read_until("100 Continue\r\n\r\n");  // from here on each byte is read by itself
        for (const char c : body) {
            client.send({&c, 1});
            std::this_thread::yield();
        }
        EXPECT_NE(client.read_until(".").find("POST /a "), std::string::npos) << body;
    }
}

TEST(Http, TrailersAreNoHeaders) {
    Running running;
    Client client(running.port);
    client.send(
        "POST /headers HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nAuthorization: Bearer "
        "x\r\nImpersonate-User: admin\r\nConnection: close\r\n\r\n");
    EXPECT_NE(client.read_until("coding.").find("POST /headers  host transfer-encoding."), std::string::npos);
    client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_NE(client.read_until("GET /a .").find("GET /a ."), std::string::npos) << "nor do they close the connection";
}

// The stream ended with the bytes that came behind its request, and was counted as open for ever.
TEST(Http, AStreamGoesOnWhenTheNextRequestComesBehindIt) {
    Running running;
    Quiet::due = 1;
    {
        Client client(running.port);
        client.send("GET /quiet HTTP/1.1\r\nHost: x\r\n\r\n");
        client.read_until("tick");
        client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
        for (int i = 0; i < 2; ++i) {  // when this is answered, that was read: there is one thread
            Client other(running.port);
            other.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
            other.read_until("GET /b .");
        }
        Quiet::due = 2;
        running.server.wake();
        EXPECT_NE(client.read_until("tick").find("tick"), std::string::npos);
    }
    while (running.server.counters()->connections > 0) std::this_thread::yield();
    EXPECT_EQ(running.server.counters()->streams, 0);
}

TEST(Http, TheHeadOfAStreamHasNoBody) {
    Running running;
    Client client(running.port);
    client.send("HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    const auto told = client.read_until("GET /a .");
    EXPECT_EQ(told.find("tick"), std::string::npos);
    EXPECT_NE(told.find("\r\n\r\nHTTP/1.1 200"), std::string::npos);
    EXPECT_EQ(running.server.counters()->streams, 0);
}

TEST(Http, EveryAnswerSaysHowToBeKept) {
    Running running;
    Client client(running.port);
    client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    const auto told = client.read_until("GET /a .");
    EXPECT_NE(told.find("\r\nX-Content-Type-Options: nosniff\r\n"), std::string::npos);
    EXPECT_NE(told.find("\r\nCache-Control: no-cache, private\r\n"), std::string::npos);
}

TEST(Http, ARequestHasOneHost) {
    Running running;
    for (const auto* hosts : {"", "Host: x\r\nHost: x\r\n"}) {
        Client client(running.port);
        client.send(std::string("GET /a HTTP/1.1\r\n") + hosts + "\r\n");
        EXPECT_EQ(client.read_all().substr(0, 12), "HTTP/1.1 400") << hosts;
    }
    Client old(running.port);
    old.send("GET /a HTTP/1.0\r\n\r\n");
    EXPECT_EQ(old.read_all().substr(0, 12), "HTTP/1.1 200");
}

TEST(Http, RefusesWhatIsTooLarge) {
    HttpOptions options;
    options.max_body = 100;
    options.max_headers = 1000;
    options.max_url = 200;
    Running running(options);
    Client body(running.port);
    body.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n");
    EXPECT_EQ(body.read_all().substr(0, 12), "HTTP/1.1 413");
    Client headers(running.port);
    headers.send("GET /a HTTP/1.1\r\nHost: x\r\nX: " + std::string(2000, 'x') + "\r\n\r\n");
    EXPECT_EQ(headers.read_all().substr(0, 12), "HTTP/1.1 431");
    Client url(running.port);
    url.send("GET /" + std::string(300, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(url.read_all().substr(0, 12), "HTTP/1.1 414");
    options.max_headers = 64u << 10;
    Running many(options);
    std::string text = "GET /a HTTP/1.1\r\nHost: x\r\n";
    for (size_t i = 1; i < options.max_header_fields; ++i) text += "A: b\r\n";
    Client enough(many.port), more(many.port);
    enough.send(text + "\r\n");
    EXPECT_NE(enough.read_until("GET /a .").find("200 OK"), std::string::npos);
    more.send(text + "A: b\r\n\r\n");
    EXPECT_EQ(more.read_all().substr(0, 12), "HTTP/1.1 431");
    Client garbage(running.port);
    garbage.send("nonsense\r\n\r\n");
    EXPECT_EQ(garbage.read_all().substr(0, 12), "HTTP/1.1 400");
}

// Whatever Beast would keep until its end has come: lines between chunks, and what stands behind the last one.
TEST(Http, RefusesChunkLinesAndTrailersThatDoNotEnd) {
    Running running;
    const std::string chunked = "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    const std::string much(400'000, '0');
    struct Case {
        std::string body;
        std::string status;
    };
    for (const auto& [body, status] :
         {Case{"5;" + much, "400"}, Case{much, "400"}, Case{"1\r\na\r\n1;" + much, "400"}, Case{"0;" + much, "400"},
          Case{"0\r\nA: " + much, "431"}, Case{"1\r\na\r\n0\r\n" + much, "431"}}) {
        Client client(running.port);
        client.send(chunked + body);
        EXPECT_EQ(client.read_all().substr(0, 12), "HTTP/1.1 " + status) << body.substr(0, 20);
    }
    EXPECT_EQ(running.server.counters()->exceptions, 0u);
    EXPECT_EQ(running.server.counters()->refused, 6u);
    Client after(running.port);
    after.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_NE(after.read_until("GET /a .").find("GET /a ."), std::string::npos);
}

TEST(Http, AnExceptionEndsItsConnectionAndNothingElse) {
    Running running;
    Client other(running.port), client(running.port);
    client.send("GET /throw HTTP/1.1\r\nHost: x\r\n\r\n");
    client.read_all();
    EXPECT_EQ(running.server.counters()->exceptions, 1u);
    other.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_NE(other.read_until("GET /a .").find("GET /a ."), std::string::npos);
}

TEST(Http, OnlyChunkedIsATransferCoding) {
    Running running;
    for (const auto* coding : {"gzip", "chunked, gzip", "identity"}) {
        Client client(running.port);
        client.send(std::string("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: ") + coding + "\r\n\r\n");
        EXPECT_EQ(client.read_all().substr(0, 12), "HTTP/1.1 400") << coding;
    }
}

TEST(Http, CutsOffWhoIsTooSlow) {
    HttpOptions options;
    options.header_seconds = 1;
    options.body_grace_seconds = 1;
    Running running(options);
    Client headers(running.port);
    headers.send("GET /a HTTP/1.1\r\nHo");
    EXPECT_EQ(headers.read_all(), "");
    Client body(running.port);
    body.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\nabc");
    EXPECT_EQ(body.read_all(), "");
}

TEST(Http, ABodyThatComesSteadilyAndTooLongIsCutOff) {
    HttpOptions options;
    options.request_seconds = 1;
    options.min_body_rate = 0;
    Running running(options);
    Client client(running.port);
    client.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\nabc");
    EXPECT_EQ(client.read_all(), "");
}

// One that is not known loses his connection soon; one that is keeps it longer, and loses it too.
TEST(Http, AnIdleConnectionIsCutOff) {
    HttpOptions options;
    options.unknown_idle_seconds = 1;
    options.idle_seconds = 1000;
    Running running(options);
    Client unknown(running.port);
    unknown.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_NE(unknown.read_all().find("GET /a ."), std::string::npos);
    options.idle_seconds = 2;
    Running knowing(options, [](const Request&) -> Screening { return {true}; });
    Client known(knowing.port);
    const auto begin = std::chrono::steady_clock::now();
    known.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_NE(known.read_all().find("GET /a ."), std::string::npos);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1500));
}

TEST(Http, WhoTakesNothingIsCutOff) {
    HttpOptions options;
    options.write_seconds = 1;
    Running running(options);
    Client client(running.port);
    client.send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n");
    while (running.server.counters()->slow_closed == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(running.server.counters()->streams, 0);
}

TEST(Http, TheHeaderIsLookedAtBeforeTheBodyIsRead) {
    std::atomic<int> looked = 0;
    Running running({}, [&](const Request& head) -> Screening {
        ++looked;
        if (head.header("authorization") == "me") return {true};
        Response out;
        out.status = 401;
        return {false, out};
    });
    Client unknown(running.port);
    unknown.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_EQ(unknown.read_all().substr(0, 12), "HTTP/1.1 401");
    Client known(running.port);
    known.send("GET /a HTTP/1.1\r\nHost: x\r\nAuthorization: me\r\n\r\n");
    EXPECT_NE(known.read_until("GET /a .").find("200 OK"), std::string::npos);
    EXPECT_EQ(looked, 2);
    known.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");  // the handler's business: nothing of a body is read
    EXPECT_NE(known.read_until("GET /b .").find("200 OK"), std::string::npos);
    EXPECT_EQ(looked, 2);
    known.send("POST /c HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    EXPECT_NE(known.read_all().find("HTTP/1.1 401"), std::string::npos);
}

TEST(Http, BodiesThatWouldHoldTooMuchAreRefusedForNow) {
    HttpOptions options;
    options.max_held_per_peer = 100'000;
    Running running(options);
    const std::string head = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n";
    auto first = std::make_unique<Client>(running.port);
    first->send(head + std::string(80'000, 'a'));
    while (running.server.counters()->held < 80'000) std::this_thread::yield();
    Client second(running.port);
    second.send(head + std::string(80'000, 'b'));
    const auto told = second.read_all();
    EXPECT_EQ(told.substr(0, 12), "HTTP/1.1 429");
    EXPECT_NE(told.find("Retry-After: 1"), std::string::npos);
    first->send(std::string(10'000, 'a'));
    EXPECT_EQ(first->read_until("a.").substr(0, 12), "HTTP/1.1 200");
    Client third(running.port);
    third.send(head + std::string(90'000, 'c'));
    EXPECT_EQ(third.read_until("c.").substr(0, 12), "HTTP/1.1 200") << "what was answered is given back";
}

TEST(Http, AnUnansweredRequestIsAnError) {
    Running running;
    Client client(running.port);
    client.send("GET /drop HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(client.read_until("answer").substr(0, 12), "HTTP/1.1 500");
}

TEST(Http, AStreamEndsCleanlyWhenTheServerStops) {
    auto running = std::make_unique<Running>();
    Client client(running->port);
    client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_NE(client.read_until("tick").find("Transfer-Encoding: chunked"), std::string::npos);
    running->server.wake();
    EXPECT_NE(client.read_until("tick").find("tick"), std::string::npos);
    running->server.stop();
    EXPECT_NE(client.read_all().find("0\r\n\r\n"), std::string::npos);
}

}  // namespace
}  // namespace berth::api
