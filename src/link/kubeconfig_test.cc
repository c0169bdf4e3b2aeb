#include "link/kubeconfig.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace berth::link {
namespace {

namespace fs = std::filesystem;

// A folder for one test.
struct Folder {
    Folder() {
        char name[] = "/tmp/berth-kubeconfig-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~Folder() { fs::remove_all(path); }
    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(path + "/" + name) << text;
        fs::permissions(path + "/" + name, fs::perms::owner_read | fs::perms::owner_write);
        return path + "/" + name;
    }
    std::string path;
};

constexpr const char* kTwoContexts = R"(apiVersion: v1
kind: Config
current-context: one
clusters:
- name: c1
  cluster:
    server: https://api.example.com:6443/prefix/
    certificate-authority-data: Q0E=
    tls-server-name: inner
- name: c2
  cluster: {server: "http://[::1]:8080", insecure-skip-tls-verify: true}
contexts:
- name: one
  context: {cluster: c1, user: u1, namespace: here}
- name: two
  context: {cluster: c2, user: u2}
users:
- name: u1
  user: {client-certificate: cert.pem, client-key-data: S0VZ}
- name: u2
  user: {tokenFile: token}
)";

TEST(Kubeconfig, ReadsTheCurrentContext) {
    const Folder folder;
    folder.write("cert.pem", "CERT");
    const auto access = read_access({.kubeconfig = folder.write("config", kTwoContexts)});
    ASSERT_TRUE(access.ok()) << access.error().message;
    EXPECT_EQ(access->url(), "https://api.example.com:6443/prefix");
    EXPECT_EQ(access->server_name, "inner");
    EXPECT_EQ(access->ca_pem, "CA");
    EXPECT_EQ(access->certificate_pem, "CERT");
    EXPECT_EQ(access->key_pem, "KEY");
    EXPECT_EQ(access->ns, "here");
    EXPECT_FALSE(access->skip_verify);
}

TEST(Kubeconfig, ReadsANamedContextAndItsTokenFile) {
    const Folder folder;
    folder.write("token", "secret\n");
    const auto access = read_access({.kubeconfig = folder.write("config", kTwoContexts), .context = "two"});
    ASSERT_TRUE(access.ok()) << access.error().message;
    EXPECT_EQ(access->url(), "http://[::1]:8080");
    EXPECT_FALSE(access->tls);
    EXPECT_TRUE(access->skip_verify);
    EXPECT_EQ(access->token, "secret");
    EXPECT_EQ(access->ns, "default");
}

TEST(Kubeconfig, RotatedFilesTakeEffect) {
    const Folder folder;
    folder.write("token", "old");
    const AccessOptions options{.kubeconfig = folder.write("config", kTwoContexts), .context = "two"};
    auto fresh = FreshAccess::open(options, {}).value();
    folder.write("token", "new");
    EXPECT_EQ(fresh.get(base::Instant{} + std::chrono::seconds(9)).token, "old");
    EXPECT_EQ(fresh.get(base::Instant{} + std::chrono::seconds(10)).token, "new");
    fs::remove(folder.path + "/token");
    EXPECT_FALSE(fresh.refresh(base::Instant{} + std::chrono::seconds(11)));
    EXPECT_EQ(fresh.get(base::Instant{} + std::chrono::seconds(12)).token, "new");
}

TEST(Kubeconfig, SaysWhatIsWrong) {
    const Folder folder;
    const auto error = [&](const std::string& text, const std::string& context = "") {
        const auto access = read_access({.kubeconfig = folder.write("config", text), .context = context});
        return access.ok() ? "fine" : access.error().message.substr(folder.path.size() + 1);
    };
    const auto with_user = [](const std::string& user) {
        return "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
               "clusters: [{name: a, cluster: {server: 'https://x'}}]\nusers: [{name: a, user: " +
               user + "}]\n";
    };
    EXPECT_EQ(error(with_user("{exec: {command: aws}}")),
              "config: user.exec is not supported: use a client certificate, a token or a tokenFile");
    EXPECT_EQ(error(with_user("{as: root}")),
              "config: user.as is not supported: use a client certificate, a token or a tokenFile");
    EXPECT_EQ(error(with_user("{client-key-data: S0VZ}")),
              "config: client-certificate and client-key must be given together");
    EXPECT_EQ(error(with_user("{client-key-data: '***'}")), "config: client-key-data is not base64");
    EXPECT_EQ(error(with_user("{token: t}"), "b"), "config: contexts has no entry named \"b\"");
    EXPECT_EQ(error("[]"), "config: this is not a kubeconfig");
    EXPECT_EQ(error("kind: Config"), "config: current-context is empty, and no --context was given");
    for (const auto* url : {"x:1", "https://", "https://h:99999", "https://h:x", "https://[::1", "ftp://h"}) {
        EXPECT_EQ(error(std::string("current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"
                                    "clusters: [{name: a, cluster: {server: '") +
                        url + "'}}]\n"),
                  std::string("config: server \"") + url + "\" is not http(s)://HOST[:PORT][/PATH]");
    }
}

TEST(Kubeconfig, APodHasItsServiceAccount) {
    const Folder folder;
    folder.write("token", "pod-token\n");
    folder.write("ca.crt", "POD-CA");
    folder.write("namespace", "kube-system");
    ::unsetenv("KUBECONFIG");
    ::setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
    ::setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    const auto access = read_access({.service_account = folder.path});
    ::unsetenv("KUBERNETES_SERVICE_HOST");
    ASSERT_TRUE(access.ok()) << access.error().message;
    EXPECT_EQ(access->url(), "https://10.96.0.1:443");
    EXPECT_EQ(access->token, "pod-token");
    EXPECT_EQ(access->ca_pem, "POD-CA");
    EXPECT_EQ(access->ns, "kube-system");
}

// Whoever reads the key of another is the other.
TEST(Kubeconfig, SecretsThatOthersMayReadAreRefused) {
    const Folder folder;
    folder.write("cert.pem", "CERT");
    const auto token = folder.write("token", "secret");
    const auto config = folder.write("config", kTwoContexts);
    const auto error = [&](const std::string& context) {
        const auto access = read_access({.kubeconfig = config, .context = context});
        return access ? "" : access.error().message;
    };
    fs::permissions(token, fs::perms::others_read, fs::perm_options::add);
    EXPECT_NE(error("two").find("run chmod 600 " + token), std::string::npos) << error("two");
    fs::permissions(token, fs::perms::others_read, fs::perm_options::remove);
    EXPECT_EQ(error("two"), "");
    fs::permissions(config, fs::perms::others_read, fs::perm_options::add);
    EXPECT_EQ(error("two"), "");
    EXPECT_NE(error("one").find("run chmod 600 " + config), std::string::npos) << error("one");
}

}  // namespace
}  // namespace berth::link
