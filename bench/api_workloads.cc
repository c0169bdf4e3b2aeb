
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

#include "app/server.h"
#include "base/clock.h"
#include "base/json.h"
#include "bench/load.h"
#include "bench/measure.h"
#include "bench/workload.h"

// The API server over TLS, with its clients in the same process: what they cost is part of the figures.
namespace berth::bench {
namespace {

constexpr int kClients = 32;
constexpr std::string_view kPods = "/api/v1/namespaces/default/pods";
constexpr std::string_view kMaps = "/api/v1/namespaces/default/configmaps";

base::Instant now() {
    return base::system_clock().now();
}

// A server on a directory of its own.
struct Stand {
    BenchPlace place;
    std::unique_ptr<app::Server> server;
    double ready_s = 0;

    explicit Stand(const BenchOptions& options) : place(options.data_dir) {}

    static Result<std::unique_ptr<Stand>> make(const BenchOptions& options) {
        std::signal(SIGPIPE, SIG_IGN);
        app::raise_file_limit();
        auto out = std::make_unique<Stand>(options);
        app::ServerOptions settings;
        settings.data_dir = out->place.path();
        settings.listen = "127.0.0.1:0";
        settings.in_memory = options.variant == "memory";
        const Stopwatch stopwatch;
        out->server = TRY(app::Server::start(settings));
        out->ready_s = std::chrono::duration<double>(stopwatch.wall()).count();
        return out;
    }
    Result<BenchFlock> clients(size_t count) const { return connect_to(server->url(), place.path(), count); }
};

// The usual fields, and how many clients there were.
Result<JsonObject> measure(const Stand& stand, const Load& load) {
    auto flock = TRY(stand.clients(kClients));
    const Stopwatch stopwatch;
    const Latencies latencies = TRY(run_load(flock, load));
    JsonObject fields{{"mode", "embedded"}, {"clients", kClients}};
    for (auto& field : report(latencies, latencies.count(), stopwatch)) fields[field.key()] = field.value();
    return fields;
}

int64_t count_of(const BenchOptions& options, int64_t otherwise) {
    return options.pods > 0 ? options.pods : otherwise;
}

Load creates(int64_t count) {
    return {count, 201, [](int64_t n) { return request_text("POST", kPods, pod_text(fmt::format("pod-{}", n))); }};
}

Status make_pods(const Stand& stand, int64_t count) {
    auto flock = TRY(stand.clients(kClients));
    TRY(run_load(flock, creates(count)));
    return {};
}

Result<JsonObject> api_start(const BenchOptions& options) {
    const Stopwatch stopwatch;
    const auto stand = TRY(Stand::make(options));
    Latencies once;
    once.add(std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(stand->ready_s)));
    JsonObject fields{{"mode", "embedded"}, {"ready_s", rounded(stand->ready_s)}};
    for (auto& field : report(once, 1, stopwatch)) fields[field.key()] = field.value();
    return fields;
}

Result<JsonObject> api_create(const BenchOptions& options) {
    const auto stand = TRY(Stand::make(options));
    return measure(*stand, creates(count_of(options, 20'000)));
}

Result<JsonObject> api_get(const BenchOptions& options) {
    const auto stand = TRY(Stand::make(options));
    TRY(make_pods(*stand, 100));
    const auto request = [](int64_t n) { return request_text("GET", fmt::format("{}/pod-{}", kPods, n % 100)); };
    return measure(*stand, {count_of(options, 40'000), 200, request});
}

Result<JsonObject> api_list(const BenchOptions& options) {
    const auto stand = TRY(Stand::make(options));
    TRY(make_pods(*stand, 2000));
    const auto request = [](int64_t) { return request_text("GET", fmt::format("{}?resourceVersion=0", kPods)); };
    return measure(*stand, {count_of(options, 500), 200, request});
}

// The lag of the events in a stretch of a stream: each carries the instant of its write.
void note_lags(std::string& text, Latencies& lags) {
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
    // A stamp may be cut anywhere.
    text.erase(0, at != std::string::npos ? at : text.size() - std::min(text.size(), kStamp.size() - 1));
}

// A thousand watches, read by one thread; every twentieth measures.
class Watchers {
public:
    static Result<std::unique_ptr<Watchers>> open(const Stand& stand, size_t count) {
        auto out = std::unique_ptr<Watchers>(new Watchers(TRY(stand.clients(count))));
        for (size_t i = 0; i < count; ++i) {
            TRY(out->flock_.send(i, request_text("GET", fmt::format("{}?watch=1", kMaps))));
        }
        out->thread_ = std::thread([watchers = out.get()] { watchers->run(); });
        return out;
    }
    ~Watchers() { stop(); }
    void stop() {
        stop_ = true;
        if (thread_.joinable()) thread_.join();
    }
    int64_t events() const { return events_; }
    // After stop().
    const Latencies& lags() const { return lags_; }

private:
    explicit Watchers(BenchFlock flock) : flock_(std::move(flock)) {}
    void run() {
        while (!stop_) {
            const auto read = flock_.poll(50, [&](size_t watch, std::string& text) -> Status {
                if (watch % 20 == 0) {
                    const auto before = lags_.count();
                    note_lags(text, lags_);
                    events_ += static_cast<int64_t>(lags_.count() - before);
                } else {
                    text.clear();
                }
                return {};
            });
            if (!read) return;
        }
    }

    BenchFlock flock_;
    Latencies lags_;
    std::atomic<int64_t> events_ = 0;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

// One write every two milliseconds, whether or not the ones before were answered, as long as a connection is idle.
Result<Latencies> write_steadily(BenchFlock& flock, int64_t writes) {
    Latencies latencies;
    std::vector<size_t> idle;
    std::vector<base::Instant> since(flock.size());
    for (size_t i = 0; i < flock.size(); ++i) idle.push_back(i);
    const auto begin = now();
    int64_t sent = 0;
    while (latencies.count() < static_cast<size_t>(writes)) {
        while (sent < writes && !idle.empty() && now() >= begin + sent * std::chrono::milliseconds(2)) {
            const size_t writer = idle.back();
            idle.pop_back();
            since[writer] = now();
            TRY(flock.send(writer,
                           request_text("POST", kMaps,
                                        fmt::format(R"({{"metadata":{{"name":"m-{}"}},"data":{{"stamp":"{}"}}}})", sent,
                                                    since[writer].nanos))));
            ++sent;
        }
        TRY(flock.poll(1, [&](size_t writer, std::string& text) -> Status {
            const auto answer = take_answer(text);
            if (!answer) return {};
            if (answer->code != 201) return base::internal(fmt::format("{}: {}", answer->code, answer->body));
            latencies.add(now() - since[writer]);
            idle.push_back(writer);
            return {};
        }));
    }
    return latencies;
}

// 500 writes a second for three seconds, told to a thousand watches. p50 and p99 are the lag of the events; writes per
// second count until the last one is answered.
Result<JsonObject> api_watch(const BenchOptions& options) {
    const auto stand = TRY(Stand::make(options));
    const auto watches = static_cast<size_t>(options.nodes > 0 ? options.nodes : 1000);
    const auto watchers = TRY(Watchers::open(*stand, watches));
    auto flock = TRY(stand->clients(64));
    const int64_t writes = count_of(options, 1500);
    const Stopwatch stopwatch;
    const Latencies latencies = TRY(write_steadily(flock, writes));
    const double seconds = std::chrono::duration<double>(stopwatch.wall()).count();
    const auto expected = writes * static_cast<int64_t>((watches + 19) / 20);
    const auto deadline = now() + std::chrono::seconds(10);
    while (watchers->events() < expected && now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    watchers->stop();
    const double cpu_us = std::chrono::duration<double, std::micro>(stopwatch.cpu()).count();
    if (watchers->events() < expected) {
        return base::internal(fmt::format("only {} of {} events came", watchers->events(), expected));
    }
    return JsonObject{{"mode", "embedded"},
                      {"watches", watches},
                      {"offered_per_s", 500},
                      {"ops_per_s", rounded(static_cast<double>(writes) / seconds)},
                      {"p50_us", rounded(watchers->lags().percentile(50))},
                      {"p99_us", rounded(watchers->lags().percentile(99))},
                      {"write_p99_us", rounded(latencies.percentile(99))},
                      {"cpu_us_per_op", rounded(cpu_us / static_cast<double>(writes))},
                      {"rss_mb", rounded(resident_mb())}};
}

constexpr std::array kWorkloads{
    Workload{"ApiStart", "the API server: time until it is ready, memory", api_start},
    Workload{"ApiCreate", "durable pod creates by 32 clients over TLS", api_create},
    Workload{"ApiGet", "reads of one pod by 32 clients over TLS", api_get},
    Workload{"ApiList", "lists of 2,000 pods", api_list},
    Workload{"ApiWatch", "1,000 watches (--nodes) at 500 writes a second: lag of events", api_watch},
};

}  // namespace

std::span<const Workload> api_workloads() {
    return kWorkloads;
}

}  // namespace berth::bench
