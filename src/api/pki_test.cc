#include "api/pki.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "api/authn.h"

namespace berth::api {
namespace {

struct Directory {
    Directory() {
        char name[] = "/tmp/berth-pki-XXXXXX";
        path = std::string(::mkdtemp(name)) + "/pki";
    }
    ~Directory() { std::filesystem::remove_all(std::filesystem::path(path).parent_path()); }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    std::string path;
};

TEST(Pki, StaysTheSameOverRestarts) {
    const Directory directory;
    const auto first = open_pki(directory.path, {"localhost", "127.0.0.1"});
    ASSERT_TRUE(first.ok()) << first.error().message;
    const auto second = open_pki(directory.path, {"localhost", "127.0.0.1"});
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(first->ca_pem, second->ca_pem);
    EXPECT_EQ(first->server.certificate_pem, second->server.certificate_pem);
    EXPECT_EQ(first->admin_token, second->admin_token);
    struct stat info{};
    ASSERT_EQ(::stat((directory.path + "/ca.key").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST(Pki, ANewHostGetsANewServerCertificateOfTheSameAuthority) {
    const Directory directory;
    const auto first = open_pki(directory.path, {"localhost"});
    const auto second = open_pki(directory.path, {"localhost", "10.1.2.3"});
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(first->ca_pem, second->ca_pem);
    EXPECT_EQ(first->admin.certificate_pem, second->admin.certificate_pem);
    EXPECT_NE(first->server.certificate_pem, second->server.certificate_pem);
}

TEST(Authn, KnowsTokensByTheirHash) {
    const auto known =
        Authenticator::from_token_rows("# comment\n" + sha256_hex("secret") + " ann system:masters,other\n");
    ASSERT_TRUE(known.ok());
    Request request;
    EXPECT_EQ(known->identify(request)->user, "system:anonymous");
    request.headers = {{"authorization", "Bearer secret"}};
    EXPECT_EQ(known->identify(request)->user, "ann");
    EXPECT_TRUE(known->identify(request)->in("system:masters"));
    request.headers = {{"authorization", "Bearer wrong"}};
    EXPECT_FALSE(known->identify(request));
    request.headers = {};
    request.bad_certificate = true;
    EXPECT_FALSE(known->identify(request));
    EXPECT_FALSE(Authenticator::from_token_rows("nonsense").ok());
}

}  // namespace
}  // namespace berth::api
