#include "story_objects.h"

#include <sstream>
#include <stdexcept>

#include "base/json.h"
#include "story_table.h"

namespace berth::scenarios {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
    return parts;
}

JsonObject pairs(const std::string& text) {
    JsonObject out;
    for (const auto& part : split(text, ',')) {
        const auto equals = part.find('=');
        out[part.substr(0, equals)] = equals == std::string::npos ? "" : part.substr(equals + 1);
    }
    return out;
}

// One "key=json" a cell: annotations hold commas and equal signs of their own.
JsonObject annotations(const std::string& text) {
    if (text.empty()) return {};
    const auto equals = text.find('=');
    return JsonObject{{text.substr(0, equals), text.substr(equals + 1)}};
}

JsonObject resources(const StoryRow& row) {
    JsonObject out;
    for (const auto* name : {"cpu", "memory", "ephemeral-storage"}) {
        if (const auto amount = cell(row, name); !amount.empty()) out[name] = amount;
    }
    for (const auto& [column, value] : row) {  // "example.com/gpu"
        if (column.find('/') != std::string::npos && !cell(row, column).empty()) out[column] = cell(row, column);
    }
    return out;
}

JsonArray tolerations(const std::string& text) {
    JsonArray out;
    for (const auto& part : split(text, ',')) out.push_back(JsonObject{{"key", part}, {"operator", "Exists"}});
    return out;
}

JsonObject pod_spec(const StoryRow& row) {
    JsonArray ports;
    for (const auto& port : split(cell(row, "ports"), ',')) {
        ports.push_back(JsonObject{{"containerPort", std::stoi(port)}, {"hostPort", std::stoi(port)}});
    }
    JsonObject container{{"name", "main"}, {"image", "app"}, {"resources", JsonObject{{"requests", resources(row)}}}};
    if (!ports.empty()) container["ports"] = ports;
    JsonObject spec{{"containers", JsonArray{container}}};
    if (const auto selector = cell(row, "selector"); !selector.empty()) spec["nodeSelector"] = pairs(selector);
    if (const auto list = cell(row, "tolerations"); !list.empty()) spec["tolerations"] = tolerations(list);
    if (const auto priority = cell(row, "priority"); !priority.empty()) spec["priority"] = std::stoi(priority);
    return spec;
}

JsonObject metadata(const StoryRow& row, const std::string& kind) {
    JsonObject meta{{"name", cell(row, kind)}};
    if (const auto labels = cell(row, "labels"); !labels.empty()) meta["labels"] = pairs(labels);
    if (const auto qos = cell(row, "qos"); !qos.empty()) {
        if (!meta.contains("labels")) meta["labels"] = JsonObject();
        meta["labels"].as_object()["koordinator.sh/qosClass"] = qos;
    }
    if (const auto text = cell(row, "annotations"); !text.empty()) meta["annotations"] = annotations(text);
    if (const auto uid = cell(row, "uid"); !uid.empty()) meta["uid"] = uid;
    if (const auto created = cell(row, "created"); !created.empty()) meta["creationTimestamp"] = created;
    return meta;
}

Json node(const StoryRow& row) {
    JsonObject allocatable = resources(row);
    allocatable["pods"] = cell(row, "pods").empty() ? "110" : cell(row, "pods");
    JsonObject meta = metadata(row, "node");
    if (!meta.contains("labels")) meta["labels"] = JsonObject();
    meta["labels"].as_object().emplace("kubernetes.io/hostname", cell(row, "node"));
    JsonObject spec;
    JsonArray taints;
    for (const auto& part : split(cell(row, "taints"), ',')) {
        const auto colon = part.find(':');
        taints.push_back(JsonObject{{"key", part.substr(0, colon)}, {"effect", part.substr(colon + 1)}});
    }
    if (!taints.empty()) spec["taints"] = taints;
    if (cell(row, "unschedulable") == "true") spec["unschedulable"] = true;
    return JsonObject{{"kind", "Node"},
                      {"apiVersion", "v1"},
                      {"metadata", meta},
                      {"spec", spec},
                      {"status", JsonObject{{"allocatable", allocatable}}}};
}

