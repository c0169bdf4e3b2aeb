#include <fmt/format.h>

#include <array>

#include "base/random.h"
#include "cli/bench.h"
#include "cli/measure.h"
#include "store/store.h"

namespace berth::cli {
namespace {

using base::system_clock;
using namespace berth::store;

constexpr size_t kObjectBytes = 1500;  // a pod as an API server stores it

Bytes object_bytes(base::Random& random) {
    std::string text(kObjectBytes, ' ');
    for (size_t i = 0; i < text.size(); i += 8) text[i] = static_cast<char>('a' + random.below(26));
    return std::make_shared<const std::string>(std::move(text));
}

Key object_key(size_t number) {
    return {"pods", fmt::format("namespace-{}", number % 100), fmt::format("workload-{:08}", number)};
}

Txn create(size_t number, base::Random& random) {
    return {{{.op = Op::Create,
              .key = object_key(number),
              .bytes = object_bytes(random),
              .uid = fmt::format("{:08x}-0000-4000-8000-{:012x}", number, number)}}};
}

Result<std::unique_ptr<Store>> filled(size_t objects, base::Random& random) {
    auto store = TRY(Store::open(memory_log()));
    for (size_t i = 0; i < objects; ++i) TRY(store->commit(create(i, random)));
    return store;
}

Result<JsonObject> read(const BenchOptions& options) {
    base::Random random(options.seed);
    const size_t objects = options.pods > 0 ? static_cast<size_t>(options.pods) : 100'000;
    auto store = TRY(filled(objects, random));
    Latencies latencies;
    const auto start = system_clock().now();
    size_t reads = 0;
    while (system_clock().now() - start < std::chrono::seconds(1)) {
        for (int i = 0; i < 100; ++i) {
            const Key key = object_key(random.below(objects));
            const auto before = system_clock().now();
            if (!store->get(key)) return base::internal("an object is missing");
            latencies.add(system_clock().now() - before);
            ++reads;
        }
    }
    return report(latencies, reads, system_clock().now() - start);
}

constexpr std::array kWorkloads{
    Workload{"StoreRead", "read one of 100,000 objects of 1.5 KB", read},
};

}  // namespace

std::span<const Workload> store_workloads() {
    return kWorkloads;
}

}  // namespace berth::cli
