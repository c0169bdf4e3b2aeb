#include "link/http_wire.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "link/wire_test.h"

namespace berth::link {
namespace {

using namespace std::chrono_literals;

// The server's end of one connection.
class Peer {
public:
    explicit Peer(int fd) : fd_(fd) {
        const timeval patience{20, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    }
    ~Peer() { ::close(fd_); }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    // Head and body of the next request; empty when the client has gone.
    std::string request() {
        std::string out;
        char block[4096];
        while (out.find("\r\n\r\n") == std::string::npos) {
            const auto n = ::recv(fd_, block, sizeof(block), 0);
            if (n <= 0) return {};
            out.append(block, static_cast<size_t>(n));
        }
        return out;
    }
    // The next `size` of them; fewer when the client has gone.
    std::string bytes(size_t size) {
        std::string out(size, 0);
        const auto n = ::recv(fd_, out.data(), size, MSG_WAITALL);
        out.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
        return out;
    }
    void say(std::string_view text) {
        while (!text.empty()) {
            const auto n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
            if (n <= 0) return;
            text.remove_prefix(static_cast<size_t>(n));
        }
    }

private:
    int fd_;
};

// Listens on a port of its own; the test accepts by hand.
class Listener {
public:
    Listener() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
        EXPECT_EQ(::listen(fd_, 16), 0);
        socklen_t size = sizeof(address);
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
        port = ntohs(address.sin_port);
        const timeval patience{20, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    }
    ~Listener() { close(); }
    void close() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }
    std::unique_ptr<Peer> accept() { return std::make_unique<Peer>(::accept(fd_, nullptr, nullptr)); }
    uint16_t port = 0;

private:
    int fd_;
};

class HttpWire : public WireTest {
protected:
    HttpWire() {
        char name[] = "/tmp/berth-wire-XXXXXX";
        folder_ = ::mkdtemp(name);
        write("token", "t0ken");
        write("config",
              "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, "
              "cluster: {server: 'http://127.0.0.1:" +
                  std::to_string(listener_.port) + "/base'}}]\nusers: [{name: a, user: {tokenFile: token}}]\n");
        wire_ = http_wire({.kubeconfig = folder_ + "/config"}).value();
    }
    ~HttpWire() override {
        wire_->stop();
        std::filesystem::remove_all(folder_);
    }
    void write(const std::string& name, const std::string& text) {
        std::ofstream(folder_ + "/" + name) << text;
        std::filesystem::permissions(folder_ + "/" + name,
                                     std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    }

    // Runs it on the loop's thread, and waits.
    void on_loop(const std::function<void()>& task) {
        std::promise<void> done;
        wire_->loop().post([&] {
            task();
            done.set_value();
        });
        done.get_future().get();
    }

    Listener listener_;
    std::string folder_;
};

TEST_F(HttpWire, KeepsAConnectionForTheNextRequest) {
    auto first = call({"POST", "/a?b=c", "body", "application/json"});
    const auto peer = listener_.accept();
    const std::string request = peer->request();
    EXPECT_TRUE(request.starts_with("POST /base/a?b=c HTTP/1.1\r\n")) << request;
    EXPECT_NE(request.find("\r\nAuthorization: Bearer t0ken\r\n"), std::string::npos);
    EXPECT_NE(request.find("\r\nContent-Length: 4\r\n"), std::string::npos);
    peer->say("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}");
    EXPECT_EQ(answer(std::move(first)).code, 201);
    auto second = call({"GET", "/d"});
    EXPECT_TRUE(peer->request().starts_with("GET /base/d "));
    peer->say(
        "HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nTransfer-Encoding: "
        "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    const auto busy = answer(std::move(second));
    EXPECT_EQ(busy.body, "abcde");
    EXPECT_EQ(busy.retry_after, 7s);
}

TEST_F(HttpWire, AConnectionThatTheServerClosedIsNotReused) {
    auto first = call({"GET", "/a"});
    {
        const auto peer = listener_.accept();
        peer->request();
        peer->say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        answer(std::move(first));
    }
    auto second = call({"POST", "/b", "x"});
    const auto peer = listener_.accept();
    EXPECT_TRUE(peer->request().starts_with("POST /base/b "));
    peer->say("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end");
}

TEST_F(HttpWire, SaysWhetherARequestMayHaveArrived) {
    auto cut = call({"POST", "/a", "x"});
    {
        const auto peer = listener_.accept();
        peer->request();
        peer->say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    }
    EXPECT_TRUE(trouble(std::move(cut)).sent);
    listener_.close();
    EXPECT_FALSE(trouble(call({"POST", "/a", "x"})).sent);
}

TEST_F(HttpWire, GivesUpOnAnAnswerThatDoesNotCome) {
    auto slow = call({"GET", "/a"}, 1s);
    const auto peer = listener_.accept();
    peer->request();
    const auto why = trouble(std::move(slow));
    EXPECT_TRUE(why.sent);
    EXPECT_TRUE(why.what.ends_with("/base: the answer took too long")) << why.what;
    EXPECT_EQ(peer->request(), "") << "the connection stayed open";
}

TEST_F(HttpWire, RefusesAnswersThatAreNotHttp) {
    auto odd = call({"GET", "/a"});
    const auto peer = listener_.accept();
    peer->request();
    peer->say("SSH-2.0-OpenSSH\r\n\r\n");
    EXPECT_NE(trouble(std::move(odd)).what.find("is not HTTP"), std::string::npos);
    EXPECT_FALSE(trouble(call({"GET", "/a b\r\nX: y"})).sent);
}

// A plugin that prints the file `says` as its token, after somebody has written to `gate`, if that is there.
class PluginWire : public HttpWire {
protected:
    PluginWire() {
        write("says", "one");
        write("plugin", "#!/bin/sh\ncd " + folder_ +
                            "\nif [ -e gate ]; then cat gate > /dev/null; fi\n"
                            "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
                            "\"status\":{\"token\":\"'$(cat says)'\"}}'\n");
        std::filesystem::permissions(folder_ + "/plugin", std::filesystem::perms::owner_all);
        write("exec",
              "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, "
              "cluster: {server: 'http://127.0.0.1:" +
                  std::to_string(listener_.port) +
                  "'}}]\nusers: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, "
                  "command: ./plugin, interactiveMode: Never}}}]\n");
        wire_->stop();
        wire_ = http_wire({.kubeconfig = folder_ + "/exec"}).value();
    }
};

// While the plugin takes its time the old credential serves.
TEST_F(PluginWire, GoesOnWhileItRuns) {
    const auto serve = [&](std::future<WireResult> asked, const std::string& token) {
        const auto peer = listener_.accept();
        const std::string request = peer->request();
        EXPECT_NE(request.find("Bearer " + token + "\r\n"), std::string::npos) << request;
        peer->say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        answer(std::move(asked));
    };
    serve(call({"GET", "/a"}), "one");
    write("says", "two");
    ASSERT_EQ(::mkfifo((folder_ + "/gate").c_str(), 0600), 0);
    std::promise<bool> changed;
    on_loop([&] { wire_->refresh([&](bool did) { changed.set_value(did); }); });
    serve(call({"GET", "/a"}), "one");
    std::ofstream(folder_ + "/gate") << "open";
    EXPECT_TRUE(changed.get_future().get());
    serve(call({"GET", "/a"}), "two");
}

TEST_F(PluginWire, EndsWithItsPlugin) {
    ASSERT_EQ(::mkfifo((folder_ + "/gate").c_str(), 0600), 0);
    on_loop([&] { wire_->refresh([](bool) { ADD_FAILURE() << "nobody opened the gate"; }); });
    wire_->stop();
}

TEST_F(HttpWire, ANewTokenIsUsed) {
    write("token", "other");
    on_loop([&] { wire_->refresh([](bool changed) { EXPECT_TRUE(changed); }); });
    auto got = call({"GET", "/a"});
    const auto peer = listener_.accept();
    EXPECT_NE(peer->request().find("Bearer other\r\n"), std::string::npos);
    peer->say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    answer(std::move(got));
}

// The listener is the proxy.
class ProxiedWire : public WireTest {
protected:
    void use(bool tls, Proxy::Kind kind) {
        Access access;
        access.tls = tls;
        access.host = "api.invalid";
        access.port = "6443";
        access.path = "/base";
        access.proxy = Proxy{kind, "127.0.0.1", std::to_string(listener_.port), "me", "word"};
        wire_ = http_wire(access).value();
    }
    ~ProxiedWire() override { wire_->stop(); }
    Listener listener_;
};

TEST_F(ProxiedWire, APlainRequestNamesTheWholeUrl) {
    use(false, Proxy::Kind::Http);
    auto got = call({"GET", "/a"});
    const auto proxy = listener_.accept();
    const std::string request = proxy->request();
    EXPECT_TRUE(request.starts_with("GET http://api.invalid:6443/base/a HTTP/1.1\r\nHost: api.invalid:6443\r\n"))
        << request;
    EXPECT_NE(request.find("\r\nProxy-Authorization: Basic bWU6d29yZA==\r\n"), std::string::npos) << request;
    proxy->say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(answer(std::move(got)).code, 200);
}

TEST_F(ProxiedWire, TlsGoesThroughATunnelOrSaysWhyNot) {
    use(true, Proxy::Kind::Http);
    auto got = call({"POST", "/a", "x"});
    {
        const auto proxy = listener_.accept();
        const std::string request = proxy->request();
        EXPECT_TRUE(request.starts_with("CONNECT api.invalid:6443 HTTP/1.1\r\n")) << request;
        EXPECT_NE(request.find("\r\nProxy-Authorization: Basic bWU6d29yZA==\r\n"), std::string::npos) << request;
        proxy->say("HTTP/1.1 407 Who are you\r\nContent-Length: 2\r\n\r\nno");
    }
    const auto why = trouble(std::move(got));
    EXPECT_FALSE(why.sent);
    EXPECT_TRUE(why.what.ends_with(" answered 407 Who are you")) << why.what;
    auto second = call({"GET", "/a"});
    const auto proxy = listener_.accept();
    proxy->request();
    proxy->say("HTTP/1.1 200 Connection established\r\n\r\n");
    EXPECT_EQ(proxy->bytes(1), "\x16") << "a TLS handshake";
}

TEST_F(ProxiedWire, SocksIsToldTheName) {
    use(false, Proxy::Kind::Socks5);
    auto got = call({"GET", "/a"});
    const auto proxy = listener_.accept();
    EXPECT_EQ(proxy->bytes(4), std::string("\x05\x02\x00\x02", 4));
    proxy->say({"\x05\x02", 2});
    EXPECT_EQ(proxy->bytes(9), std::string("\x01\x02me\x04word", 9));
    proxy->say({"\x01\x00", 2});
    EXPECT_EQ(proxy->bytes(18), std::string("\x05\x01\x00\x03\x0b", 5) + "api.invalid" + "\x19\x2b");
    proxy->say({"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50", 10});
    EXPECT_TRUE(proxy->request().starts_with("GET /base/a HTTP/1.1\r\n"));
    proxy->say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(answer(std::move(got)).code, 200);
}

// What a stream tells, for the test's thread.
struct Heard {
    std::promise<int> head;
    std::promise<std::string> first;
    std::promise<std::string> end;
    std::atomic<bool> said = false;
    std::unique_ptr<WireStream> stream;

    StreamSink sink(bool go_on) {
        return {[this](int code) { head.set_value(code); },
                [this, go_on](std::string_view bytes) {
                    if (!said.exchange(true)) first.set_value(std::string(bytes));
                    return go_on;
                },
                [this](const std::string& trouble) { end.set_value(trouble); }};
    }
};

TEST_F(HttpWire, AStreamComesAsItIsSaid) {
    Heard heard;
    on_loop([&] { heard.stream = wire_->open({"GET", "/watch"}, 20s, heard.sink(true)); });
    const auto peer = listener_.accept();
    peer->request();
    peer->say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    EXPECT_EQ(heard.head.get_future().get(), 200);
    peer->say("5\r\nline\n\r\n");
    EXPECT_EQ(heard.first.get_future().get(), "line\n");
    peer->say("0\r\n\r\n");
    EXPECT_EQ(heard.end.get_future().get(), "");
    EXPECT_EQ(peer->request(), "") << "a stream's connection is not for others";
    on_loop([&] { heard.stream.reset(); });
}

TEST_F(HttpWire, AStreamThatFallsSilentEnds) {
    Heard heard;
    on_loop([&] { heard.stream = wire_->open({"GET", "/watch"}, 1s, heard.sink(true)); });
    const auto peer = listener_.accept();
    peer->request();
    peer->say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nline\n\r\n");
    EXPECT_TRUE(heard.end.get_future().get().ends_with("nothing came for too long"));
    on_loop([&] { heard.stream.reset(); });
}

TEST_F(HttpWire, ADroppedStreamIsClosedAndSilent) {
    Heard heard;
    on_loop([&] { heard.stream = wire_->open({"GET", "/watch"}, 20s, heard.sink(false)); });
    const auto peer = listener_.accept();
    peer->request();
    peer->say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nline\n\r\n");
    heard.first.get_future().get();
    on_loop([&] { heard.stream.reset(); });
    EXPECT_EQ(peer->request(), "");
}

}  // namespace
}  // namespace berth::link
