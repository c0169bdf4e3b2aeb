#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/http.h"
#include "api/pki.h"

namespace berth::api {
namespace {

struct Hello {
    const char* groups = "X25519";
    const char* suites = nullptr;  // of TLS 1.2, which is then the newest offered
};

class TlsTest : public testing::Test {
protected:
    TlsTest() {
        const auto serving =
            issue_serving("test", {"127.0.0.1"}, std::chrono::hours(1), base::system_clock().wall()).value();
        HttpOptions options;
        options.threads = 1;
        options.tls = TlsKeys{serving.pair.certificate_pem, serving.pair.key_pem, serving.ca_pem};
        server_ = std::make_unique<HttpServer>(options, [](Request, Responder responder) { responder.respond({}); });
        port_ = server_->start().value();
    }

    // The group that was agreed on, or "" when the server refused.
    std::string greet(const Hello& hello) const {
        SSL_CTX* context = SSL_CTX_new(TLS_client_method());
        EXPECT_EQ(SSL_CTX_set1_groups_list(context, hello.groups), 1);
        if (hello.suites != nullptr) {
            SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
            EXPECT_EQ(SSL_CTX_set_cipher_list(context, hello.suites), 1);
        }
        const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port_);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
        SSL* ssl = SSL_new(context);
        SSL_set_fd(ssl, fd);
        std::string agreed;
        if (SSL_connect(ssl) == 1) agreed = OBJ_nid2sn(static_cast<int>(SSL_get_negotiated_group(ssl)));
        SSL_free(ssl);
        ::close(fd);
        SSL_CTX_free(context);
        return agreed;
    }

private:
    std::unique_ptr<HttpServer> server_;
    uint16_t port_ = 0;
};

TEST_F(TlsTest, ServesCheapGroupsOnly) {
    EXPECT_EQ(greet({"X25519"}), "X25519");
    EXPECT_EQ(greet({"P-256"}), "prime256v1");
    EXPECT_EQ(greet({"P-384"}), "secp384r1");
    for (const auto* dear : {"ffdhe2048", "ffdhe4096", "ffdhe8192", "P-521", "X448"}) {
        EXPECT_EQ(greet({dear}), "") << dear;
    }
    EXPECT_EQ(greet({"ffdhe8192:X25519"}), "X25519");
}

TEST_F(TlsTest, ServesAuthenticatedEncryptionOnly) {
    constexpr const char* kCurves = "X25519:P-256";  // the certificate's among them
    EXPECT_NE(greet({kCurves, "ECDHE-ECDSA-AES128-GCM-SHA256"}), "");
    EXPECT_NE(greet({kCurves, "ECDHE-ECDSA-CHACHA20-POLY1305"}), "");
    for (const auto* old :
         {"ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384", "DHE-RSA-AES128-GCM-SHA256", "AES128-GCM-SHA256"}) {
        EXPECT_EQ(greet({kCurves, old}), "") << old;
    }
}

}  // namespace
}  // namespace berth::api
