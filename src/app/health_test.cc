#include "app/health.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace berth::app {
namespace {

api::Request scrape(std::string address, std::string host, std::string authorization = {}) {
    api::Request out;
    out.method = "GET";
    out.path = "/metrics";
    out.address = std::move(address);
    out.headers.emplace_back("host", std::move(host));
    if (!authorization.empty()) out.headers.emplace_back("authorization", std::move(authorization));
    return out;
}

TEST(Health, NumbersAreForThisMachineAndForTheTokensBearer) {
    const std::string file = testing::TempDir() + "metrics-token";
    std::ofstream(file) << "secret\n";
    EXPECT_TRUE(may_read_metrics(scrape("127.0.0.1", "127.0.0.1:10259"), ""));
    EXPECT_TRUE(may_read_metrics(scrape("::1", "[::1]:10259"), ""));
    EXPECT_TRUE(may_read_metrics(scrape("127.0.0.1", "localhost:10259"), ""));
    EXPECT_FALSE(may_read_metrics(scrape("127.0.0.1", "rebound.example:10259"), ""));
    EXPECT_FALSE(may_read_metrics(scrape("10.1.2.3", "10.9.9.9:10259"), ""));
    EXPECT_FALSE(may_read_metrics(scrape("10.1.2.3", "10.9.9.9:10259", "Bearer secret"), ""));
    EXPECT_FALSE(may_read_metrics(scrape("10.1.2.3", "10.9.9.9:10259"), file));
    EXPECT_FALSE(may_read_metrics(scrape("10.1.2.3", "10.9.9.9:10259", "Bearer secre"), file));
    EXPECT_FALSE(may_read_metrics(scrape("10.1.2.3", "10.9.9.9:10259", "Basic secret"), file));
    EXPECT_TRUE(may_read_metrics(scrape("10.1.2.3", "berth-scheduler.berth-system.svc:10259", "Bearer secret"), file));
    std::ofstream(file) << "";
    EXPECT_FALSE(may_read_metrics(scrape("10.1.2.3", "10.9.9.9:10259", "Bearer "), file));
    std::filesystem::remove(file);
}

TEST(Health, AnybodyWhoReachesItMayAskForHealth) {
    base::Metrics metrics;
    std::string why;
    const HealthServer health(metrics, [&] { return why; });
    auto request = scrape("10.1.2.3", "10.9.9.9:10259");
    EXPECT_EQ(health.answer(request).status, 401);
    for (const auto* path : {"/healthz", "/livez", "/readyz"}) {
        request.path = path;
        EXPECT_EQ(health.answer(request).status, 200) << path;
    }
    why = "not yet";
    EXPECT_EQ(health.answer(request).status, 500);
}

}  // namespace
}  // namespace berth::app
