#include "api/pki.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "api/authn.h"
#include "api/credentials.h"
#include "api/files.h"
#include "base/private_file.h"

namespace berth::api {
namespace {

const base::Time kNow = base::system_clock().wall();

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
    const auto first = open_pki(directory.path, {"localhost", "127.0.0.1"}, kNow);
    ASSERT_TRUE(first.ok()) << first.error().message;
    const auto second = open_pki(directory.path, {"localhost", "127.0.0.1"}, kNow);
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(first->ca_pem, second->ca_pem);
    EXPECT_EQ(first->server.certificate_pem, second->server.certificate_pem);
    EXPECT_EQ(first->admin_token, second->admin_token);
    struct stat info{};
    ASSERT_EQ(::stat((directory.path + "/ca.key").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST(Pki, TheServersCertificateIsIssuedAgainAMonthBeforeItsEnd) {
    const Directory directory;
    const auto after = [](int days) { return kNow + std::chrono::hours(24 * days); };
    const auto first = open_pki(directory.path, {"localhost"}, kNow);
    const auto early = open_pki(directory.path, {"localhost"}, after(334));
    const auto late = open_pki(directory.path, {"localhost"}, after(336));
    ASSERT_TRUE(first.ok() && early.ok() && late.ok());
    EXPECT_EQ(first->server.certificate_pem, early->server.certificate_pem);
    EXPECT_NE(first->server.certificate_pem, late->server.certificate_pem);
    EXPECT_EQ(first->ca_pem, late->ca_pem) << "it is good for ten years";
    const auto later = open_pki(directory.path, {"localhost"}, after(336 + 334));
    ASSERT_TRUE(later.ok());
    EXPECT_EQ(late->server.certificate_pem, later->server.certificate_pem) << "good for a year from then";
}

TEST(Pki, ANewHostGetsANewServerCertificateOfTheSameAuthority) {
    const Directory directory;
    const auto first = open_pki(directory.path, {"localhost"}, kNow);
    const auto second = open_pki(directory.path, {"localhost", "10.1.2.3"}, kNow);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(first->ca_pem, second->ca_pem);
    EXPECT_EQ(first->admin.certificate_pem, second->admin.certificate_pem);
    EXPECT_NE(first->server.certificate_pem, second->server.certificate_pem);
}

TEST(Pki, AKeyThatOthersMayReadIsRefused) {
    const Directory directory;
    ASSERT_TRUE(open_pki(directory.path, {"localhost"}, kNow).ok());
    for (const auto* file : {"ca.key", "server.key", "admin.key", "scheduler.key", "admin.token", "tokens"}) {
        const std::string path = directory.path + "/" + file;
        ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
        const auto opened = open_pki(directory.path, {"localhost"}, kNow);
        ASSERT_FALSE(opened.ok()) << file;
        EXPECT_NE(opened.error().message.find("chmod 600 " + path), std::string::npos) << opened.error().message;
        ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    }
    EXPECT_TRUE(open_pki(directory.path, {"localhost"}, kNow).ok());
    ASSERT_EQ(::chmod(directory.path.c_str(), 0770), 0);
    EXPECT_FALSE(open_pki(directory.path, {"localhost"}, kNow).ok()) << "who writes there brings keys of his own";
    ASSERT_EQ(::chmod(directory.path.c_str(), 0755), 0);
    EXPECT_TRUE(open_pki(directory.path, {"localhost"}, kNow).ok());
}

struct Asked : Directory {
    Asked() : clock(base::system_clock().wall()) {
        EXPECT_TRUE(base::make_private_directory(path).ok());
        credentials = *Credentials::open(path, clock, {});
    }
    void write(const std::string& rows) { EXPECT_TRUE(write_private_file(path + "/tokens", rows).ok()); }
    std::optional<Identity> ask(const std::string& authorization) {
        Request request;
        if (!authorization.empty()) request.headers = {{"authorization", authorization}};
        return Authenticator(credentials).identify(request);
    }
    base::ManualClock clock;
    std::shared_ptr<Credentials> credentials;
};

TEST(Authn, KnowsTokensByTheirHashFromTheMomentTheyAreWritten) {
    Asked t;
    EXPECT_EQ(t.ask("")->user, "system:anonymous");
    EXPECT_FALSE(t.ask("Bearer secret"));
    t.write("# comment\n" + sha256_hex("secret") + " ann system:masters,other\n");
    EXPECT_EQ(t.ask("Bearer secret")->user, "ann");
    EXPECT_TRUE(t.ask("Bearer secret")->in("system:masters"));
    EXPECT_FALSE(t.ask("Bearer wrong"));
    EXPECT_FALSE(t.ask("Basic secret"));
    t.write("nonsense\n" + sha256_hex("other") + " bob\n");
    EXPECT_FALSE(t.ask("Bearer secret"));
    EXPECT_EQ(t.ask("Bearer other")->user, "bob");
    EXPECT_FALSE(Credentials::open(t.path, t.clock).ok());
    std::filesystem::remove(t.path + "/tokens");
    EXPECT_FALSE(t.ask("Bearer other"));
    Request bad;
    bad.bad_certificate = true;
    EXPECT_FALSE(Authenticator(t.credentials).identify(bad));
}

TEST(Authn, WhatRootWritesIsTheDirectorysOwners) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
    Asked t;
    ASSERT_EQ(::chown(t.path.c_str(), 65534, 65534), 0);
    t.write(sha256_hex("secret") + " ann\n");
    struct stat info{};
    ASSERT_EQ(::stat((t.path + "/tokens").c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, 65534U);
}

// A directory in the place of the file: it cannot be read, and is tried again with every question.
TEST(Authn, AFileThatCannotBeReadLeavesThingsAsTheyWere) {
    Asked t;
    t.write(sha256_hex("secret") + " ann\n");
    EXPECT_TRUE(t.ask("Bearer secret"));
    std::filesystem::create_directory(t.path + "/revoked");
    t.write(sha256_hex("other") + " bob\n");
    EXPECT_TRUE(t.ask("Bearer secret"));
    EXPECT_FALSE(t.ask("Bearer other"));
    std::filesystem::remove(t.path + "/revoked");
    EXPECT_FALSE(t.ask("Bearer secret"));
    EXPECT_TRUE(t.ask("Bearer other"));
}

TEST(Authn, TokensEnd) {
    Asked t;
    const TokenRow row{sha256_hex("t"), "ann", {"a", "b"}, t.clock.wall(), t.clock.wall() + std::chrono::hours(1), ""};
    ASSERT_TRUE(write_token_rows(t.path, {row}).ok());
    const auto who = t.ask("Bearer t");
    ASSERT_TRUE(who);
    EXPECT_TRUE(t.credentials->still_accepts(*who));
    t.clock.advance(std::chrono::minutes(61));
    EXPECT_FALSE(t.ask("Bearer t"));
    EXPECT_FALSE(t.credentials->still_accepts(*who));
    EXPECT_TRUE(t.credentials->still_accepts(scheduler_identity()));
}

TEST(Authn, ATokenOfAFileGoesWithTheFile) {
    Asked t;
    const auto pki = open_pki(t.path, {"localhost"}, kNow);
    ASSERT_TRUE(pki.ok());
    EXPECT_TRUE(t.ask("Bearer " + pki->admin_token)->in("system:masters"));
    std::filesystem::remove(t.path + "/admin.token");
    EXPECT_FALSE(t.ask("Bearer " + pki->admin_token));
    const auto again = open_pki(t.path, {"localhost"}, kNow);
    ASSERT_TRUE(again.ok());
    EXPECT_NE(again->admin_token, pki->admin_token);
    EXPECT_FALSE(t.ask("Bearer " + pki->admin_token));
    EXPECT_TRUE(t.ask("Bearer " + again->admin_token));
    EXPECT_EQ(read_token_rows(t.path)->size(), 1U);
}

TEST(Authn, WhatAnEarlierVersionLeftForAnAdminTokenGoes) {
    Asked t;
    t.write(sha256_hex("old") + " berth-admin system:masters\n" + sha256_hex("mine") + " ann system:masters\n");
    ASSERT_TRUE(open_pki(t.path, {"localhost"}, kNow).ok());
    EXPECT_FALSE(t.ask("Bearer old"));
    EXPECT_TRUE(t.ask("Bearer mine"));
}

TEST(Authn, RevokedCertificatesAreRefused) {
    Asked t;
    const auto wall = t.clock.wall(), later = wall + std::chrono::hours(24);
    const auto peer = [&](const std::string& user, const std::string& serial, base::Time from) {
        return PeerCertificate{user, {}, serial, from, later};
    };
    EXPECT_TRUE(t.credentials->accepts(peer("ann", "1A", wall)));
    EXPECT_FALSE(t.credentials->accepts({"ann", {}, "1A", wall, wall}));
    ASSERT_TRUE(write_revocations(t.path, {{false, "1A", wall}, {true, "bob", wall}}).ok());
    EXPECT_FALSE(t.credentials->accepts(peer("ann", "1A", wall)));
    EXPECT_TRUE(t.credentials->accepts(peer("ann", "1B", wall)));
    EXPECT_FALSE(t.credentials->accepts(peer("bob", "2", wall + -std::chrono::hours(1))));
    EXPECT_TRUE(t.credentials->accepts(peer("bob", "3", wall)));
}

TEST(Pki, ARevokedClientGetsANewCertificate) {
    const Directory directory;
    const auto first = open_pki(directory.path, {"localhost"}, kNow);
    ASSERT_TRUE(first.ok());
    ASSERT_TRUE(issue_client(directory.path, "system:node:n1", {"system:nodes"}, 1, kNow).ok());
    const auto known = client_certificates(directory.path);
    ASSERT_EQ(known->size(), 3U);
    EXPECT_EQ(known->at(2).says.common_name, "system:node:n1");
    EXPECT_EQ(known->at(2).file, "issued/" + known->at(2).says.serial + ".crt");
    ASSERT_TRUE(write_revocations(directory.path, {{true, "berth-admin", base::system_clock().wall()}}).ok());
    const auto second = open_pki(directory.path, {"localhost"}, kNow);
    ASSERT_TRUE(second.ok());
    EXPECT_NE(first->admin.certificate_pem, second->admin.certificate_pem);
    EXPECT_EQ(first->scheduler.certificate_pem, second->scheduler.certificate_pem);
    EXPECT_FALSE(revoked(*read_revocations(directory.path), client_certificates(directory.path)->at(0).says));
}

}  // namespace
}  // namespace berth::api
