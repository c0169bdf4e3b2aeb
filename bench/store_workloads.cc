#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "base/random.h"
#include "bench/measure.h"
#include "bench/workload.h"
#include "store/sqlite_log.h"
#include "store/store.h"
#include "store/temp_dir.h"

namespace berth::bench {
namespace {

using base::system_clock;
using namespace berth::store;

constexpr size_t kObjectBytes = 1500;  // a pod as an API server stores it
constexpr auto kMeasured = std::chrono::seconds(2);

Bytes object_bytes(base::Random& random) {
    std::string text(kObjectBytes, ' ');
    for (size_t i = 0; i < text.size(); i += 8) text[i] = static_cast<char>('a' + random.below(26));
    return std::make_shared<const std::string>(std::move(text));
}

Key object_key(size_t number) {
    return {"pods", fmt::format("namespace-{}", number % 100), fmt::format("workload-{:08}", number)};
}

Write create(size_t number, base::Random& random) {
    return {.op = Op::Create,
            .key = object_key(number),
            .bytes = object_bytes(random),
            .uid = fmt::format("{:08x}-0000-4000-8000-{:012x}", number, number)};
}

size_t objects_of(const BenchOptions& options, size_t otherwise) {
    return options.pods > 0 ? static_cast<size_t>(options.pods) : otherwise;
}

Result<std::unique_ptr<Store>> filled(size_t objects, base::Random& random) {
    auto store = TRY(Store::open(memory_log()));
    for (size_t i = 0; i < objects; ++i) TRY(store->commit({{create(i, random)}}));
    return store;
}

// A directory of its own under data_dir, or under the system's temporary one.
class Place {
public:
    explicit Place(const BenchOptions& options) : path_(options.data_dir.empty() ? temp_.path() : options.data_dir) {}
    const std::string& path() const { return path_; }

private:
    TempDir temp_;
    std::string path_;
};

Result<std::unique_ptr<Store>> open_in(const Place& place) {
    auto log = TRY(sqlite_log({.data_dir = place.path()}));
    return Store::open(std::move(log));
}

// What the disk alone takes for the same: overwrite 8 KiB and fdatasync. No store can acknowledge faster one by one.
double fdatasync_us(const Place& place) {
    const std::string path = place.path() + "/fdatasync";
    const std::string data(8192, 'x');
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    Latencies latencies;
    for (int pass = 0; pass < 2; ++pass) {
        latencies = {};
        for (int i = 0; i < 100; ++i) {
            const auto before = system_clock().now();
            const bool ok = pwrite(fd, data.data(), data.size(), i * 8192) > 0 && fdatasync(fd) == 0;
            if (ok) latencies.add(system_clock().now() - before);
        }
    }
    close(fd);
    unlink(path.c_str());
    return latencies.percentile(50);
}

// One writer: creates a hundred objects, then updates them in turn, each write after the answer to the one before.
Status write_in_turn(Store& store, size_t writer, base::Random random, const std::atomic<bool>& stop, Latencies& out) {
    for (size_t n = 0; !stop; ++n) {
        Write write = create(writer * 100 + n % 100, random);
        if (n >= 100) write.op = Op::Update;
        const auto before = system_clock().now();
        TRY(store.commit({{std::move(write)}}));
        out.add(system_clock().now() - before);
    }
    return {};
}

Result<JsonObject> write_with(size_t writers, const BenchOptions& options) {
    const Place place(options);
    const double disk_us = fdatasync_us(place);
    auto store = TRY(open_in(place));
    std::vector<Latencies> latencies(writers);
    std::vector<Status> ends(writers);
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    const Stopwatch stopwatch;
    for (size_t i = 0; i < writers; ++i) {
        threads.emplace_back(
            [&, i] { ends[i] = write_in_turn(*store, i, base::Random(options.seed + i), stop, latencies[i]); });
    }
    std::this_thread::sleep_for(kMeasured);
    stop = true;
    for (auto& thread : threads) thread.join();
    Latencies all;
    for (size_t i = 0; i < writers; ++i) {
        TRY(ends[i]);
        all.add(latencies[i]);
    }
    JsonObject fields = report(all, all.count(), stopwatch);
    fields["writers"] = writers;
    fields["fdatasync_p50_us"] = rounded(disk_us);
    return fields;
}

Result<JsonObject> write_1(const BenchOptions& options) {
    return write_with(1, options);
}

Result<JsonObject> write_32(const BenchOptions& options) {
    return write_with(32, options);
}

// Repeats `operation` for the measured time.
template <class Operation>
Result<JsonObject> repeat(Operation operation) {
    Latencies latencies;
    const Stopwatch stopwatch;
    while (stopwatch.wall() < kMeasured) {
        const auto before = system_clock().now();
        TRY(operation());
        latencies.add(system_clock().now() - before);
    }
    return report(latencies, latencies.count(), stopwatch);
}

Result<JsonObject> read(const BenchOptions& options) {
    base::Random random(options.seed);
    const size_t objects = objects_of(options, 100'000);
    auto store = TRY(filled(objects, random));
    std::vector<Key> keys;
    for (int i = 0; i < 10'000; ++i) keys.push_back(object_key(random.below(objects)));
    size_t next = 0;
    return repeat([&]() -> Status {
        if (!store->get(keys[next++ % keys.size()])) return base::internal("an object is missing");
        return {};
    });
}

Result<JsonObject> list(const BenchOptions& options) {
    base::Random random(options.seed);
    const size_t objects = objects_of(options, 10'000);
    auto store = TRY(filled(objects, random));
    const auto list_all = [&]() -> Status {
        const auto page = TRY(store->list({.kind = "pods"}));
        if (page.records.size() != objects) return base::internal("an object is missing");
        return {};
    };
    auto fields = TRY(repeat(list_all));
    fields["objects"] = objects;
    return fields;
}

// One write at a time, until each of the watchers has it. ops_per_s counts deliveries; the latency is that of the last
// watcher.
Result<JsonObject> watch(const BenchOptions& options) {
    constexpr size_t kWatchers = 1000;
    base::Random random(options.seed);
    auto store = TRY(filled(1000, random));
    std::vector<std::unique_ptr<Watch>> watches;
    std::vector<size_t> notified;
    for (size_t i = 0; i < kWatchers; ++i) {
        watches.push_back(TRY(store->watch({"pods"}, store->revision(), [&notified, i] { notified.push_back(i); })));
        TRY(watches.back()->poll(100));
    }
    size_t delivered = 0;
    size_t next = 0;
    const auto tell_all = [&]() -> Status {
        Write write = create(next++ % 1000, random);
        write.op = Op::Update;
        notified.clear();
        TRY(store->commit({{std::move(write)}}));
        for (const size_t i : notified) {
            const auto events = TRY(watches[i]->poll(100));
            delivered += events.size();
            TRY(watches[i]->poll(100));
        }
        return {};
    };
    auto fields = TRY(repeat(tell_all));
    if (delivered != next * kWatchers) return base::internal("an event was not delivered");
    fields["watchers"] = kWatchers;
    fields["cpu_us_per_op"] = rounded(fields["cpu_us_per_op"].as_double() / kWatchers);
    fields["ops_per_s"] = rounded(fields["ops_per_s"].as_double() * kWatchers);
    return fields;
}

Status fill_durably(const Place& place, size_t objects, uint64_t seed) {
    base::Random random(seed);
    auto store = TRY(open_in(place));
    for (size_t i = 0; i < objects;) {
        Txn txn;
        for (size_t n = 0; n < 500 && i < objects; ++n) txn.writes.push_back(create(i++, random));
        TRY(store->commit(txn));
    }
    return {};
}

// The objects are made by another process, so that only recovery counts here.
Result<JsonObject> recover(const BenchOptions& options) {
    const Place place(options);
    const size_t objects = objects_of(options, 100'000);
    const pid_t child = fork();
    if (child == 0) _exit(fill_durably(place, objects, options.seed) ? 0 : 1);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        return base::internal("could not make objects");
    const Stopwatch stopwatch;
    auto store = TRY(open_in(place));
    if (store->recovered().objects != objects) return base::internal("objects were lost");
    Latencies once;
    once.add(stopwatch.wall());
    JsonObject fields = report(once, objects, stopwatch);
    fields["objects"] = objects;
    fields["recover_ms"] = rounded(once.percentile(50) / 1000);
    return fields;
}

constexpr std::array kWorkloads{
    Workload{"StoreWrite1", "durable writes of 1.5 KB, one after the other", write_1},
    Workload{"StoreWrite32", "durable writes of 1.5 KB by 32 writers", write_32},
    Workload{"StoreRead", "reads of one of 100,000 objects", read},
    Workload{"StoreList10k", "lists of 10,000 objects", list},
    Workload{"StoreWatch1000", "events delivered to 1,000 watchers", watch},
    Workload{"StoreRecover100k", "start with 100,000 objects of 1.5 KB on disk", recover},
};

}  // namespace

std::span<const Workload> store_workloads() {
    return kWorkloads;
}

}  // namespace berth::bench
