#include "control/reserved_cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/json_view.h"
#include "control/migration.h"
#include "control/node_metric.h"
#include "control/pods.h"
#include "model/cpu_set.h"
#include "model/kinds/path.h"
#include "model/node_reservation.h"
#include "model/pod_qos.h"
#include "model/reservation.h"

namespace berth::control {
namespace {

constexpr std::string_view kStatus = "scheduling.koordinator.sh/resource-status";
constexpr base::Duration kRest = std::chrono::minutes(1);  // after a group, before the next look at a node

// The cores of the topology, which are exact, and those of the Node, while the agent lags.
model::CpuIds reserved_of(const Object& node, const Object* topology) {
    model::CpuIds out;
    std::string fault;
    if (topology != nullptr) {
        if (const auto* said = topology->meta.annotations.find(model::kNodeReservation)) {
            if (const auto document = base::parse_json(*said))
                out = model::read_cpu_list(model::string_at(*document, ".reservedCPUs"), fault);
        }
    }
    base::JsonParser parser;
    const auto view = parser.parse(node.text());
    const auto read = view ? model::read_node(*view) : Result<model::Node>(view.error());
    if (!read) return out;
    const auto reservation = model::view_of(*read).reservation;
    return reservation.cpus ? model::cpus_with(out, *reservation.cpus) : out;
}

model::CpuIds cores_of(const Object& pod) {
    const auto* said = pod.meta.annotations.find(kStatus);
    const auto document = said ? base::parse_json(*said) : Result<Json>(Json());
    std::string fault;
    return document ? model::read_cpu_list(model::string_at(*document, ".cpuset"), fault) : model::CpuIds();
}

bool has_own_cores(const Object& pod) {
    const auto qos = model::qos_of(pod.meta.labels, model::kube_qos(pod.document()));
    return (qos == model::Qos::LSE || qos == model::Qos::LSR) && is_active(pod) && !cores_of(pod).empty();
}

struct Group {
    std::vector<ObjectPtr> pods;
    bool is_job = false;
};

std::string group_of(const Object& pod) {
    const auto* controller = pod.meta.controller();
    return controller ? controller->uid : pod.meta.uid;
}

// What happened to the jobs for a pod.
struct Before {
    bool under_way = false, tried = false, failed_for_room = false;
};

class ReservedCores final : public Reconciler {
public:
    std::string_view name() const override { return "reserved-cores"; }
    std::string resource() const override { return "nodes"; }
    std::vector<std::string> watches() const override { return {"nodes", "pods", kTopologies, kMigrationJobs}; }

    std::vector<Key> concerned(const std::string& resource, const Object& object, const Objects&) const override {
        if (resource == "nodes" || resource == kTopologies) return {{"", object.meta.name}};
        if (resource == "pods") {
            if (object.node.empty() || !object.meta.annotations.has(kStatus)) return {};
            return {{"", object.node}};
        }
        const auto node = object.meta.labels.get(kMovesFrom);
        if (node.empty()) return {};
        return {{"", std::string(node)}};
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const auto node = objects.find("nodes", "", target.name);
        if (!node || is_deleting(*node)) return {};
        const auto topology = objects.find(kTopologies, "", target.name);
        const auto reserved = reserved_of(*node, topology.get());
        if (reserved.empty()) return {};
        Reconciled out;
        for (const auto& group : groups_on(target.name, reserved, objects)) {
            bool under_way = false;
            for (const auto& pod : group.pods) {
                const Before before = before_of(*pod, objects);
                under_way = under_way || before.under_way;
                if (before.under_way || (before.tried && !before.failed_for_room)) continue;
                out.writes.push_back(job_for(*pod, target.name, before.failed_for_room));
            }
            // One group after the other: what the first gives back may be all that was wanted.
            if (under_way || !out.writes.empty()) break;
        }
        out.again = now + kRest;
        return out;
    }

private:
    // The groups that have pods on reserved cores, in the order in which they go. A Job is moved whole, wherever its
    // pods are; of others, those on this node.
    static std::vector<Group> groups_on(const std::string& node, const model::CpuIds& reserved,
                                        const Objects& objects) {
        std::map<std::string, Group> groups;
        for (const auto* pod : objects.pods_on(node)) {
            if (!pod->meta.annotations.has(kStatus) || !has_own_cores(*pod)) continue;
            if (!model::cpus_in_both(cores_of(*pod), reserved).empty()) groups[group_of(*pod)];
        }
        if (groups.empty()) return {};
        for (const auto& pod : objects.list("pods")) {
            const auto found = groups.find(group_of(*pod));
            if (found == groups.end() || pod->node.empty() || !is_active(*pod)) continue;
            const auto* controller = pod->meta.controller();
            found->second.is_job = controller != nullptr && controller->kind == "Job";
            if (pod->node == node || found->second.is_job) found->second.pods.push_back(pod);
        }
        std::vector<Group> out;
        for (auto& [uid, group] : groups) out.push_back(std::move(group));
        std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return rank(a) < rank(b); });
        return out;
    }

    // Lower priority, then fewer pods, then fewer cores, then the first name.
    static std::tuple<int64_t, size_t, size_t, std::string> rank(const Group& group) {
        int64_t priority = INT64_MIN;
        size_t cores = 0;
        for (const auto& pod : group.pods) {
            priority = std::max(priority, model::int_at(pod->document(), ".spec.priority"));
            cores += cores_of(*pod).size();
        }
        return {priority, group.pods.size(), cores, group.pods.front()->meta.full_name()};
    }

    static Before before_of(const Object& pod, const Objects& objects) {
        Before out;
        for (const auto& job : objects.list(kMigrationJobs)) {
            if (model::string_at(job->document(), ".spec.podRef.uid") != pod.meta.uid) continue;
            const auto phase = model::string_at(job->document(), ".status.phase");
            const bool ended = phase == "Failed" || phase == "Succeeded";
            const bool reserves = model::string_at(job->document(), ".spec.mode") != "EvictDirectly";
            const auto reason = model::string_at(job->document(), ".status.reason");
            out.under_way = out.under_way || !ended;
            out.tried = out.tried || ended;
            if (ended && !reserves) return {false, true, false};  // all has been tried; it rests until that job goes
            out.failed_for_room =
                out.failed_for_room || (ended && (reason == "Unschedulable" || reason == "ReservationExpired"));
        }
        return out;
    }

    // Nobody would take room elsewhere for one that is made again on its node, or not at all.
    static bool has_no_other_place(const Object& pod) {
        const auto* controller = pod.meta.controller();
        return !controller || controller->kind == "DaemonSet";
    }

    static Write job_for(const Object& pod, const std::string& node, bool no_room) {
        const bool directly = no_room || has_no_other_place(pod);
        return move_job(
            pod, {.name = fmt::format("reserved-cores-{}-{}", pod.meta.uid, directly ? "evict" : "move"),
                  .label = kMovesFrom,
                  .node = node,
                  .mode = directly ? "EvictDirectly" : "ReservationFirst",
                  .reason = "OnReservedCores",
                  .message = fmt::format("it has cores of node {} that are reserved for processes outside Kubernetes: "
                                         "it is {}",
                                         node,
                                         no_room    ? "evicted, since there is no room elsewhere"
                                         : directly ? "evicted"
                                                    : "moved")});
    }
};

}  // namespace

std::unique_ptr<Reconciler> reserved_cores_reconciler() {
    return std::make_unique<ReservedCores>();
}

}  // namespace berth::control
