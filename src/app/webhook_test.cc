#include "app/webhook.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "link/http_wire.h"
#include "run/scripted_server.h"
#include "run/webhook_driver.h"

namespace berth::app {
namespace {

using namespace std::chrono_literals;

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

// Over TLS, as an API server asks: nodes that hold nothing are open.
TEST(Webhook, AnswersOnItsPort) {
    const auto script = std::make_shared<run::Script>();
    const uint16_t port = free_port();
    link::Access access;
    access.host = access.server_name = "127.0.0.1";
    access.port = std::to_string(port);
    access.skip_verify = true;
    const auto wire = link::http_wire(std::move(access)).value();
    const auto make = [&](run::WebhookJudge::Doors doors, std::string path) {
        return std::make_unique<run::WebhookDriver>(
            std::move(doors), run::WebhookOptions{.host = "127.0.0.1", .port = port, .path = std::move(path)});
    };
    Webhook webhook(script->server(), {"127.0.0.1", port, "/bindings"}, make, base::system_clock());
    // It listens when it has said where.
    const auto told = script->take("PATCH", "/apis/admissionregistration.k8s.io/", {200, "{}", 0}).body;
    const auto begin = told.find("/bindings");
    const std::string secret = told.substr(begin, told.find('"', begin) - begin);
    EXPECT_GT(secret.size(), 64u) << told;
    const auto ask = [&](const std::string& method, const std::string& path) {
        std::promise<link::WireResult> answered;
        wire->loop().post([&] {
            const auto* body = R"({"request":{"uid":"u","object":{"target":{"kind":"Node","name":"n1"}}}})";
            wire->call({method, path + "?timeout=5s", body, "application/json"}, 20s,
                       [&](link::WireResult result) { answered.set_value(std::move(result)); });
        });
        return std::get<link::WireAnswer>(answered.get_future().get());
    };
    const auto allowed = ask("POST", secret);
    EXPECT_EQ(allowed.code, 200);
    EXPECT_NE(allowed.body.find(R"("allowed":true)"), std::string::npos) << allowed.body;
    EXPECT_EQ(ask("PUT", secret).code, 405);
    EXPECT_EQ(ask("POST", "/bindings").code, 404) << "who does not know the path is not answered";
    EXPECT_EQ(ask("POST", std::string(secret.size(), '/')).code, 404);
    wire->stop();
    script->answer_all({200, "{}", 0});
}

}  // namespace
}  // namespace berth::app
