#include "link/exec_plugin.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "base/json.h"
#include "base/yaml.h"
#include "link/program.h"
#include "link/test_folder.h"

namespace berth::link {
namespace {

ExecPlugin plugin_of(const std::string& yaml) {
    return read_exec_plugin(base::parse_yaml(yaml).value().front()).value();
}

ExecPlugin script(const TestFolder& folder, const std::string& text) {
    ExecPlugin out;
    out.command = folder.script("plugin", text);
    out.api_version = "client.authentication.k8s.io/v1";
    out.input = ExecPlugin::Input::Never;
    return out;
}

std::string error_of(const Result<Credential>& came) {
    return came ? "none" : came.error().message;
}

// As `aws eks update-kubeconfig`, `gcloud container clusters get-credentials` and `kubelogin convert-kubeconfig` write.
TEST(ExecPlugin, ReadsTheFormsOfTheClouds) {
    const auto eks = plugin_of(R"(
apiVersion: client.authentication.k8s.io/v1beta1
args: [--region, eu-west-1, eks, get-token, --cluster-name, prod, --output, json]
command: aws
env:
- {name: AWS_PROFILE, value: work}
interactiveMode: IfAvailable
provideClusterInfo: false
)");
    EXPECT_EQ(eks.command, "aws");
    EXPECT_EQ(eks.args.size(), 8u);
    EXPECT_EQ(eks.env, (decltype(eks.env){{"AWS_PROFILE", "work"}}));
    const auto gke = plugin_of(R"(
apiVersion: client.authentication.k8s.io/v1beta1
command: gke-gcloud-auth-plugin
installHint: Install gke-gcloud-auth-plugin for use with kubectl
provideClusterInfo: true
)");
    EXPECT_TRUE(gke.wants_cluster);
    EXPECT_EQ(gke.input, ExecPlugin::Input::IfAvailable);
    EXPECT_EQ(gke.install_hint, "Install gke-gcloud-auth-plugin for use with kubectl");
    const auto aks = plugin_of(R"(
apiVersion: client.authentication.k8s.io/v1
args: [get-token, --login, azurecli, --server-id, 6dae42f8-4368-4678-94ff-3960e28e3630]
command: kubelogin
env: null
interactiveMode: Never
provideClusterInfo: false
)");
    EXPECT_EQ(aks.input, ExecPlugin::Input::Never);
    EXPECT_EQ(aks.args[3], "--server-id");
}

TEST(ExecPlugin, SaysWhatIsWrongInTheKubeconfig) {
    const auto error = [](const std::string& yaml) {
        const auto read = read_exec_plugin(base::parse_yaml(yaml).value().front());
        return read ? "none" : read.error().message;
    };
    EXPECT_EQ(error("{args: []}"), "user.exec.command is missing");
    EXPECT_EQ(error("{command: x, apiVersion: client.authentication.k8s.io/v1alpha1}"),
              "user.exec.apiVersion \"client.authentication.k8s.io/v1alpha1\" is neither "
              "client.authentication.k8s.io/v1 nor client.authentication.k8s.io/v1beta1");
    EXPECT_EQ(error("{command: x, apiVersion: client.authentication.k8s.io/v1}"),
              "user.exec.interactiveMode \"\" is not one of Never, IfAvailable, Always");
    EXPECT_EQ(error("{command: x, apiVersion: client.authentication.k8s.io/v1, args: [1]}"),
              "user.exec.args: 1 is not a string");
    EXPECT_EQ(error("{command: x, apiVersion: client.authentication.k8s.io/v1, env: [{value: 1}]}"),
              "user.exec.env: an entry has no name");
}

TEST(ExecPlugin, IsTakenAtItsWord) {
    const TestFolder folder;
    const auto came = run_exec_plugin(script(folder, R"(cat <<END
{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t","clientCertificateData":"C",
 "clientKeyData":"K","expirationTimestamp":"2026-11-18T10:00:00Z"}}
END
)"));
    ASSERT_TRUE(came.ok()) << came.error().message;
    EXPECT_EQ(came->token, "t");
    EXPECT_EQ(came->certificate_pem, "C");
    EXPECT_EQ(came->key_pem, "K");
    EXPECT_EQ(came->expires->nanos, 1'794'996'000'000'000'000);
}

// What a plugin sees: its words as they stand, without a shell; our environment with its own before it; nothing to
// read; none of our files; the signals of a fresh process.
TEST(ExecPlugin, SeesWhatKubectlWouldShowIt) {
    const TestFolder folder;
    auto plugin = script(folder, R"(
printf '%s|' "$@" > seen; printf '%s' "$BERTH_TEST$HOME" >> seen; printf '%s' "$KUBERNETES_EXEC_INFO" > info
cat > read; ls /proc/self/fd | tr '\n' ' ' > files; grep SigBlk /proc/self/status > signals
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}')");
    plugin.args = {"$HOME", "a b", ";false"};
    plugin.env = {{"BERTH_TEST", "yes"}, {"HOME", "/nowhere"}};
    plugin.wants_cluster = true;
    plugin.cluster = R"({"server":"https://x"})";
    std::ofstream ours(folder.path + "/ours");  // a file that is open in this process
    sigset_t blocked, before;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
    const auto came = run_exec_plugin(plugin);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ASSERT_TRUE(came.ok()) << came.error().message;
    EXPECT_EQ(folder.text("seen"), "$HOME|a b|;false|yes/nowhere");
    EXPECT_EQ(folder.text("info"), R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{)"
                                   R"("cluster":{"server":"https://x"},"interactive":false}})");
    EXPECT_TRUE(base::parse_json(folder.text("info")).ok());
    EXPECT_EQ(folder.text("read"), "");
    EXPECT_EQ(folder.text("files"), "0 1 2 3 ") << "3 is the folder that ls reads";
    EXPECT_EQ(folder.text("signals"), "SigBlk:\t0000000000000000\n");
}

TEST(ExecPlugin, SaysWhyItFailed) {
    const TestFolder folder;
    const auto failing = script(folder, "echo first >&2; echo 'Your session has expired' >&2; exit 3");
    EXPECT_EQ(error_of(run_exec_plugin(failing)),
              "user.exec: \"" + failing.command + "\" ended with 3: Your session has expired");
    ExecPlugin missing = failing;
    missing.command = "berth-no-such-plugin";
    missing.install_hint = "See https://example.com\nRun install-it";
    EXPECT_EQ(error_of(run_exec_plugin(missing)),
              "user.exec: \"berth-no-such-plugin\" cannot be run: No such file or directory; "
              "See https://example.com Run install-it");
    ExecPlugin asks = failing;
    asks.input = ExecPlugin::Input::Always;
    EXPECT_NE(error_of(run_exec_plugin(asks)).find("interactiveMode Always, and standard input is not a terminal"),
              std::string::npos);
    const auto printed = [&](const std::string& what) {
        const std::string error = error_of(run_exec_plugin(script(folder, "echo '" + what + "'")));
        return error.substr(error.find("printed"));
    };
    EXPECT_TRUE(printed("hello").starts_with("printed is no JSON: "));
    EXPECT_EQ(printed(R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"})"),
              "printed is ExecCredential client.authentication.k8s.io/v1beta1, not ExecCredential "
              "client.authentication.k8s.io/v1");
    const auto status = [&](const std::string& of) {
        return printed(R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":)" + of +
                       "}");
    };
    EXPECT_EQ(status("{}"), "printed has neither a token nor a client certificate");
    EXPECT_EQ(status(R"({"token":"t","clientKeyData":"K"})"),
              "printed has only one of status.clientCertificateData and status.clientKeyData");
    EXPECT_TRUE(status(R"({"token":"t","expirationTimestamp":"soon"})").starts_with("printed has a bad status.exp"));
}

TEST(Program, ThatHangsIsEndedWithWhatItStarted) {
    const TestFolder folder;
    const auto command = folder.script("hangs", "sleep 1000 & echo $! > child; exec sleep 1000");
    const auto ended = run_program({.command = command, .most = std::chrono::milliseconds(500)});
    ASSERT_FALSE(ended.ok());
    EXPECT_EQ(ended.error().message, "\"" + command + "\" did not end within 500ms");
    const pid_t child = std::stoi(folder.text("child"));
    while (::kill(child, 0) == 0) ::usleep(1000);  // it is reaped by init; the test's limit is the bound
}

TEST(Program, ThatFloodsIsEnded) {
    const TestFolder folder;
    const auto command = folder.script("floods", "exec cat /dev/zero");
    const auto ended = run_program({.command = command, .most_output = 100'000});
    ASSERT_FALSE(ended.ok());
    EXPECT_EQ(ended.error().message, "\"" + command + "\" printed more than 100000 bytes");
    // Errors are kept in part, and hold nobody up.
    const auto talks = folder.script("talks", "head -c 10000000 /dev/zero >&2; echo done");
    const auto talked = run_program({.command = talks});
    ASSERT_TRUE(talked.ok()) << talked.error().message;
    EXPECT_EQ(talked->output, "done\n");
    EXPECT_EQ(talked->errors.size(), 4096u);
}

TEST(Program, IsDoneWhenItEndsWhoeverKeepsItsOutput) {
    const TestFolder folder;
    const auto command = folder.script("leaves", "sleep 1000 & echo $! > child; echo out; kill -TERM $$");
    const auto ended = run_program({.command = command});
    ::kill(std::stoi(folder.text("child")), SIGKILL);
    ASSERT_TRUE(ended.ok()) << ended.error().message;
    EXPECT_EQ(ended->output, "out\n");
    EXPECT_EQ(ended->code, 128 + SIGTERM);
}

}  // namespace
}  // namespace berth::link
