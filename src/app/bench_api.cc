#include "app/bench_api.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>

#include "app/bench_client.h"
#include "app/server.h"
#include "base/clock.h"
#include "cli/bench.h"
#include "cli/measure.h"

// The API server over TLS, with its clients in the same process: what they cost is part of the figures.
namespace berth::app {
namespace {

constexpr int kClients = 32;
constexpr std::string_view kPods = "/api/v1/namespaces/default/pods";
constexpr std::string_view kMaps = "/api/v1/namespaces/default/configmaps";

base::Instant now() {
    return base::system_clock().now();
}

double seconds(base::Duration span) {
    return std::chrono::duration<double>(span).count();
}

// A server on a directory of its own.
struct Stand {
    std::string directory;
    std::unique_ptr<Server> server;
    double ready_s = 0;

    static Result<Stand> make(const cli::BenchOptions& options) {
        std::signal(SIGPIPE, SIG_IGN);
        raise_file_limit();
        Stand out;
        const std::string base =
            options.data_dir.empty() ? std::filesystem::temp_directory_path().string() : options.data_dir;
        out.directory = fmt::format("{}/berth-bench-{}", base, now().nanos);
        ServerOptions settings;
        settings.data_dir = out.directory;
        settings.listen = "127.0.0.1:0";
        settings.in_memory = options.variant == "memory";
        const auto begin = now();
        out.server = TRY(Server::start(settings));
        out.ready_s = seconds(now() - begin);
        return out;
    }
    Stand() = default;
    Stand(Stand&&) = default;
    Stand& operator=(Stand&&) = default;
    ~Stand() {
        server.reset();
        if (!directory.empty()) std::filesystem::remove_all(directory);
    }

