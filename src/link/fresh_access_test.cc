#include "link/fresh_access.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "link/test_folder.h"

namespace berth::link {
namespace {

using namespace std::chrono_literals;

constexpr const char* kTokenFile = R"(current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: 'https://x'}}]
users: [{name: a, user: {tokenFile: token}}]
)";
constexpr const char* kPluginUser = R"(current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: 'https://x'}}]
users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}}}]
)";
// Prints what the file `says` has as its status.
constexpr const char* kSays =
    R"(echo "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":$(cat says)}")";

bool refreshed(FreshAccess& fresh) {
    bool out = false;
    fresh.refresh([&](bool changed) { out = changed; });
    return out;
}

TEST(FreshAccess, RotatedFilesTakeEffect) {
    const TestFolder folder;
    folder.write("token", "old");
    base::ManualClock clock;
    auto fresh = FreshAccess::open({.kubeconfig = folder.write("config", kTokenFile)}, clock).value();
    folder.write("token", "new");
    clock.advance(9s);
    EXPECT_EQ(fresh.get().token, "old");
    clock.advance(1s);
    EXPECT_EQ(fresh.get().token, "new");
    std::filesystem::remove(folder.path + "/token");
    EXPECT_FALSE(refreshed(fresh));
    EXPECT_EQ(fresh.get().token, "new");
    folder.write("token", "newer");
    EXPECT_TRUE(refreshed(fresh));
    EXPECT_EQ(fresh.get().token, "newer");
}

TEST(FreshAccess, TheTokenOfAPodIsReadAgain) {
    const TestFolder folder;
    folder.write("token", "old");
    folder.write("ca.crt", "CA");
    ::unsetenv("KUBECONFIG");
    ::setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
    base::ManualClock clock;
    auto fresh = FreshAccess::open({.service_account = folder.path}, clock).value();
    folder.write("token", "new");
    clock.advance(10s);
    EXPECT_EQ(fresh.get().token, "new");
    folder.write("token", "newer");
    EXPECT_TRUE(refreshed(fresh));
    ::unsetenv("KUBERNETES_SERVICE_HOST");
}

// The plugin is run for real at the start; later the test is the one who runs it.
class FreshCredential : public testing::Test {
protected:
    FreshCredential() {
        folder_.script("plugin", kSays);
        folder_.write("says", R"({"token":"first","expirationTimestamp":"2026-11-18T10:15:00Z"})");
        clock_.jump_wall(base::Duration(1'794'996'000'000'000'000));  // 2026-11-18T10:00:00Z
        const auto config = folder_.write("config", kPluginUser);
        fresh_ = std::make_unique<FreshAccess>(FreshAccess::open({.kubeconfig = config}, clock_).value());
        fresh_->run_plugins_by([this](const ExecPlugin& plugin, std::function<void(Result<Credential>)> done) {
            EXPECT_EQ(done_, nullptr) << "two at once";
            ran_.push_back(plugin.command);
            done_ = std::move(done);
        });
    }
    void ends_with(Result<Credential> what) { std::exchange(done_, nullptr)(std::move(what)); }
    Credential until(const std::string& token, base::Duration left) { return {token, "", "", clock_.wall() + left}; }

    TestFolder folder_;
    base::ManualClock clock_;
    std::unique_ptr<FreshAccess> fresh_;
    std::vector<std::string> ran_;
    std::function<void(Result<Credential>)> done_;
};

TEST_F(FreshCredential, IsRenewedBeforeItExpires) {
    EXPECT_EQ(fresh_->get().token, "first");
    clock_.advance(14min - 1s);
    EXPECT_EQ(fresh_->get().token, "first");
    EXPECT_TRUE(ran_.empty());
    clock_.advance(1s);
    EXPECT_EQ(fresh_->get().token, "first") << "nobody waits for it";
    EXPECT_EQ(ran_.size(), 1u);
    fresh_->get();
    EXPECT_EQ(ran_.size(), 1u);
    ends_with(until("second", 20s));
    EXPECT_EQ(fresh_->get().token, "second");
    clock_.advance(15s);
    fresh_->get();
    EXPECT_EQ(ran_.size(), 1u);
    clock_.advance(1s);
    fresh_->get();
    EXPECT_EQ(ran_.size(), 2u) << "a fifth of a short life before its end";
}

TEST_F(FreshCredential, AFailureKeepsTheOldOneAndIsTriedAgainLater) {
    clock_.advance(14min);
    fresh_->get();
    ends_with(base::bad_request("no"));
    EXPECT_EQ(fresh_->get().token, "first");
    clock_.advance(9s);
    fresh_->get();
    EXPECT_EQ(ran_.size(), 1u);
    clock_.advance(1s);
    fresh_->get();
    EXPECT_EQ(ran_.size(), 2u);
    ends_with(until("over", -1s));
    EXPECT_EQ(fresh_->get().token, "over") << "the server's clock decides";
    clock_.advance(9s);
    fresh_->get();
    EXPECT_EQ(ran_.size(), 2u);
}

TEST_F(FreshCredential, OneRunServesAllWhoWereRefused) {
    std::vector<bool> told;
    const auto tell = [&](bool changed) { told.push_back(changed); };
    for (int i = 0; i < 3; ++i) fresh_->refresh(tell);
    EXPECT_EQ(ran_.size(), 1u);
    EXPECT_TRUE(told.empty());
    ends_with(Credential{"second", "", "", {}});
    EXPECT_EQ(told, (std::vector<bool>{true, true, true}));
    fresh_->refresh(tell);  // its request went out before
    EXPECT_EQ(ran_.size(), 1u);
    EXPECT_EQ(told.size(), 4u);
    clock_.advance(1s);
    fresh_->refresh(tell);
    EXPECT_EQ(ran_.size(), 2u);
    ends_with(Credential{"second", "", "", {}});
    EXPECT_EQ(told, (std::vector<bool>{true, true, true, true, false})) << "the same again";
}

TEST_F(FreshCredential, AnotherUserInTheFileCountsWhenItsCredentialIsThere) {
    std::string text = kPluginUser;
    text.replace(text.find("./plugin"), 8, "other");
    folder_.write("config", text);
    clock_.advance(10s);
    EXPECT_EQ(fresh_->get().token, "first");
    EXPECT_EQ(ran_, (std::vector<std::string>{"other"}));
    ends_with(Credential{"others", "", "", {}});
    EXPECT_EQ(fresh_->get().token, "others");
    folder_.write("token", "plain");
    folder_.write("config", kTokenFile);
    clock_.advance(10s);
    EXPECT_EQ(fresh_->get().token, "plain");
    clock_.advance(1h);
    fresh_->get();
    EXPECT_EQ(ran_.size(), 1u);
}

TEST(FreshAccess, AStartWithoutACredentialFails) {
    const TestFolder folder;
    folder.script("plugin", "echo 'log in first' >&2; exit 1");
    const auto opened = FreshAccess::open({.kubeconfig = folder.write("config", kPluginUser)}, base::system_clock());
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.error().message.find("ended with 1: log in first"), std::string::npos) << opened.error().message;
}

}  // namespace
}  // namespace berth::link
