#include "cli/agent_plan.h"

#include <fmt/format.h>

#include "base/json_view.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/dump.h"
#include "cli/output.h"
#include "node/plan.h"

namespace berth::cli {
namespace {

struct PlanFlags {
    std::string topology, usage, slo, kubelet_config, cpu_manager_state;
    std::vector<std::string> files;
    std::string cgroup = "v1";
    std::string driver = "cgroupfs";
    Output output = Output::Json;
};

// The only object of a file, read by `read`; its errors name the flag and the file.
template <class Read>
Status read_one(const char* flag, const std::string& path, Read read) {
    if (path.empty()) return {};
    const auto objects = read_object_file(path);
    if (!objects) return base::bad_request(fmt::format("{}: {}", flag, objects.error().message));
    if (objects->size() != 1)
        return base::bad_request(fmt::format("{}: {} has {} documents, not one", flag, path, objects->size()));
    if (const Status done = read(objects->front()); !done)
        return base::bad_request(fmt::format("{}: {}: {}", flag, path, done.error().message));
    return {};
}

Result<model::Node> read_the_node(const Json& document) {
    base::JsonParser parser;
    const std::string text = base::to_text(document);
    return model::read_node(TRY(parser.parse(text)));
}

Status load_objects(const PlanFlags& flags, node::Situation& out, std::vector<std::string>& faults) {
    std::vector<Json> pods, nodes;
    TRY(load_files(flags.files, [&](const Json& object) -> Result<bool> {
        const auto kind = base::find_string(object, {"kind"});
        if (kind == "Node") nodes.push_back(object);
        if (kind == "Pod") pods.push_back(object);
        return kind == "Node" || kind == "Pod";
    }));
    if (nodes.size() != 1) return base::bad_request(fmt::format("the files have {} Nodes, not one", nodes.size()));
    out.node = TRY(read_the_node(nodes.front()));
    for (const auto& pod : pods) {
        if (auto read = node::read_node_pod(pod, out.node.meta.name, faults)) out.pods.push_back(std::move(*read));
    }
    return {};
}

Result<Json> planned(const PlanFlags& flags) {
    node::Situation situation;
    std::vector<std::string> faults;
    situation.machine = TRY(node::read_machine(flags.topology));
    situation.tree = {flags.cgroup == "v2", flags.driver == "systemd"};
    TRY(load_objects(flags, situation, faults));
    auto& kubelet = situation.kubelet;
    TRY(read_one("--kubelet-config", flags.kubelet_config,
                 [&](const Json& document) { return node::read_kubelet_config(document, kubelet); }));
    TRY(read_one("--cpu-manager-state", flags.cpu_manager_state,
                 [&](const Json& document) { return node::read_cpu_manager_state(document, kubelet); }));
    const auto take_slo = [&](const Json& document) -> Status {
        situation.slo = TRY(node::read_slo(document));
        return {};
    };
    const auto take_usage = [&](const Json& document) -> Status {
        situation.usage = TRY(node::read_usage(document));
        return {};
    };
    TRY(read_one("--slo", flags.slo, take_slo));
    TRY(read_one("--usage", flags.usage, take_usage));
    return node::plan_document(situation, node::plan(situation), faults);
}

}  // namespace

int agent_plan(std::vector<std::string> words) {
    PlanFlags flags;
    CommandLine line(
        "Says what the agent of a node would do: reserved cores, shared pools, how far best-effort pods may go, the "
        "NodeResourceTopology, and what would be written into the cgroup tree. Nothing is touched.",
        "berth agent plan");
    line.option("-f,--filename", flags.files, "YAML or JSON files with the Node and its Pods; - is standard input")
        .required();
    line.option("--topology", flags.topology, "the machine: live, FILE.xml, FILE.json or synthetic:DESCRIPTION")
        .required();
    line.option("--usage", flags.usage, "a file that says what the node and its pods use, and how BE is held back now");
    line.option("--slo", flags.slo, "a file with the NodeSLO; without it 65 % by cpuset");
    line.option("--kubelet-config", flags.kubelet_config, "the kubelet's configuration file");
    line.option("--cpu-manager-state", flags.cpu_manager_state, "the kubelet's cpu_manager_state");
    line.option("--cgroup", flags.cgroup, "which form of cgroups").one_of({"v1", "v2"}).show_default();
    line.option("--driver", flags.driver, "how groups are called").one_of({"cgroupfs", "systemd"}).show_default();
    output_option(line, flags.output, {Output::Json, Output::Yaml});
    line.example("berth agent plan --topology live -f node.yaml -o yaml", "on this machine, for a Node and its Pods");
    line.example("berth agent plan --topology 'synthetic:socket:2 core:6 pu:2' -f node.yaml", "on one of 24 CPUs");
    if (const auto code = line.parse(std::move(words))) return *code;
    const auto document = planned(flags);
    if (!document) return line.fail(document.error());
    print_document(*document, flags.output);
    return kDone;
}

}  // namespace berth::cli
