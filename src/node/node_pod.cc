#include "node/node_pod.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/kinds/path.h"
#include "model/quantity.h"

namespace berth::node {
namespace {

constexpr size_t kUidLength = 36;
constexpr size_t kStaticUidLength = 32;
constexpr size_t kContainerIdLength = 64;
constexpr size_t kMostShown = 80;

bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

std::string shown(std::string_view text) {
    std::string quoted;
    base::append_quoted(text.substr(0, kMostShown), quoted);
    return quoted;
}

Labels labels_at(const Json& pod, std::string_view path) {
    std::vector<Labels::Entry> entries;
    for (const auto& label : model::members_at(pod, path)) {
        if (label.value().is_string()) entries.emplace_back(label.key(), std::string(label.value().get_string()));
    }
    return Labels(std::move(entries));
}

void read_status(std::string_view text, NodePod& out, std::vector<std::string>& faults) {
    const auto wrong = [&](std::string_view what) {
        faults.push_back(fmt::format("pod \"{}\": annotation \"{}\": {}", out.full_name(), kResourceStatus, what));
    };
    const auto status = base::parse_json(text);
    if (!status || !status->is_object()) return wrong(status ? "must be an object" : status.error().message);
    std::string fault;
    auto cpus = model::read_cpu_list(model::string_at(*status, ".cpuset"), fault);
    if (!fault.empty()) wrong("cpuset: " + fault);
    if (fault.empty() && !cpus.empty()) out.cpus = std::move(cpus);
    for (const auto& numa : model::list_at(*status, ".numaNodeResources")) {
        const int64_t id = model::int_at(numa, ".node");
        if (id >= 0 && id <= model::kMaxCpuId) out.numas.push_back(static_cast<int32_t>(id));
    }
}

int64_t cpu_limit(const Json& pod, std::string_view name) {
    for (const auto* list : {".spec.containers", ".spec.initContainers"}) {
        for (const auto& container : model::list_at(pod, list)) {
            if (model::string_at(container, ".name") != name) continue;
            const auto limit =
                Quantity::parse(std::string(base::find_string(container, {"resources", "limits", "cpu"})));
            return limit && !limit->is_negative() ? limit->milli() : 0;
        }
    }
    return 0;
}

void read_containers(const Json& pod, NodePod& out, std::vector<std::string>& faults) {
    for (const auto* list : {".status.containerStatuses", ".status.initContainerStatuses"}) {
        for (const auto& status : model::list_at(pod, list)) {
            const auto id = model::string_at(status, ".containerID");
            const auto colon = id.find("://");
            Container container{std::string(model::string_at(status, ".name")), {}, {}, 0};
            container.limit_milli = cpu_limit(pod, container.name);
            if (id.empty() || base::find(status, {"state", "terminated"}) != nullptr) continue;
            if (colon == std::string_view::npos || !is_container_id(id.substr(colon + 3))) {
                faults.push_back(fmt::format("pod \"{}\": the containerID {} is none: its group is left alone",
                                             out.full_name(), shown(id)));
                continue;
            }
            container.runtime = id.substr(0, colon);
            container.id = id.substr(colon + 3);
            out.containers.push_back(std::move(container));
        }
    }
}

int64_t batch_cpu(const Json& pod, const char* part) {
    int64_t sum = 0;
    for (const auto& container : model::list_at(pod, ".spec.containers")) {
        const Json* value = base::find(container, {"resources", part, "kubernetes.io/batch-cpu"});
        if (value == nullptr) continue;
        const auto amount =
            Quantity::parse(value->is_string() ? std::string(value->get_string()) : base::to_text(*value));
        if (amount && !amount->is_negative()) sum += std::min<int64_t>(amount->value(), INT32_MAX);
    }
    return sum;
}

Quantity request(const Json& pod, std::string_view resource) {
    Quantity sum;
    for (const auto& container : model::list_at(pod, ".spec.containers")) {
        const Json* value = base::find(container, {"resources", "requests", resource});
        if (value == nullptr) value = base::find(container, {"resources", "limits", resource});
        if (value == nullptr) continue;
        const auto amount =
            Quantity::parse(value->is_string() ? std::string(value->get_string()) : base::to_text(*value));
        if (amount && !amount->is_negative()) sum += *amount;
    }
    return sum;
}

bool is_here(const Json& pod, std::string_view node) {
    const auto on = model::string_at(pod, ".spec.nodeName");
    const auto phase = model::string_at(pod, ".status.phase");
    if (phase == "Succeeded" || phase == "Failed") return false;
    return on.empty() ? !phase.empty() && phase != "Pending" : on == node;
}

}  // namespace

bool is_pod_uid(std::string_view uid) {
    if (uid.size() == kUidLength)
        return std::all_of(uid.begin(), uid.end(), [](char c) { return is_hex(c) || c == '-'; });
    return uid.size() == kStaticUidLength && std::all_of(uid.begin(), uid.end(), is_hex);
}

int64_t NodePod::limit_milli() const {
    int64_t sum = 0;
    for (const auto& container : containers) {
        if (container.name.empty()) continue;  // its sandbox
        if (container.limit_milli == 0) return 0;
        sum += container.limit_milli;
    }
    return sum;
}

bool is_container_id(std::string_view id) {
    return id.size() == kContainerIdLength && std::all_of(id.begin(), id.end(), is_hex);
}

std::optional<NodePod> read_node_pod(const Json& pod, std::string_view node, std::vector<std::string>& faults) {
    if (!is_here(pod, node)) return std::nullopt;
    NodePod out;
    const auto ns = model::string_at(pod, ".metadata.namespace");
    out.ns = ns.empty() ? "default" : ns;
    out.name = model::string_at(pod, ".metadata.name");
    out.uid = model::string_at(pod, ".metadata.uid");
    const auto labels = labels_at(pod, ".metadata.labels");
    const auto annotations = labels_at(pod, ".metadata.annotations");
    out.kube = model::kube_qos(pod);
    out.qos = model::qos_of(labels, out.kube);
    out.priority =
        static_cast<int32_t>(std::clamp<int64_t>(model::int_at(pod, ".spec.priority"), INT32_MIN, INT32_MAX));
    out.band = model::band_of(labels, out.priority, out.qos);
    if (const auto sub = Quantity::parse(std::string(labels.get("koordinator.sh/priority")))) {
        out.sub_priority = static_cast<int32_t>(std::clamp<int64_t>(sub->value(), INT32_MIN, INT32_MAX));
    }
    if (const auto* status = annotations.find(kResourceStatus)) read_status(*status, out, faults);
    out.cpu_request = request(pod, "cpu").milli();
    out.memory_request = request(pod, "memory").value();
    out.batch_cpu_request = batch_cpu(pod, "requests");
    out.batch_cpu_limit = batch_cpu(pod, "limits");
    out.ends = base::find(pod, {"metadata", "deletionTimestamp"}) != nullptr;
    if (!is_pod_uid(out.uid)) {
        faults.push_back(fmt::format("pod \"{}\": metadata.uid {} is none: its groups are left alone", out.full_name(),
                                     shown(out.uid)));
        out.uid.clear();
        return out;
    }
    read_containers(pod, out, faults);
    return out;
}

}  // namespace berth::node
