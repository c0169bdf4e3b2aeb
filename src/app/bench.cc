#include "cli/bench.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>

#include "app/bench_api.h"
#include "app/commands.h"
#include "base/json.h"
#include "cli/command.h"

namespace berth::app {
namespace {

// One line a group of workloads.
constexpr std::array kGroups{
    cli::core_workloads,
    cli::reservation_workloads,
    cli::store_workloads,
    api_workloads,
};

const cli::Workload* find_in(std::span<const cli::Workload> group, std::string_view name) {
    for (const auto& workload : group) {
        if (name == workload.name || (workload.alias && name == workload.alias)) return &workload;
    }
    return nullptr;
}

const cli::Workload* find_workload(std::string_view name, std::string_view mode) {
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

int run_workload(const std::string& name, const cli::BenchOptions& options, bool as_json) {
    const cli::Workload* workload = find_workload(name, options.mode);
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
    CLI::App flags("Measures one workload in this process.", "berth bench");
    cli::BenchOptions options;
    std::string name;
    std::string output = "table";
    bool list = false;
    flags.add_option("workload", name, "which one");
    flags.add_flag("--list", list, "name the workloads");
    flags.add_option("--nodes", options.nodes, "nodes in the cluster");
    flags.add_option("--pods", options.pods, "pods (or objects) measured");
    flags.add_option("--initial", options.initial, "pods there before");
    flags.add_option("--classes", options.classes, "distinct pod specs");
    flags.add_option("--mode", options.mode, "core, embedded or kubernetes");
    flags.add_option("--variant", options.variant, "variant of the workload");
    flags.add_option("--seed", options.seed, "seed of everything random");
    flags.add_option("--data-dir", options.data_dir, "where durable workloads write");
    flags.add_option("-o,--output", output, "table or json")->check(CLI::IsMember({"table", "json"}));
    try {
        flags.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ParseError& error) {
        return flags.exit(error) == 0 ? cli::kDone : cli::kWrongUsage;
    }
    if (list) {
        print_names();
        return cli::kDone;
    }
    return run_workload(name, options, output == "json");
}

}  // namespace berth::app
