#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <future>
#include <map>

#include "link/http_wire.h"
#include "link/wire_test.h"

namespace berth::link {
namespace {

using namespace std::chrono_literals;
using SslContext = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

int choose_http2(SSL*, const unsigned char** out, unsigned char* size, const unsigned char*, unsigned, void*) {
    *out = reinterpret_cast<const unsigned char*>("h2");
    *size = 2;
    return SSL_TLSEXT_ERR_OK;
}

// With a certificate that nobody vouches for.
SslContext server_context(bool http2) {
    SslContext context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_sign(certificate, key, EVP_sha256());
    SSL_CTX_use_certificate(context.get(), certificate);
    SSL_CTX_use_PrivateKey(context.get(), key);
    X509_free(certificate);
    EVP_PKEY_free(key);
    if (http2) SSL_CTX_set_alpn_select_cb(context.get(), choose_http2, nullptr);
    return context;
}

struct Asked {
    int32_t id = 0;
    std::map<std::string, std::string> fields;
    std::string body;
    std::string at(const std::string& name) const { return fields.contains(name) ? fields.at(name) : ""; }
};

// The server's end of one connection. Blocks: the test's thread is the server.
class Http2Peer {
public:
    Http2Peer(int fd, SSL_CTX* context) : fd_(fd), ssl_(SSL_new(context)) {
        const timeval patience{20, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        SSL_set_fd(ssl_, fd_);
        EXPECT_EQ(SSL_accept(ssl_), 1);
        nghttp2_session_callbacks* calls = nullptr;
        nghttp2_session_callbacks_new(&calls);
        nghttp2_session_callbacks_set_on_header_callback(
            calls, [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size, uint8_t, void* self) {
                static_cast<Http2Peer*>(self)->open_[frame->hd.stream_id].fields.emplace(
                    std::string(name, name + name_size), std::string(value, value + value_size));
                return 0;
            });
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
            calls, [](nghttp2_session*, uint8_t, int32_t id, const uint8_t* bytes, size_t size, void* self) {
                static_cast<Http2Peer*>(self)->open_[id].body.append(bytes, bytes + size);
                return 0;
            });
        nghttp2_session_callbacks_set_on_frame_recv_callback(
            calls, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
                static_cast<Http2Peer*>(self)->on_frame(*frame);
                return 0;
            });
        nghttp2_session_server_new(&session_, calls, this);
        nghttp2_session_callbacks_del(calls);
        nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
        say();
    }
    ~Http2Peer() {
        nghttp2_session_del(session_);
        SSL_free(ssl_);
        ::close(fd_);
    }
    Http2Peer(const Http2Peer&) = delete;
    Http2Peer& operator=(const Http2Peer&) = delete;

    // The next whole request; id 0 when the client has gone.
    Asked asked() {
        while (whole_.empty() && hear()) {
        }
        if (whole_.empty()) return {};
        Asked out = std::move(whole_.front());
        whole_.pop_front();
        return out;
    }
    // Which request the client gave up next.
    int32_t given_up() {
        while (reset_ == 0 && hear()) {
        }
        return std::exchange(reset_, 0);
    }
    void answer(int32_t id, const std::string& code, std::string body) {
        const auto text = [](std::string_view of) {
            return const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(of.data()));
        };
        const nghttp2_nv fields[] = {{text(":status"), text(code), 7, code.size(), NGHTTP2_NV_FLAG_NONE},
                                     {text("retry-after"), text("7"), 11, 1, NGHTTP2_NV_FLAG_NONE}};
        std::string& kept = bodies_.emplace_back(std::move(body));
        const nghttp2_data_provider provider{{.ptr = &kept},
                                             [](nghttp2_session*, int32_t, uint8_t* out, size_t most, uint32_t* flags,
                                                nghttp2_data_source* source, void*) {
                                                 auto& left = *static_cast<std::string*>(source->ptr);
                                                 const size_t size = left.copy(reinterpret_cast<char*>(out), most);
                                                 left.erase(0, size);
                                                 if (left.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
                                                 return static_cast<ssize_t>(size);
                                             }};
        nghttp2_submit_response(session_, id, fields, 2, &provider);
        say();
    }
    void end(int32_t id, uint32_t why) {
        nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, why);
        say();
    }
    void go_away(int32_t last) {
        nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, nullptr, 0);
        say();
    }

