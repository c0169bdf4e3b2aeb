#include "app/webhook_run.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include "link/http_wire.h"
#include "run/scripted_server.h"

namespace berth::app {
namespace {

using namespace std::chrono_literals;

// Moved by the test, read by the thread under test.
class MovedClock final : public base::Clock {
public:
    base::Instant now() const override { return {nanos_}; }
    base::Time wall() const override { return {nanos_}; }
    void advance(base::Duration by) { nanos_ += by.count(); }

private:
    std::atomic<int64_t> nanos_ = 1'000'000'000;
};

uint16_t free_port() {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    ::close(fd);
    return ntohs(address.sin_port);
}

std::string pod(const std::string& name, const std::string& node = "") {
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid"}},"spec":{{"nodeName":"{1}",)"
        R"("containers":[{{"name":"a","resources":{{"requests":{{"cpu":"1"}}}}}}]}}}})",
        name, node);
}

std::string pod_with_claim(const std::string& name, const std::string& node = "") {
    return fmt::format(
        R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid"}},"spec":{{"nodeName":"{1}",)"
        R"("volumes":[{{"name":"v","persistentVolumeClaim":{{"claimName":"one"}}}}],"containers":[{{"name":"a"}}]}}}})",
        name, node);
}

// A node of 4 cpus of which a reservation holds 3, and two pods of 1 that wait.
class WebhookRunTest : public testing::Test {
protected:
    WebhookRunTest() {
        script_->has("nodes", R"({"metadata":{"name":"n1","uid":"n1-uid"},)"
                              R"("status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"10"}}})");
        script_->has("reservations",
                     R"({"metadata":{"name":"r","uid":"r-uid"},"spec":{"owners":[{"labelSelector":{"matchLabels":)"
                     R"({"app":"web"}}}],"template":{"spec":{"containers":[{"name":"a","resources":{"requests":)"
                     R"({"cpu":"3"}}}]}}},"status":{"phase":"Available","nodeName":"n1","allocatable":{"cpu":"3"}}})");
        script_->has("pods", pod("a"));
        script_->has("pods", pod("b"));
        script_->has("pods", pod_with_claim("first"));
        script_->has("pods", pod_with_claim("second"));
        script_->has("persistentvolumeclaims", R"({"metadata":{"name":"one","namespace":"default","uid":"one-uid"},)"
                                               R"("spec":{"accessModes":["ReadWriteOncePod"]}})");
        const uint16_t port = free_port();
        link::Access access;
        access.host = access.server_name = "127.0.0.1";
        access.port = std::to_string(port);
        access.skip_verify = true;
        wire_ = link::http_wire(std::move(access)).value();
        WebhookOptions options;
        options.address = {"127.0.0.1", port};
        run_ = std::make_unique<WebhookRun>(script_->server(), options, clock_);
        // It listens when it has said where.
        script_->take("PATCH", "/apis/admissionregistration.k8s.io/", {200, "{}", 0});
    }
    ~WebhookRunTest() override {
        wire_->stop();
        script_->answer_all({200, "{}", 0});
        run_.reset();
    }

    bool allowed(const std::string& name) {
        std::promise<link::WireResult> answered;
        wire_->loop().post([&] {
            const auto body =
                fmt::format(R"({{"request":{{"uid":"u","namespace":"default","object":{{"metadata":{{"name":"{}"}},)"
                            R"("target":{{"kind":"Node","name":"n1"}}}}}}}})",
                            name);
            wire_->call({"POST", "/bindings", body, "application/json"}, 20s,
                        [&](link::WireResult result) { answered.set_value(std::move(result)); });
        });
        const auto result = answered.get_future().get();
        const auto* answer = std::get_if<link::WireAnswer>(&result);
        EXPECT_TRUE(answer != nullptr && answer->code == 200);
        return answer != nullptr && answer->body.find(R"("allowed":true)") != std::string::npos;
    }

    std::shared_ptr<run::Script> script_ = std::make_shared<run::Script>();
    MovedClock clock_;
    std::unique_ptr<link::Wire> wire_;
    std::unique_ptr<WebhookRun> run_;
};

TEST_F(WebhookRunTest, RoomOfABindingThatWasNeverMadeIsGivenBackByAReadOfThePod) {
    EXPECT_TRUE(allowed("a"));
    EXPECT_FALSE(allowed("b")) << "its room was just given away";
    clock_.advance(66s);
    script_->take("GET", "/api/v1/namespaces/default/pods/a", {500, "", 0});
    EXPECT_FALSE(allowed("b")) << "no answer says nothing";
    EXPECT_FALSE(allowed("b"));  // asked in a later round than the one that took the answer
    clock_.advance(6s);
    script_->take("GET", "/api/v1/namespaces/default/pods/a", {200, pod("a"), 2});
    while (!allowed("b")) {  // the answer is on its way
    }
    EXPECT_FALSE(allowed("a"));
}

TEST_F(WebhookRunTest, RoomOfABindingThatWasMadeIsKept) {
    EXPECT_TRUE(allowed("a"));
    clock_.advance(66s);
    script_->take("GET", "/api/v1/namespaces/default/pods/a", {200, pod("a", "n1"), 2});
    EXPECT_FALSE(allowed("b"));
    clock_.advance(66s);
    EXPECT_FALSE(allowed("b"));
}

TEST_F(WebhookRunTest, APodThatIsGoneLeavesItsRoom) {
    EXPECT_TRUE(allowed("a"));
    EXPECT_FALSE(allowed("b"));
    clock_.advance(66s);
    script_->take("GET", "/api/v1/namespaces/default/pods/a", {404, "{}", 0});
    while (!allowed("b")) {
    }
}

TEST_F(WebhookRunTest, AClaimForOnePodIsGivenOnce) {
    EXPECT_TRUE(allowed("first"));
    EXPECT_FALSE(allowed("second"));
}

}  // namespace
}  // namespace berth::app
