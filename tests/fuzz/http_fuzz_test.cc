#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "api/test_front.h"
#include "hostile_requests.h"

// Hostile requests over loopback for some seconds, to a door that reads every body and to the front door with an
// administrator behind it: each is answered with HTTP that is no 5xx, or the connection is closed; nothing is left
// behind. SEED and FUZZ_SECONDS choose.
namespace berth::api {
namespace {

uint64_t number_in(const char* name, uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

HttpOptions one_thread() {
    HttpOptions out;
    out.threads = 1;
    return out;
}

void echo(Request request, Responder responder) {
    Response out;
    out.body = std::move(request.body);
    responder.respond(std::move(out));
}

// What a test waits for comes within a few seconds, or never.
template <class Condition>
bool comes(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::yield();
    }
    return true;
}

void expect_quiet(HttpServer& server) {
    const auto counters = server.counters();
    EXPECT_EQ(counters->exceptions, 0u);
    EXPECT_TRUE(comes([&] { return counters->connections == 0 && counters->held == 0; }))
        << counters->connections << " connections, " << counters->held << " bytes";
}

TEST(HttpFuzz, HostileRequestsAreAnsweredOrCutOff) {
    const uint64_t seed = number_in("SEED", std::random_device{}());
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(number_in("FUZZ_SECONDS", 10));
    std::printf("SEED=%llu\n", static_cast<unsigned long long>(seed));
    TestFront stage;
    const auto admin = std::make_shared<PeerCertificate>(stage.peer);
    HttpServer plain(one_thread(), echo);
    HttpServer front(one_thread(), [&](Request request, Responder responder) {
        request.peer = admin;
        stage.front.handle(std::move(request), std::move(responder));
    });
    stage.front.set_wake([&] { front.wake(); });
    const std::array ports{plain.start().value(), front.start().value()};
    fuzz::HostileRequests requests(seed);
    size_t count = 0;
    for (; std::chrono::steady_clock::now() < end; ++count) {
        const auto request = requests.next();
        const auto told = fuzz::tell(ports[count % 2], request);
        ASSERT_TRUE(told.connected) << "request " << count << " of seed " << seed;
        ASSERT_EQ(fuzz::wrong_with(told.bytes), "") << "request " << count << " of seed " << seed << ":\n"
                                                    << request.bytes.substr(0, 1000) << "\n"
                                                    << told.bytes.substr(0, 1000);
    }
    std::printf("%zu requests\n", count);
    expect_quiet(plain);
    expect_quiet(front);
    front.stop();
    stage.front.set_wake([] {});
}

}  // namespace
}  // namespace berth::api
