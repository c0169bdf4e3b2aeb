#include "model/pod.h"

#include <absl/hash/hash.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "model/pod_resources.h"
#include "model/read_selectors.h"
#include "model/reader.h"

namespace berth::model {
namespace {

constexpr size_t kMostShown = 128;  // of a text that somebody wrote

// Gt and Lt compare integers. E.g. [0].matchExpressions[1].values[0]: Invalid value: "x": for 'Gt', ...
std::string fault_of(const std::vector<PreferredNodeTerm>& preferred) {
    std::vector<std::string> faults;
    for (size_t i = 0; i < preferred.size(); ++i) {
        const auto& expressions = preferred[i].term.match_expressions;
        for (size_t j = 0; j < expressions.size() && preferred[i].weight != 0; ++j) {
            const auto& [key, op, values] = expressions[j];
            if ((op != "Gt" && op != "Lt") || values.size() != 1 || parse_integer(values.front())) continue;
            faults.push_back(
                fmt::format("[{}].matchExpressions[{}].values[0]: Invalid value: \"{}\": for 'Gt', 'Lt' operators, "
                            "the value must be an integer",
                            i, j, values.front().substr(0, kMostShown)));
        }
    }
    return faults.size() < 2 ? fmt::format("{}", fmt::join(faults, "")) : fmt::format("[{}]", fmt::join(faults, ", "));
}

void read_node_affinity(const Reader& affinity, PodSpec& out) {
    const Reader required = affinity["requiredDuringSchedulingIgnoredDuringExecution"];
    if (required.present()) out.required_nodes = read_node_selector_terms(required["nodeSelectorTerms"]);
    const Reader preferred = affinity["preferredDuringSchedulingIgnoredDuringExecution"];
    preferred.each([&](const Reader& item) {
        out.preferred_nodes.push_back(
            {static_cast<int32_t>(item["weight"].integer()), read_node_selector_term(item["preference"])});
    });
    out.preferred_fault = fault_of(out.preferred_nodes);
}

// Each listed key that the pod carries narrows the selector to (or, mismatch, away from) the pod's own value. The API
// server writes the same requirement into the stored selector, so what is already there is not added again.
void merge_keys(std::optional<Selector>& selector, const Reader& keys, const Labels& labels, Requirement::Op op) {
    if (!selector) return;
    std::vector<Requirement> all = selector->requirements();
    std::set<std::string, std::less<>> known;  // keys that are narrowed so already
    for (const auto& requirement : all) {
        const std::string* value = labels.find(requirement.key);
        if (value && requirement == Requirement{requirement.key, op, {*value}}) known.insert(requirement.key);
    }
    keys.each([&](const Reader& item) {
        const std::string* value = labels.find(item.text());
        if (!value || !known.emplace(item.text()).second) return;
        all.push_back({std::string(item.text()), op, {*value}});
    });
    if (all.size() != selector->requirements().size()) selector = Selector(std::move(all));
}

PodTerm read_pod_term(const Reader& from, const PodSpec& pod) {
    PodTerm term;
    term.selector = read_selector(from["labelSelector"]);
    merge_keys(term.selector, from["matchLabelKeys"], pod.labels, Requirement::Op::In);
    merge_keys(term.selector, from["mismatchLabelKeys"], pod.labels, Requirement::Op::NotIn);
    term.namespaces = read_texts(from["namespaces"]);
    term.ns_selector = read_selector(from["namespaceSelector"]);
    if (term.namespaces.empty() && !term.ns_selector) term.namespaces.push_back(pod.ns);
    std::sort(term.namespaces.begin(), term.namespaces.end());
    term.topology_key = from["topologyKey"].text();
    return term;
}

void read_pod_affinity(const Reader& from, const PodSpec& pod, std::vector<PodTerm>& required,
                       std::vector<WeightedPodTerm>& preferred) {
    const Reader hard = from["requiredDuringSchedulingIgnoredDuringExecution"];
    hard.each([&](const Reader& item) { required.push_back(read_pod_term(item, pod)); });
    const Reader soft = from["preferredDuringSchedulingIgnoredDuringExecution"];
    soft.each([&](const Reader& item) {
        preferred.push_back(
            {static_cast<int32_t>(item["weight"].integer()), read_pod_term(item["podAffinityTerm"], pod)});
    });
}

SpreadConstraint read_spread(const Reader& from, const Labels& labels) {
    SpreadConstraint out;
    out.max_skew = static_cast<int32_t>(from["maxSkew"].integer(1));
    out.topology_key = from["topologyKey"].text();
    out.hard = from["whenUnsatisfiable"].text() != "ScheduleAnyway";
    out.selector = read_selector(from["labelSelector"]);
    merge_keys(out.selector, from["matchLabelKeys"], labels, Requirement::Op::In);
    const Reader min_domains = from["minDomains"];
    if (min_domains.present()) out.min_domains = static_cast<int32_t>(min_domains.integer());
    out.honor_affinity = from["nodeAffinityPolicy"].text() != "Ignore";
    out.honor_taints = from["nodeTaintsPolicy"].text() == "Honor";
    return out;
}

void read_ports(const Reader& containers, bool host_network, bool sidecars_only, std::vector<HostPort>& out) {
    containers.each([&](const Reader& container) {
        if (sidecars_only && container["restartPolicy"].text() != "Always") return;
        const Reader ports = container["ports"];
        ports.each([&](const Reader& item) {
            int64_t port = item["hostPort"].integer();
            if (port == 0 && host_network) port = item["containerPort"].integer();
            const Reader number = item["hostPort"];
            if (port < 0 || port > 65535) return number.wrong("must be between 0 and 65535");
            if (port == 0) return;
            HostPort entry;
            entry.port = static_cast<int32_t>(port);
            const auto protocol = item["protocol"].text();
            entry.protocol = protocol == "UDP" ? Protocol::UDP : protocol == "SCTP" ? Protocol::SCTP : Protocol::TCP;
            if (const auto ip = item["hostIP"].text(); !ip.empty()) entry.ip = ip;
            out.push_back(std::move(entry));
        });
    });
}

// "nginx" is "nginx:latest": images are compared by what the kubelet reports.
std::string with_tag(std::string_view image) {
    std::string name(image);
    const auto slash = name.rfind('/');
    const auto colon = name.rfind(':');
    if (colon == std::string::npos || (slash != std::string::npos && colon < slash)) name += ":latest";
    return name;
}

void read_images(const Reader& containers, std::vector<std::string>& out) {
    containers.each([&](const Reader& item) { out.push_back(with_tag(item["image"].text())); });
}

Volume read_volume(const Reader& from, std::string_view pod_name) {
    Volume volume;
    volume.name = from["name"].text();
    const Reader claim = from["persistentVolumeClaim"];
    const Reader ephemeral = from["ephemeral"];
    const Reader csi = from["csi"];
    const Reader gce = from["gcePersistentDisk"];
    const Reader ebs = from["awsElasticBlockStore"];
    const Reader azure = from["azureDisk"];
    const Reader cinder = from["cinder"];
    const Reader iscsi = from["iscsi"];
    const Reader rbd = from["rbd"];
    const auto set = [&](VolumeKind kind, const Reader& source, std::string_view id) {
        volume.kind = kind;
        volume.id = id;
        volume.read_only = source["readOnly"].flag();
    };
    if (claim.present()) {
        set(VolumeKind::Claim, claim, claim["claimName"].text());
    } else if (ephemeral.present()) {
        set(VolumeKind::Ephemeral, ephemeral, std::string(pod_name) + "-" + volume.name);
        const Reader claim_template = ephemeral["volumeClaimTemplate"];
        const Reader claim_spec = claim_template["spec"];
        volume.extra = claim_spec["storageClassName"].text();
    } else if (csi.present()) {
        set(VolumeKind::Csi, csi, csi["driver"].text());
    } else if (gce.present()) {
        set(VolumeKind::GcePd, gce, gce["pdName"].text());
    } else if (ebs.present()) {
        set(VolumeKind::AwsEbs, ebs, ebs["volumeID"].text());
    } else if (azure.present()) {
        set(VolumeKind::AzureDisk, azure, azure["diskURI"].text());
    } else if (cinder.present()) {
        set(VolumeKind::Cinder, cinder, cinder["volumeID"].text());
    } else if (iscsi.present()) {
        set(VolumeKind::Iscsi, iscsi, iscsi["iqn"].text());
    } else if (rbd.present()) {
        set(VolumeKind::Rbd, rbd, rbd["image"].text());
        volume.extra = rbd["pool"].present() ? std::string(rbd["pool"].text()) : "rbd";
        volume.hosts = read_texts(rbd["monitors"]);
    }
    return volume;
}

PodPhase read_phase(std::string_view phase) {
    if (phase == "Running") return PodPhase::Running;
    if (phase == "Succeeded") return PodPhase::Succeeded;
    if (phase == "Failed") return PodPhase::Failed;
    return phase == "Unknown" ? PodPhase::Unknown : PodPhase::Pending;
}

}  // namespace

// Not every field takes part: equal specs hash alike, and what is left out seldom differs alone.
size_t PodSpec::hash() const {
    size_t terms = affinity.size() * 31 + anti_affinity.size();
    if (required_nodes) {
        for (const auto& term : *required_nodes) {
            for (const auto& field : term.match_fields) terms += absl::HashOf(field.values);
            for (const auto& expression : term.match_expressions)
                terms += absl::HashOf(expression.key, expression.values);
        }
    }
    size_t named = 0;
    for (const auto& volume : volumes) named += absl::HashOf(volume.id);
    for (const auto& port : ports) named += absl::HashOf(port.port);
    return absl::HashOf(ns, labels, requests, scoring_cpu_milli, scoring_memory, node_selector, images, spread.size(),
                        tolerations.size(), priority, terms, named, cores.own_cores, cores.numa, cores.required,
                        cores.preferred);
}

PodSpec read_pod_spec(const Reader& spec, const Reader& status, std::string_view pod_name, std::string ns,
                      Labels labels) {
    PodSpec out;
    out.ns = std::move(ns);
    out.labels = std::move(labels);
    PodRequests requests = read_requests(spec, status);
    out.requests = std::move(requests.requests);
    out.limits = read_limits(spec);
    out.scoring_cpu_milli = requests.scoring_cpu_milli;
    out.scoring_memory = requests.scoring_memory;
    out.pod_level_cpu_milli = requests.pod_level_cpu_milli;
    out.pod_level_memory = requests.pod_level_memory;
    out.node_selector = read_labels(spec["nodeSelector"]);
    const Reader affinity = spec["affinity"];
    read_node_affinity(affinity["nodeAffinity"], out);
    read_pod_affinity(affinity["podAffinity"], out, out.affinity, out.preferred_affinity);
    read_pod_affinity(affinity["podAntiAffinity"], out, out.anti_affinity, out.preferred_anti_affinity);
    out.tolerations = read_tolerations(spec["tolerations"]);
    const Reader spread = spec["topologySpreadConstraints"];
    spread.each([&](const Reader& item) { out.spread.push_back(read_spread(item, out.labels)); });
    const bool host_network = spec["hostNetwork"].flag();
    read_ports(spec["containers"], host_network, false, out.ports);
    read_ports(spec["initContainers"], host_network, true, out.ports);
    std::sort(out.ports.begin(), out.ports.end());
    out.ports.erase(std::unique(out.ports.begin(), out.ports.end()), out.ports.end());
    read_images(spec["initContainers"], out.images);
    read_images(spec["containers"], out.images);
    const Reader volumes = spec["volumes"];
    volumes.each([&](const Reader& item) { out.volumes.push_back(read_volume(item, pod_name)); });
    out.node_name = spec["nodeName"].text();
    out.scheduler_name = spec["schedulerName"].present() ? spec["schedulerName"].text() : "default-scheduler";
    out.priority = static_cast<int32_t>(spec["priority"].integer());
    out.never_preempts = spec["preemptionPolicy"].text() == "Never";
    return out;
}

// The first DisruptionTarget condition tells why a pod is going.
static bool evicted_by_scheduler(const Reader& conditions) {
    bool found = false;
    bool by_scheduler = false;
    conditions.each([&](const Reader& item) {
        if (found || item["type"].text() != "DisruptionTarget") return;
        found = true;
        by_scheduler = item["status"].text() == "True" && item["reason"].text() == "PreemptionByScheduler";
    });
    return by_scheduler;
}

std::string_view phase_text(PodPhase phase) {
    switch (phase) {
        case PodPhase::Running:
            return "Running";
        case PodPhase::Succeeded:
            return "Succeeded";
        case PodPhase::Failed:
            return "Failed";
        case PodPhase::Unknown:
            return "Unknown";
        case PodPhase::Pending:
            break;
    }
    return "Pending";
}

Result<Pod> read_pod(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    Pod pod;
    pod.meta = read_meta(root);
    if (pod.meta.ns.empty()) pod.meta.ns = "default";
    const Reader spec = root["spec"];
    const Reader status = root["status"];
    pod.node = spec["nodeName"].text();
    auto decoded = std::make_shared<PodSpec>(read_pod_spec(spec, status, pod.meta.name, pod.meta.ns, pod.meta.labels));
    decoded->cores = read_core_wish(pod.meta.labels, pod.meta.annotations);
    decoded->devices = read_device_wish(decoded->requests, pod.meta.annotations);
    decoded->node_name.clear();  // where a pod is bound is not part of what it asks for
    pod.spec = std::move(decoded);
    pod.nominated_node = status["nominatedNodeName"].text();
    pod.phase = read_phase(status["phase"].text());
    const Reader gates = spec["schedulingGates"];
    gates.each([&](const Reader& item) { pod.gates.emplace_back(item["name"].text()); });
    pod.priority_class = spec["priorityClassName"].text();
    pod.has_priority = spec["priority"].present();
    const Reader claims = spec["resourceClaims"];
    claims.each([&](const Reader&) { pod.uses_resource_claims = true; });
    pod.preempted = pod.meta.deleted && evicted_by_scheduler(status["conditions"]);
    if (const Reader start = status["startTime"]; start.present()) pod.started = read_time(start);
    if (!trouble.empty()) return base::bad_request("Pod \"" + pod.meta.full_name() + "\": " + trouble);
    return pod;
}

}  // namespace berth::model
