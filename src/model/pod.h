#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "base/saturating.h"
#include "model/core_wish.h"
#include "model/device_wish.h"
#include "model/labels.h"
#include "model/meta.h"
#include "model/node_selector.h"
#include "model/resources.h"
#include "model/selector.h"
#include "model/taints.h"

namespace berth::model {

enum class Protocol : uint8_t { TCP, UDP, SCTP };

struct HostPort {
    int32_t port = 0;
    Protocol protocol = Protocol::TCP;
    std::string ip = "0.0.0.0";
    auto operator<=>(const HostPort&) const = default;
};

struct PreferredNodeTerm {
    int32_t weight = 0;
    NodeSelectorTerm term;
    bool operator==(const PreferredNodeTerm&) const = default;
};

// Pods that a (anti-)affinity term speaks of: those that match `selector` in `namespaces` or in a namespace whose
// labels match `ns_selector`. Without a selector it matches no pod. matchLabelKeys and mismatchLabelKeys are merged
// into the selector when the pod is read.
struct PodTerm {
    std::optional<Selector> selector;
    std::vector<std::string> namespaces;  // sorted; the pod's own when the term names none and has no ns_selector
    std::optional<Selector> ns_selector;
    std::string topology_key;
    bool operator==(const PodTerm&) const = default;
};

struct WeightedPodTerm {
    int32_t weight = 0;
    PodTerm term;
    bool operator==(const WeightedPodTerm&) const = default;
};

struct SpreadConstraint {
    int32_t max_skew = 1;
    std::string topology_key;
    bool hard = true;                  // DoNotSchedule; else ScheduleAnyway
    std::optional<Selector> selector;  // matchLabelKeys merged in
    std::optional<int32_t> min_domains;
    bool honor_affinity = true;  // nodeAffinityPolicy
    bool honor_taints = false;   // nodeTaintsPolicy
    bool operator==(const SpreadConstraint&) const = default;
};

enum class VolumeKind : uint8_t { Claim, Ephemeral, Csi, GcePd, AwsEbs, AzureDisk, Cinder, Iscsi, Rbd, Other };

// A pod's volume, as far as placement cares.
struct Volume {
    VolumeKind kind = VolumeKind::Other;
    std::string name;                // of the volume in the pod
    std::string id;                  // claim name, pd name, EBS volume id, disk name, iqn, rbd image, CSI driver
    std::string extra;               // rbd: pool; ephemeral: the storage class of its claim
    std::vector<std::string> hosts;  // rbd monitors, iscsi portals are ignored upstream
    bool read_only = false;
    bool operator==(const Volume&) const = default;
};

// Everything of a pod that filters and scorers read. Pods that come from one template have equal specs, so the ledger
// keeps each once and the scheduler caches by it.
struct PodSpec {
    std::string ns;
    Labels labels;
    Resources requests;             // init containers, sidecars, overhead and pod-level resources included; pods = 1
    Resources limits;               // limits.cpu, limits.memory, limits.ephemeral-storage, added up by the same rule
    int64_t scoring_cpu_milli = 0;  // requests with 100m / 200 MiB standing in for a container's missing key
    int64_t scoring_memory = 0;
    int64_t pod_level_cpu_milli = 0;  // of these, what spec.resources adds to the containers' (or, below 0, takes)
    int64_t pod_level_memory = 0;
    Labels node_selector;
    std::optional<std::vector<NodeSelectorTerm>> required_nodes;  // ORed; an empty list matches no node
    std::vector<PreferredNodeTerm> preferred_nodes;
    std::string preferred_fault;  // why the node preferences cannot be weighed, in kube-scheduler's words
    std::vector<PodTerm> affinity;
    std::vector<PodTerm> anti_affinity;
    std::vector<WeightedPodTerm> preferred_affinity;
    std::vector<WeightedPodTerm> preferred_anti_affinity;
    std::vector<Toleration> tolerations;
    std::vector<SpreadConstraint> spread;
    std::vector<HostPort> ports;      // sorted, distinct
    std::vector<std::string> images;  // of init containers and containers, in order, with a tag
    std::vector<Volume> volumes;
    std::string node_name;  // spec.nodeName as asked for by whoever made the pod or reservation
    std::string scheduler_name;
    int32_t priority = 0;
    bool never_preempts = false;
    CoreWish cores;
    DeviceWish devices;
    // Whether it gets cores of its own: LSE or LSR, of the priorities of production.
    bool binds_cores() const { return cores.own_cores && requests.get(kCpu) > 0 && is_prod(); }
    bool is_prod() const {
        const int32_t band = priority / 1000;
        if (cores.band != CoreWish::Band::Unsaid) return cores.band == CoreWish::Band::Prod;
        return band != 3 && band != 5 && band != 7;
    }
    // What NodeResourcesFit counts while it scores this pod: as in kube-scheduler, spec.resources counts only once the
    // pod is placed.
    int64_t asked_cpu_milli() const { return base::saturating_subtract(scoring_cpu_milli, pod_level_cpu_milli); }
    int64_t asked_memory() const { return base::saturating_subtract(scoring_memory, pod_level_memory); }
    bool operator==(const PodSpec&) const = default;
    size_t hash() const;
};

enum class PodPhase : uint8_t { Pending, Running, Succeeded, Failed, Unknown };

struct Pod {
    Meta meta;
    std::shared_ptr<const PodSpec> spec;
    std::string node;  // where it is bound; empty while pending
    std::string nominated_node;
    PodPhase phase = PodPhase::Pending;
    std::vector<std::string> gates;
    std::string priority_class;
    bool has_priority = false;
    bool uses_resource_claims = false;
    bool preempted = false;  // terminating because a scheduler evicted it for another pod
    std::optional<base::Time> started;

    bool terminal() const { return phase == PodPhase::Succeeded || phase == PodPhase::Failed; }
};

// "Running", as the API says it.
std::string_view phase_text(PodPhase phase);

// Reads a v1 Pod; input is defaulted as the API server would (requests from limits and so on).
Result<Pod> read_pod(JsonView object);

// Reads a PodTemplateSpec's spec into the same form, as if a pod with these labels stood in this namespace.
PodSpec read_pod_spec(const Reader& spec, const Reader& status, std::string_view pod_name, std::string ns,
                      Labels labels);

}  // namespace berth::model
