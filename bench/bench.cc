#include "bench/bench.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "base/json.h"
#include "bench/workload.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/near_word.h"
#include "cli/output.h"

namespace berth::bench {
namespace {

// One line a group of workloads.
constexpr std::array kGroups{
    core_workloads,  reservation_workloads, store_workloads,   api_workloads,
    share_workloads, openb_workloads,       control_workloads,
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

int refuse(const cli::CommandLine& line, const std::string& unknown) {
    std::vector<std::string> names;
    for (const auto group : kGroups) {
        for (const auto& workload : group()) names.emplace_back(workload.name);
    }
    const std::string meant = cli::near_word(unknown, names);
    const auto hint = meant.empty() ? std::string() : fmt::format("did you mean {}? ", meant);
    line.fail(fmt::format("unknown workload \"{}\"; {}'berth bench --list' names them", unknown, hint));
    return cli::kWrongUsage;
}

int run_workload(const cli::CommandLine& line, const std::string& name, const BenchOptions& options,
                 cli::Output output) {
    const Workload* workload = find_workload(name, options.mode);
    if (!workload) return refuse(line, name);
    auto measured = workload->run(options);
    if (!measured) return line.fail(fmt::format("{}: {}", name, measured.error().message));
    JsonObject fields{{"workload", workload->name}};
    for (auto& field : *measured) fields[field.key()] = std::move(field.value());
    if (cli::is_document(output)) {
        cli::print_document(fields, output);
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
    cli::Output output = cli::Output::Table;
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
    line.option("--trace", options.trace, "OpenB: its pods");
    line.option("--nodes-file", options.nodes_file, "OpenB: its nodes");
    line.option("--scorer", options.scorer, "OpenB: BestFit, FGD or Stranding");
    line.option("--seeds", options.seeds, "OpenB: one replay for each of 42-51");
    line.option("--data-dir", options.data_dir, "where durable workloads write");
    cli::output_option(line, output, {cli::Output::Table, cli::Output::Json, cli::Output::Yaml});
    line.example("berth bench --list", "which there are");
    line.example("berth bench SchedulingBasic --nodes 5000 --pods 10000", "the scheduler alone");
    line.example("berth bench SchedulingBasic --mode embedded -o json", "through the whole control plane");
    if (const auto code = line.parse(std::move(words))) return *code;
    if (list) {
        print_names();
        return cli::kDone;
    }
    return run_workload(line, name, options, output);
}

}  // namespace berth::bench
