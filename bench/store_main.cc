#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "bench/workload.h"

// The store's workloads without the rest of Berth: `bench_store [NAME...]` prints one JSON object for each. Each runs
// in a process of its own, so that one's memory does not count for the next.
namespace {

using berth::bench::Workload;

int run(const Workload& workload) {
    auto fields = workload.run({});
    if (!fields) {
        fmt::print(stderr, "bench_store: {}: {}\n", workload.name, fields.error().message);
        return 1;
    }
    berth::JsonObject object{{"workload", workload.name}};
    for (auto& field : *fields) object[field.key()] = std::move(field.value());
    fmt::print("{}\n", berth::base::to_text(object));
    std::fflush(stdout);
    return 0;
}

bool wanted(const Workload& workload, int count, char** names) {
    for (int i = 0; i < count; ++i) {
        if (std::string_view(names[i]) == workload.name) return true;
    }
    return count == 0;
}

}  // namespace

int main(int argc, char** argv) {
    int failed = 0;
    for (const auto& workload : berth::bench::store_workloads()) {
        if (!wanted(workload, argc - 1, argv + 1)) continue;
        const pid_t child = fork();
        if (child == 0) _exit(run(workload));
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) ++failed;
    }
    return failed == 0 ? 0 : 1;
}
