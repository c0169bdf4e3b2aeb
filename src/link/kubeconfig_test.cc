#include "link/kubeconfig.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/json.h"
#include "link/test_folder.h"

namespace berth::link {
namespace {

namespace fs = std::filesystem;

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
    const TestFolder folder;
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
    const TestFolder folder;
    folder.write("token", "secret\n");
    const auto access = read_access({.kubeconfig = folder.write("config", kTwoContexts), .context = "two"});
    ASSERT_TRUE(access.ok()) << access.error().message;
    EXPECT_EQ(access->url(), "http://[::1]:8080");
    EXPECT_FALSE(access->tls);
    EXPECT_TRUE(access->skip_verify);
    EXPECT_EQ(access->token, "secret");
    EXPECT_EQ(access->ns, "default");
}

TEST(Kubeconfig, SaysWhatIsWrong) {
    const TestFolder folder;
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
              "config: user.exec.apiVersion \"\" is neither client.authentication.k8s.io/v1 nor "
              "client.authentication.k8s.io/v1beta1");
    EXPECT_EQ(error(with_user("{exec: {command: aws}, token: t}")),
              "config: user.exec and user.token exclude each other");
    for (const std::string field : {"as", "username", "auth-provider", "as-user-extra"}) {
        EXPECT_EQ(
            error(with_user("{" + field + ": root}")),
            "config: user." + field + " is not supported: use a client certificate, a token, a tokenFile or exec");
    }
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
    const TestFolder folder;
    folder.write("token", "pod-token\n");
    folder.write("ca.crt", "POD-CA");
    folder.write("namespace", "kube-system");
    ::unsetenv("KUBECONFIG");
    ::setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
    ::setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    const auto access = read_access({.service_account = folder.path});
    ::setenv("HOME", folder.path.c_str(), 1);
    const auto elsewhere = read_access({.context = "two", .service_account = folder.path});
    ::unsetenv("KUBERNETES_SERVICE_HOST");
    EXPECT_EQ(elsewhere.error().message, "cannot read " + folder.path + "/.kube/config: No such file or directory")
        << "a service account has no contexts";
    ASSERT_TRUE(access.ok()) << access.error().message;
    EXPECT_EQ(access->url(), "https://10.96.0.1:443");
    EXPECT_EQ(access->token, "pod-token");
    EXPECT_EQ(access->ca_pem, "POD-CA");
    EXPECT_EQ(access->ns, "kube-system");
}

// What is in the first file counts; of an entry nothing is taken from a later one; a file that is not there is left
// out; paths begin at the file that says them.
TEST(Kubeconfig, SeveralFilesAreMergedAsKubectlDoes) {
    const TestFolder folder;
    folder.write("b/token", "of-b");
    folder.write("c/token", "of-c");
    folder.write("b/ca.pem", "CA-B");
    folder.write("a/config",
                 "contexts: [{name: one, context: {cluster: near, user: me}}]\n"
                 "clusters: [{name: near, cluster: {server: 'https://a'}}]\n");
    folder.write("b/config",
                 "current-context: one\n"
                 "contexts: [{name: one, context: {cluster: far, user: you}}, {name: two, context: {cluster: far, "
                 "user: me, namespace: of-b}}]\n"
                 "clusters: [{name: near, cluster: {server: 'https://b', certificate-authority: ca.pem}}, {name: far, "
                 "cluster: {server: 'https://b:1', certificate-authority: ca.pem}}]\n"
                 "users: [{name: me, user: {tokenFile: token}}]\n");
    folder.write("c/config", "current-context: two\nusers: [{name: me, user: {tokenFile: token}}]\n");
    const auto file = [&](const std::string& name) { return folder.path + "/" + name + "/config"; };
    const auto read = [&](const std::string& list, const std::string& context = "") {
        ::setenv("KUBECONFIG", list.c_str(), 1);
        auto access = read_access({.context = context});
        ::unsetenv("KUBECONFIG");
        return access;
    };
    const auto all = read(":" + file("a") + ":" + file("none") + ":" + file("b") + ":" + file("c")).value();
    EXPECT_EQ(all.url(), "https://a:443");
    EXPECT_EQ(all.ca_pem, "");
    EXPECT_EQ(all.token, "of-b");
    const auto other = read(file("c") + ":" + file("b")).value();
    EXPECT_EQ(other.url(), "https://b:1");
    EXPECT_EQ(other.ca_pem, "CA-B");
    EXPECT_EQ(other.token, "of-c");
    EXPECT_EQ(other.ns, "of-b");
    EXPECT_EQ(read(file("a") + ":" + file("b"), "two")->url(), "https://b:1");
    EXPECT_EQ(read(file("x") + ":" + file("y")).error().message,
              "KUBECONFIG=" + file("x") + ":" + file("y") + ": no such file");
    EXPECT_EQ(read(file("a") + ":" + file("b"), "three").error().message,
              "KUBECONFIG=" + file("a") + ":" + file("b") + ": contexts has no entry named \"three\"");
}

constexpr const char* kPlugin = R"(current-context: one
clusters:
- name: c1
  cluster:
    server: https://api.example.com:6443
    certificate-authority-data: Q0E=
    proxy-url: http://proxy:3128
    extensions:
    - name: client.authentication.k8s.io/exec
      extension: {audience: "06e3fbd18de8"}
contexts:
- {name: one, context: {cluster: c1, user: u1}}
users:
- name: u1
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/plugin, interactiveMode: Never, provideClusterInfo: true}
)";

TEST(Kubeconfig, APluginStandsBesideItsFileAndIsToldTheCluster) {
    const TestFolder folder;
    const auto config = folder.write("config", kPlugin, 0644);
    const auto access = read_access({.kubeconfig = config});
    ASSERT_TRUE(access.ok()) << access.error().message;
    ASSERT_TRUE(access->exec);
    EXPECT_EQ(fs::path(access->exec->command).lexically_normal(), folder.path + "/bin/plugin");
    EXPECT_EQ(base::parse_json(access->exec->cluster).value(), base::parse_json(R"({
        "server":"https://api.example.com:6443","certificate-authority-data":"Q0E=","proxy-url":"http://proxy:3128",
        "config":{"audience":"06e3fbd18de8"}})")
                                                                   .value());
    EXPECT_EQ(access->proxy->url(), "http://proxy:3128");
    // Who can change the file can have anything run.
    fs::permissions(config, fs::perms::group_write, fs::perm_options::add);
    const auto refused = read_access({.kubeconfig = config});
    EXPECT_NE(refused.error().message.find("run chmod go-w " + config), std::string::npos) << refused.error().message;
}

TEST(Kubeconfig, AProxyThatCannotBeUsedIsRefused) {
    const TestFolder folder;
    std::string text = kPlugin;
    text.replace(text.find("http://proxy"), 12, "https://proxy");
    const auto config = folder.write("config", text);
    EXPECT_EQ(read_access({.kubeconfig = config}).error().message,
              config + ": proxy-url is a proxy with TLS of its own, which is not supported");
}

// Whoever reads the key of another is the other.
TEST(Kubeconfig, SecretsThatOthersMayReadAreRefused) {
    const TestFolder folder;
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
