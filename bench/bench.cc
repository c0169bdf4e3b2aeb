#include "bench/bench.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "base/json.h"
#include "bench/workload.h"
#include "cli/command.h"
#include "cli/command_line.h"

namespace berth::bench {
namespace {

// One line a group of workloads.
constexpr std::array kGroups{
    core_workloads,
    reservation_workloads,
    store_workloads,
    api_workloads,
    share_workloads,
};

const Workload* find_in(std::span<const Workload> group, std::string_view name) {
    for (const auto& workload : group) {
        if (name == workload.name || (workload.alias && name == workload.alias)) return &workload;
    }
    return nullptr;
}

const Workload* find_workload(std::string_view name, std::string_view mode) {
    if (mode == "embedded") {
        if (const auto* found = find_in(embedded_workloads(), name)) return found;
    }
    for (const auto group : kGroups) {
        if (const auto* found = find_in(group(), name)) return found;
    }
    return nullptr;
}

void print_names() {
    for (const auto group : kGroups) {
        for (const auto& workload : group()) fmt::print("{:<24} {}\n", workload.name, workload.summary);
    }
}

void print_table(const JsonObject& fields) {
    for (const auto& field : fields)
        fmt::print("{:<16} {}\n", std::string_view(field.key()), base::to_text(field.value()));
}

int run_workload(const std::string& name, const BenchOptions& options, bool as_json) {
    const Workload* workload = find_workload(name, options.mode);
    if (!workload) {
        fmt::print(stderr, "berth: unknown workload \"{}\"; 'berth bench --list' names them\n", name);
        return cli::kWrongUsage;
    }
    auto measured = workload->run(options);
    if (!measured) {
        fmt::print(stderr, "berth: {}: {}\n", name, measured.error().message);
        return cli::kFailed;
    }
    JsonObject fields{{"workload", workload->name}};
    for (auto& field : *measured) fields[field.key()] = std::move(field.value());
    if (as_json) {
        fmt::print("{}\n", base::to_text(fields));
    } else {
        print_table(fields);
    }
    return cli::kDone;
}

}  // namespace

int bench(std::vector<std::string> words) {
    cli::CommandLine line("Measures one workload in this process.", "berth bench");
    BenchOptions options;
    std::string name;
    std::string output = "table";
    bool list = false;
    line.option("workload", name, "which one");
    line.flag("--list", list, "name the workloads");
    line.option("--nodes", options.nodes, "nodes in the cluster");
    line.option("--pods", options.pods, "pods (or objects) measured");
    line.option("--initial", options.initial, "pods there before");
    line.option("--classes", options.classes, "distinct pod specs");
    line.option("--mode", options.mode, "core, embedded or kubernetes");
    line.option("--variant", options.variant, "variant of the workload");
    line.option("--seed", options.seed, "seed of everything random");
    line.option("--data-dir", options.data_dir, "where durable workloads write");
    line.option("-o,--output", output, "table or json").one_of({"table", "json"});
    if (const auto code = line.parse(std::move(words))) return *code;
    if (list) {
        print_names();
        return cli::kDone;
    }
    return run_workload(name, options, output == "json");
}

}  // namespace berth::bench