    Result<BenchClient> client() const {
        const auto& url = server->url();
        const auto port = static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
        return BenchClient::connect(port, directory + "/pki");
    }
};

std::string pod_text(const std::string& name) {
    return fmt::format(
        R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","labels":{{"app":"bench"}}}},"spec":{{"containers":[)"
        R"({{"name":"main","image":"nginx:1.25","ports":[{{"containerPort":80}}],"env":[{{"name":"A","value":"b"}}],)"
        R"("resources":{{"requests":{{"cpu":"100m","memory":"128Mi"}},"limits":{{"memory":"256Mi"}}}}}}]}}}})",
        name);
}

struct Round {
    int64_t count = 0;
    cli::Latencies latencies;
    std::optional<Error> trouble;
};

// Every client runs act(client, i) for its share of `total` numbers.
template <class Act>
Result<JsonObject> run_clients(const Stand& stand, int64_t total, Act act) {
    std::vector<BenchClient> clients;
    for (int i = 0; i < kClients; ++i) clients.push_back(TRY(stand.client()));
    std::atomic<int64_t> next{0};
    std::vector<Round> rounds(kClients);
    const auto begin = now();
    std::vector<std::thread> threads;
    for (int i = 0; i < kClients; ++i) {
        threads.emplace_back([&, i] {
            for (int64_t n = next++; n < total && !rounds[i].trouble; n = next++) {
                const auto before = now();
                if (auto done = act(clients[i], n); !done) rounds[i].trouble = done.error();
                rounds[i].latencies.add(now() - before);
                ++rounds[i].count;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    const double took = seconds(now() - begin);
    cli::Latencies all;
    for (const auto& round : rounds) {
        if (round.trouble) return *round.trouble;
        all.add(round.latencies);
    }
    return JsonObject{{"clients", kClients},
                      {"operations", total},
                      {"per_second", static_cast<double>(total) / took},
                      {"p50_us", all.percentile(50)},
                      {"p99_us", all.percentile(99)}};
}

Status expect(Result<BenchClient::Answer> answer, int code) {
    if (!answer) return answer.error();
    if (answer->code != code) return base::internal(fmt::format("{}: {}", answer->code, answer->body));
    return {};
}

Status make_pods(const Stand& stand, int64_t count) {
    auto made = run_clients(stand, count, [](BenchClient& client, int64_t n) {
        return expect(client.ask("POST", kPods, pod_text(fmt::format("pod-{}", n))), 201);
    });
    if (!made) return made.error();
    return {};
}

Result<JsonObject> api_start(const cli::BenchOptions& options) {
    const Stand stand = TRY(Stand::make(options));
    return JsonObject{{"ready_s", stand.ready_s}, {"rss_mb", cli::resident_mb()}};
}

Result<JsonObject> api_create(const cli::BenchOptions& options) {
    const Stand stand = TRY(Stand::make(options));
    return run_clients(stand, options.pods > 0 ? options.pods : 10'000, [](BenchClient& client, int64_t n) {
        return expect(client.ask("POST", kPods, pod_text(fmt::format("pod-{}", n))), 201);
    });
}

Result<JsonObject> api_get(const cli::BenchOptions& options) {
    const Stand stand = TRY(Stand::make(options));
    TRY(make_pods(stand, 100));
    return run_clients(stand, options.pods > 0 ? options.pods : 40'000, [](BenchClient& client, int64_t n) {
        return expect(client.ask("GET", fmt::format("{}/pod-{}", kPods, n % 100)), 200);
    });
}

Result<JsonObject> api_list(const cli::BenchOptions& options) {
    const Stand stand = TRY(Stand::make(options));
    TRY(make_pods(stand, 2000));
    return run_clients(stand, options.pods > 0 ? options.pods : 500, [](BenchClient& client, int64_t) {
        return expect(client.ask("GET", fmt::format("{}?resourceVersion=0", kPods)), 200);
    });
}

// The lag of the events in a stretch of a stream: each carries the instant of its write.
void note_lags(std::string& text, cli::Latencies& lags) {
    constexpr std::string_view kStamp = "\"stamp\":\"";
    const auto arrived = now();
    size_t at = 0;
    while ((at = text.find(kStamp, at)) != std::string::npos) {
        const auto end = text.find('"', at + kStamp.size());
        if (end == std::string::npos) break;
        const base::Instant sent{std::stoll(text.substr(at + kStamp.size(), end - at - kStamp.size()))};
        lags.add(arrived - sent);
        at = end;
    }
    text.erase(0, at == std::string::npos ? text.size() : at);
}

// 500 writes a second for three seconds, told to a thousand watches; every twentieth measures.
Result<JsonObject> api_watch(const cli::BenchOptions& options) {
    const Stand stand = TRY(Stand::make(options));
    const int64_t watches = options.nodes > 0 ? options.nodes : 1000;
    std::vector<BenchClient> clients;
    for (int64_t i = 0; i < watches; ++i) {
        clients.push_back(TRY(stand.client()));
        TRY(clients.back().open_stream(fmt::format("{}?watch=1", kMaps)));
    }
    std::vector<cli::Latencies> lags(clients.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < clients.size(); ++i) {
        threads.emplace_back([&, i] {
            std::string text;
            while (clients[i].read(text)) {
                if (i % 20 == 0)
                    note_lags(text, lags[i]);
                else
                    text.clear();
            }
        });
    }
    BenchClient writer = TRY(stand.client());
    const int64_t writes = options.pods > 0 ? options.pods : 1500;
    const auto begin = now();
    for (int64_t n = 0; n < writes; ++n) {
        std::this_thread::sleep_until(std::chrono::steady_clock::time_point(
            std::chrono::nanoseconds((begin + n * std::chrono::milliseconds(2)).nanos)));
        TRY(expect(
            writer.ask("POST", kMaps,
                       fmt::format(R"({{"metadata":{{"name":"m-{}"}},"data":{{"stamp":"{}"}}}})", n, now().nanos)),
            201));
    }
    const double took = seconds(now() - begin);
    std::this_thread::sleep_for(std::chrono::seconds(1));
    for (auto& client : clients) client.shut();
    for (auto& thread : threads) thread.join();
    cli::Latencies all;
    for (const auto& lag : lags) all.add(lag);
    return JsonObject{{"watches", watches},
                      {"writes_per_second", static_cast<double>(writes) / took},
                      {"events_measured", all.count()},
                      {"events_expected", writes * ((watches + 19) / 20)},
                      {"lag_p50_us", all.percentile(50)},
                      {"lag_p99_us", all.percentile(99)},
                      {"rss_mb", cli::resident_mb()}};
}

constexpr std::array kWorkloads{
    cli::Workload{"api-start", "the API server: time until it is ready, memory", api_start},
    cli::Workload{"api-create", "durable pod creates by 32 clients over TLS", api_create},
    cli::Workload{"api-get", "reads of one pod by 32 clients over TLS", api_get},
    cli::Workload{"api-list", "lists of 2,000 pods", api_list},
    cli::Workload{"api-watch", "1,000 watches (--nodes) at 500 writes a second: lag of events", api_watch},
};

}  // namespace

std::span<const cli::Workload> api_workloads() {
    return kWorkloads;
}

}  // namespace berth::app