Json pod(const StoryRow& row) {
    JsonObject meta = metadata(row, "pod");
    const auto ns = cell(row, "namespace");
    meta["namespace"] = ns.empty() ? "default" : ns;
    if (const auto controller = cell(row, "controller"); !controller.empty()) {
        meta["ownerReferences"] = JsonArray{JsonObject{{"apiVersion", "apps/v1"},
                                                       {"kind", "ReplicaSet"},
                                                       {"name", controller},
                                                       {"uid", controller + "-uid"},
                                                       {"controller", true}}};
    }
    JsonObject spec = pod_spec(row);
    if (const auto where = cell(row, "node"); !where.empty()) spec["nodeName"] = where;
    return JsonObject{{"kind", "Pod"}, {"apiVersion", "v1"}, {"metadata", meta}, {"spec", spec}};
}

Json reservation(const StoryRow& row) {
    JsonObject template_spec = pod_spec(row);
    if (const auto where = cell(row, "nodeName"); !where.empty()) template_spec["nodeName"] = where;
    JsonObject owner;
    if (const auto name = cell(row, "controller"); !name.empty()) {
        owner["controller"] = JsonObject{{"kind", "ReplicaSet"}, {"name", name}, {"namespace", "default"}};
    }
    if (const auto labels = cell(row, "owner"); !labels.empty()) {
        owner["labelSelector"] = JsonObject{{"matchLabels", pairs(labels)}};
    }
    JsonObject spec{{"template", JsonObject{{"spec", template_spec}}}, {"owners", JsonArray{owner}}};
    for (const auto* flag : {"allocateOnce", "preAllocation", "unschedulable"}) {
        if (const auto value = cell(row, flag); !value.empty()) spec[flag] = value == "true";
    }
    for (const auto* text : {"ttl", "expires"}) {
        if (const auto value = cell(row, text); !value.empty()) spec[text] = value;
    }
    if (const auto policy = cell(row, "policy"); !policy.empty()) spec["allocatePolicy"] = policy;
    return JsonObject{{"kind", "Reservation"},
                      {"apiVersion", "scheduling.koordinator.sh/v1alpha1"},
                      {"metadata", metadata(row, "reservation")},
                      {"spec", spec}};
}

Json consumer(const StoryRow& row) {
    JsonObject spec;
    if (const auto weight = cell(row, "weight"); !weight.empty()) spec["weight"] = std::stoi(weight);
    if (const auto parent = cell(row, "parent"); !parent.empty()) spec["parent"] = parent;
    for (const auto* field : {"reserved", "hard", "lendingLimit", "borrowingLimit", "request"}) {
        if (const auto amounts = cell(row, field); !amounts.empty()) spec[field] = pairs(amounts);
    }
    return JsonObject{{"kind", "Consumer"},
                      {"apiVersion", "kuabe-arbitrator.incubator.k8s.io/v1"},
                      {"metadata", metadata(row, "consumer")},
                      {"spec", spec}};
}