private:
    void on_frame(const nghttp2_frame& frame) {
        if (frame.hd.type == NGHTTP2_RST_STREAM) reset_ = frame.hd.stream_id;
        const bool part = frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA;
        if (!part || (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return;
        whole_.push_back(std::move(open_[frame.hd.stream_id]));
        whole_.back().id = frame.hd.stream_id;
    }
    bool hear() {
        uint8_t block[16384];
        const int size = SSL_read(ssl_, block, sizeof(block));
        if (size <= 0) return false;
        nghttp2_session_mem_recv(session_, block, static_cast<size_t>(size));
        say();
        return true;
    }
    void say() {
        const uint8_t* bytes = nullptr;
        for (ssize_t size = 0; (size = nghttp2_session_mem_send(session_, &bytes)) > 0;) {
            SSL_write(ssl_, bytes, static_cast<int>(size));
        }
    }

    int fd_;
    SSL* ssl_;
    nghttp2_session* session_ = nullptr;
    std::map<int32_t, Asked> open_;
    std::deque<Asked> whole_;
    std::deque<std::string> bodies_;
    int32_t reset_ = 0;
};

class Http2 : public WireTest {
protected:
    Http2() : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        const timeval patience{20, 0};
        ::setsockopt(listener_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
        EXPECT_EQ(::listen(listener_, 16), 0);
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
        Access access;
        access.host = "127.0.0.1";
        access.port = std::to_string(ntohs(address.sin_port));
        access.path = "/base";
        access.server_name = access.host;
        access.skip_verify = true;
        access.token = "t0ken";
        wire_ = http_wire(std::move(access)).value();
    }
    ~Http2() override {
        wire_->stop();
        ::close(listener_);
    }
    int accept() const { return ::accept(listener_, nullptr, nullptr); }
    std::unique_ptr<Http2Peer> peer() { return std::make_unique<Http2Peer>(accept(), context_.get()); }

    SslContext context_ = server_context(true);
    int listener_;
};

TEST_F(Http2, ManyRequestsShareAConnection) {
    auto first = call({"POST", "/a?b=c", "body", "application/json"});
    auto second = call({"GET", "/d"});
    const auto server = peer();
    // What has no body is whole first.
    const Asked get = server->asked();
    const Asked post = server->asked();
    EXPECT_EQ(post.at(":method"), "POST");
    EXPECT_EQ(post.at(":path"), "/base/a?b=c");
    EXPECT_EQ(post.at("authorization"), "Bearer t0ken");
    EXPECT_EQ(post.at("content-type"), "application/json");
    EXPECT_EQ(post.body, "body");
    EXPECT_EQ(get.at(":path"), "/base/d");
    server->answer(get.id, "200", std::string(3 << 20, 'x'));
    EXPECT_EQ(answer(std::move(second)).body.size(), 3u << 20);
    server->answer(post.id, "429", "busy");
    const auto busy = answer(std::move(first));
    EXPECT_EQ(busy.code, 429);
    EXPECT_EQ(busy.body, "busy");
    EXPECT_EQ(busy.retry_after, 7s);
}

TEST_F(Http2, SaysWhetherARequestMayHaveArrived) {
    auto refused = call({"POST", "/refused", "x"});
    auto broken = call({"POST", "/broken", "x"});
    auto cut = call({"POST", "/cut", "x"});
    {
        const auto server = peer();
        server->end(server->asked().id, NGHTTP2_REFUSED_STREAM);
        server->end(server->asked().id, NGHTTP2_INTERNAL_ERROR);
        EXPECT_FALSE(trouble(std::move(refused)).sent);
        EXPECT_TRUE(trouble(std::move(broken)).sent);
        EXPECT_EQ(server->asked().at(":path"), "/base/cut");
    }
    EXPECT_TRUE(trouble(std::move(cut)).sent);
}

TEST_F(Http2, AServerThatGoesAwayIsLeftInGoodOrder) {
    auto taken = call({"POST", "/taken", "x"});
    auto late = call({"POST", "/late", "x"});
    const auto old = peer();
    const int32_t id = old->asked().id;
    EXPECT_EQ(old->asked().at(":path"), "/base/late");
    old->go_away(id);
    EXPECT_FALSE(trouble(std::move(late)).sent);
    auto next = call({"GET", "/next"});
    const auto fresh = peer();
    fresh->answer(fresh->asked().id, "200", "new");
    EXPECT_EQ(answer(std::move(next)).body, "new");
    old->answer(id, "200", "old");
    EXPECT_EQ(answer(std::move(taken)).body, "old");
}

TEST_F(Http2, OnlyWhatIsOverdueIsGivenUp) {
    auto slow = call({"GET", "/slow"}, 1s);
    auto other = call({"GET", "/other"});
    const auto server = peer();
    const int32_t slow_id = server->asked().id;
    const int32_t other_id = server->asked().id;
    // Something is heard after the slow one began.
    auto quick = call({"GET", "/quick"});
    server->answer(server->asked().id, "200", "quick");
    EXPECT_EQ(answer(std::move(quick)).body, "quick");
    const auto why = trouble(std::move(slow));
    EXPECT_TRUE(why.sent);
    EXPECT_TRUE(why.what.ends_with("/base: the answer took too long")) << why.what;
    EXPECT_EQ(server->given_up(), slow_id);
    server->answer(other_id, "200", "there");
    EXPECT_EQ(answer(std::move(other)).body, "there");
}

TEST_F(Http2, ASilentConnectionIsGivenUpWhole) {
    auto before = call({"GET", "/before"});
    const auto server = peer();
    server->answer(server->asked().id, "200", "");
    answer(std::move(before));
    auto slow = call({"POST", "/slow", "x"}, 1s);
    auto other = call({"POST", "/other", "x"});
    server->asked();
    server->asked();
    EXPECT_TRUE(trouble(std::move(slow)).sent);
    EXPECT_TRUE(trouble(std::move(other)).sent);
    EXPECT_EQ(server->asked().id, 0) << "the connection stayed open";
}

TEST_F(Http2, AnAnswerMayBeTooLarge) {
    WireRequest request{"GET", "/a"};
    request.most_body = 10;
    auto large = call(std::move(request));
    const auto server = peer();
    server->answer(server->asked().id, "200", "more than ten bytes");
    EXPECT_NE(trouble(std::move(large)).what.find("larger than 10 bytes"), std::string::npos);
}

TEST_F(Http2, AServerWithoutItIsAskedTheOldWay) {
    context_ = server_context(false);
    auto first = call({"GET", "/a"});
    // Over the connection that was made to offer it.
    SSL* ssl = SSL_new(context_.get());
    const int fd = accept();
    SSL_set_fd(ssl, fd);
    EXPECT_EQ(SSL_accept(ssl), 1);
    char block[4096];
    const int size = SSL_read(ssl, block, sizeof(block));
    EXPECT_TRUE(
        std::string_view(block, static_cast<size_t>(std::max(size, 0))).starts_with("GET /base/a HTTP/1.1\r\n"));
    constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold";
    SSL_write(ssl, kAnswer.data(), static_cast<int>(kAnswer.size()));
    EXPECT_EQ(answer(std::move(first)).body, "old");
    SSL_free(ssl);
    ::close(fd);
}

}  // namespace
}  // namespace berth::link
