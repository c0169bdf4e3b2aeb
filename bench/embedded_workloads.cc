// Workloads through a whole `berth up`: HTTPS, durable, with events and the simulated nodes' status writes. The client
// is in the same process; what it costs is part of the figures.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <thread>

#include "app/components.h"
#include "base/json.h"
#include "base/mentions.h"
#include "bench/load.h"
#include "bench/workload.h"
#include "link/wake_event.h"

namespace berth::bench {
namespace {

constexpr size_t kConnections = 256;  // about what a Kubernetes API server lets write at once
constexpr std::string_view kPods = "/api/v1/namespaces/default/pods";
constexpr auto kPatience = std::chrono::seconds(120);

base::Instant now() {
    return base::system_clock().now();
}

std::string name_of(int64_t number) {
    return fmt::format("pod-{}", number);
}

// Sees from inside when each pod is bound.
class Witness {
public:
    Witness(store::Store& store, size_t pods) : bound_(pods) {
        auto watch = store.watch({.kind = "pods"}, store.revision(), [this] { bell_.notify(); });
        CHECK(watch.ok());
        watch_ = std::move(*watch);
        thread_ = std::thread([this] { run(); });
    }
    ~Witness() {
        stop_ = true;
        bell_.notify();
        thread_.join();
    }
    Status wait_for(size_t count) {
        const auto deadline = now() + kPatience;
        while (seen_ < count && now() < deadline) told_.wait(std::chrono::milliseconds(100));
        if (seen_ < count) return base::internal(fmt::format("only {} of {} pods were bound", seen_.load(), count));
        return {};
    }
    // After wait_for(): the thread that waits sees what was written before.
    base::Instant bound_at(size_t pod) const { return bound_[pod]; }

private:
    void run() {
        while (!stop_) {
            const auto events = watch_->poll(4096);
            CHECK(events.ok());
            for (const auto& event : *events) look_at(event->record->key.name, *event->record->bytes);
            if (events->empty()) bell_.wait(std::chrono::seconds(1));
        }
    }
    void look_at(std::string_view name, std::string_view bytes) {
        size_t number = bound_.size();
        std::from_chars(name.data() + name.rfind('-') + 1, name.data() + name.size(), number);
        if (number >= bound_.size() || bound_[number] != base::Instant{}) return;
        if (!base::mentions(bytes, "\"nodeName\":\"")) return;
        bound_[number] = now();
        ++seen_;
        told_.notify();
    }

    std::vector<base::Instant> bound_;
    std::atomic<size_t> seen_ = 0;
    std::atomic<bool> stop_ = false;
    link::WakeEvent bell_;
    link::WakeEvent told_;
    std::unique_ptr<store::Watch> watch_;
    std::thread thread_;
};

struct Sizes {
    int64_t nodes, initial, pods;
};

JsonObject fields(const Sizes& sizes, const Witness& witness, const std::vector<base::Instant>& sent, double cpu_us,
                  double node_mb, double pod_mb) {
    Latencies latencies;
    base::Instant last = sent[static_cast<size_t>(sizes.initial)];
    for (auto i = static_cast<size_t>(sizes.initial); i < sent.size(); ++i) {
        latencies.add(witness.bound_at(i) - sent[i]);
        last = std::max(last, witness.bound_at(i));
    }
    const auto pods = static_cast<double>(sizes.pods);
    const double seconds = std::chrono::duration<double>(last - sent[static_cast<size_t>(sizes.initial)]).count();
    return {{"mode", "embedded"},
            {"nodes", sizes.nodes},
            {"pods", sizes.pods},
            {"decisions_per_s", rounded(pods / seconds)},
            {"p50_us", rounded(latencies.percentile(50))},
            {"p99_us", rounded(latencies.percentile(99))},
            {"cpu_us_per_pod", rounded(cpu_us / pods)},
            {"bytes_per_node", rounded(node_mb * 1e6 / static_cast<double>(sizes.nodes))},
            {"bytes_per_pod", rounded(pod_mb * 1e6 / pods)},
            {"rss_mb", rounded(resident_mb())}};
}

// Created one after the other on each connection; measured from the request until the pod is bound.
Result<JsonObject> scheduling_basic(const BenchOptions& options) {
    std::signal(SIGPIPE, SIG_IGN);
    app::raise_file_limit();
    const Sizes sizes{options.nodes > 0 ? options.nodes : 5000, options.initial > 0 ? options.initial : 1000,
                      options.pods > 0 ? options.pods : 20'000};
    const BenchPlace place(options.data_dir);
    app::UpOptions up;
    up.server.data_dir = place.path();
    up.server.listen = "127.0.0.1:0";
    up.server.in_memory = options.variant == "memory";
    up.nodes = static_cast<int>(sizes.nodes);
    const double before = resident_mb();
    const auto server = TRY(app::Server::start(up.server));
    const auto components = TRY(app::start_components(*server, up));
    const double with_nodes = resident_mb();
    auto flock = TRY(connect_to(server->url(), place.path(), kConnections));
    std::vector<base::Instant> sent(static_cast<size_t>(sizes.initial + sizes.pods));
    Witness witness(server->store(), sent.size());
    const auto create = [&](int64_t first, int64_t count) -> Status {
        Load load{count, 201, {}, {}};
        load.request = [&](int64_t n) { return request_text("POST", kPods, pod_text(name_of(first + n))); };
        load.sent = [&](int64_t n) { sent[static_cast<size_t>(first + n)] = now(); };
        TRY(run_load(flock, load));
        return witness.wait_for(static_cast<size_t>(first + count));
    };
    TRY(create(0, sizes.initial));
    const Stopwatch stopwatch;
    const double begin = resident_mb();
    TRY(create(sizes.initial, sizes.pods));
    const double cpu_us = std::chrono::duration<double, std::micro>(stopwatch.cpu()).count();
    return fields(sizes, witness, sent, cpu_us, with_nodes - before, resident_mb() - begin);
}

constexpr std::array kWorkloads{
    Workload{"SchedulingBasic", "create to bound through a whole control plane", scheduling_basic},
};

}  // namespace

std::span<const Workload> embedded_workloads() {
    return kWorkloads;
}

}  // namespace berth::bench
