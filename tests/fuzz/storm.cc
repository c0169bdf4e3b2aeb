#include <cstdio>
#include <cstdlib>
#include <map>

#include "hostile_requests.h"

// http_storm PORT COUNT SEED [AUTHORIZATION]: so many hostile requests to a server on loopback. What it answered, by
// status; fails at a 5xx, at what is no HTTP, and when nobody listens any more.
int main(int argc, char** argv) {
    if (argc < 4) return 2;
    const auto port = static_cast<uint16_t>(std::atoi(argv[1]));
    const long count = std::atol(argv[2]);
    berth::fuzz::HostileRequests requests(std::strtoull(argv[3], nullptr, 10), argc > 4 ? argv[4] : "");
    std::map<std::string, long> told;
    int failed = 0;
    for (long i = 0; i < count && failed < 10; ++i) {
        const auto request = requests.next();
        const auto answer = berth::fuzz::tell(port, request);
        const auto wrong = answer.connected ? berth::fuzz::wrong_with(answer.bytes) : "nobody listens";
        ++told[answer.bytes.empty() ? "closed" : answer.bytes.substr(9, 3)];
        if (wrong.empty()) continue;
        ++failed;
        std::printf("FAILED: request %ld: %s\n%.600s\n%.300s\n", i, wrong.c_str(), request.bytes.c_str(),
                    answer.bytes.c_str());
    }
    for (const auto& [status, times] : told) std::printf("%s: %ld\n", status.c_str(), times);
    return failed > 0 ? 1 : 0;
}
