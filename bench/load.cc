#include "bench/load.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

namespace berth::bench {

BenchPlace::BenchPlace(const std::string& data_dir) {
    const std::string base = data_dir.empty() ? std::filesystem::temp_directory_path().string() : data_dir;
    path_ = fmt::format("{}/berth-bench-{}", base, base::system_clock().now().nanos);
}

BenchPlace::~BenchPlace() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

Result<BenchFlock> connect_to(const std::string& url, const std::string& data_dir, size_t count) {
    const auto port = static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
    return BenchFlock::connect(port, data_dir + "/pki", count);
}

Result<Latencies> run_load(BenchFlock& flock, const Load& load) {
    const auto now = [] { return base::system_clock().now(); };
    Latencies latencies;
    std::vector<base::Instant> since(flock.size());
    int64_t next = 0;
    int64_t done = 0;
    const auto send_next = [&](size_t connection) -> Status {
        if (next == load.total) return {};
        const std::string request = load.request(next);
        since[connection] = now();
        if (load.sent) load.sent(next);
        ++next;
        return flock.send(connection, request);
    };
    for (size_t i = 0; i < flock.size(); ++i) TRY(send_next(i));
    while (done < load.total) {
        TRY(flock.poll(1000, [&](size_t connection, std::string& text) -> Status {
            const auto answer = take_answer(text);
            if (!answer) return {};
            if (answer->code != load.code) return base::internal(fmt::format("{}: {}", answer->code, answer->body));
            latencies.add(now() - since[connection]);
            ++done;
            return send_next(connection);
        }));
    }
    return latencies;
}

std::string pod_text(const std::string& name) {
    return fmt::format(
        R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","labels":{{"app":"bench"}}}},"spec":{{"containers":[)"
        R"({{"name":"main","image":"nginx:1.25","ports":[{{"containerPort":80}}],"env":[{{"name":"A","value":"b"}}],)"
        R"("resources":{{"requests":{{"cpu":"100m","memory":"500Mi"}},"limits":{{"memory":"1Gi"}}}}}}]}}}})",
        name);
}

}  // namespace berth::bench