// CPUs as Linux numbers them: the first threads of all cores, then the second ones.
Json topology(const StoryRow& row) {
    const auto number = [&](const char* column) { return std::stoi(cell(row, column)); };
    const int numas = number("numas"), cores = number("cores"), threads = number("threads");
    const int all = number("sockets") * numas * cores;
    JsonArray detail;
    for (int cpu = 0; cpu < all * threads; ++cpu) {
        const int core = cpu % all;
        detail.push_back(
            JsonObject{{"id", cpu}, {"core", core}, {"node", core / cores}, {"socket", core / cores / numas}});
    }
    JsonObject meta = metadata(row, "topology");
    if (!meta.contains("annotations")) meta["annotations"] = JsonObject();
    meta["annotations"].as_object()["node.koordinator.sh/cpu-topology"] =
        base::to_text(JsonObject{{"detail", std::move(detail)}});
    JsonArray zones;
    for (int node = 0; node < all / cores && !cell(row, "memory").empty(); ++node) {
        JsonArray resources;
        for (const auto& [name, amount] : {std::pair<std::string, std::string>{"cpu", std::to_string(cores * threads)},
                                           {"memory", cell(row, "memory")}}) {
            resources.push_back(JsonObject{{"name", name}, {"capacity", amount}, {"allocatable", amount}});
        }
        zones.push_back(
            JsonObject{{"name", "node-" + std::to_string(node)}, {"type", "Node"}, {"resources", resources}});
    }
    return JsonObject{{"kind", "NodeResourceTopology"},
                      {"apiVersion", "topology.node.k8s.io/v1alpha1"},
                      {"metadata", meta},
                      {"topologyPolicies", JsonArray{"None"}},
                      {"zones", zones}};
}

JsonObject one_device(const char* type, int minor, int pcie, JsonObject resources) {
    return JsonObject{
        {"type", type},
        {"minor", minor},
        {"id", std::string(type) + "-" + std::to_string(minor)},
        {"health", true},
        {"resources", std::move(resources)},
        {"topology", JsonObject{{"socketID", 0},
                                {"nodeID", pcie / 2},
                                {"pcieID", std::to_string(pcie)},
                                {"busID", "0000:" + std::to_string(pcie) + ":00." + std::to_string(minor)}}}};
}

// GPUs, two on a PCIe switch and four on a NUMA node; as many rdma devices as it says, one on a switch, each with
// virtual functions.
Json device(const StoryRow& row) {
    const auto number = [&](const char* column) {
        return cell(row, column).empty() ? 0 : std::stoi(cell(row, column));
    };
    const std::string memory = cell(row, "memory").empty() ? "80Gi" : cell(row, "memory");
    JsonArray devices;
    for (int minor = 0; minor < number("gpus"); ++minor) {
        devices.push_back(one_device("gpu", minor, minor / 2,
                                     {{"koordinator.sh/gpu-core", "100"},
                                      {"koordinator.sh/gpu-memory-ratio", "100"},
                                      {"koordinator.sh/gpu-memory", memory}}));
    }
    for (int minor = 0; minor < number("rdma"); ++minor) {
        JsonObject card = one_device("rdma", minor, minor, {{"koordinator.sh/rdma", "100"}});
        JsonArray functions;
        for (int i = 0; i < number("vfs"); ++i) {
            functions.push_back(
                JsonObject{{"minor", i}, {"busID", "vf" + std::to_string(minor) + "." + std::to_string(i)}});
        }
        if (!functions.empty()) {
            card["vfGroups"] = JsonArray{JsonObject{{"labels", JsonObject{{"type", "fast"}}}, {"vfs", functions}}};
        }
        devices.push_back(card);
    }
    for (int minor = 0; minor < number("fpga"); ++minor) {
        devices.push_back(one_device("fpga", minor, minor, {{"koordinator.sh/fpga", "100"}}));
    }
    return JsonObject{{"kind", "Device"},
                      {"apiVersion", "scheduling.koordinator.sh/v1alpha1"},
                      {"metadata", metadata(row, "device")},
                      {"spec", JsonObject{{"devices", devices}}}};
}

}  // namespace

Json object_of(const std::string& kind, const StoryRow& row) {
    if (kind == "node") return node(row);
    if (kind == "pod") return pod(row);
    if (kind == "topology") return topology(row);
    if (kind == "device") return device(row);
    if (kind == "reservation") return reservation(row);
    if (kind == "consumer") return consumer(row);
    throw std::runtime_error(
        "a table of \"" + kind +
        "\" is not known; its first column must be node, topology, device, pod, reservation or consumer");
}

}  // namespace berth::scenarios
