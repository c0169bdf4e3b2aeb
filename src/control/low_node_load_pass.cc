#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "control/low_node_load.h"
#include "control/migration.h"
#include "control/pods.h"
#include "ledger/view.h"
#include "model/kinds/path.h"
#include "model/node_reservation.h"
#include "model/node_selector.h"
#include "model/quantity.h"
#include "model/times.h"

namespace berth::control {
namespace {

constexpr int64_t kForbidden = std::numeric_limits<int32_t>::max();  // an eviction cost

int64_t cost_of(const Object& pod, std::string_view annotation) {
    const auto* text = pod.meta.annotations.find(annotation);
    const auto cost = text ? Quantity::parse(*text) : Result<Quantity>(Quantity());
    return cost ? cost->value() : 0;
}

Load request_of(const ledger::PodEntry& pod) {
    return {pod.spec->requests.get(model::kCpu), pod.spec->requests.get(model::kMemory)};
}

bool may_stand_on(const model::PodSpec& pod, const model::Node& node) {
    for (const auto& [key, value] : pod.node_selector) {
        const auto* has = node.meta.labels.find(key);
        if (!has || *has != value) return false;
    }
    if (pod.required_nodes && !model::NodeSelector(*pod.required_nodes).matches(node.meta.name, node.meta.labels))
        return false;
    return std::all_of(node.taints.begin(), node.taints.end(), [&](const auto& taint) {
        return taint.effect == "PreferNoSchedule" || model::tolerates(pod.tolerations, taint);
    });
}

// What happened to pods lately, by their uids.
struct Jobs {
    std::set<std::string, std::less<>> known, under_way;
    std::map<std::string, int64_t, std::less<>> leaving;  // by node

    explicit Jobs(const Objects& objects) {
        for (const auto& job : objects.list(kMigrationJobs)) {
            const Json& document = job->document();
            const auto phase = model::string_at(document, ".status.phase");
            const auto pod = objects.find("pods", std::string(model::string_at(document, ".spec.podRef.namespace")),
                                          std::string(model::string_at(document, ".spec.podRef.name")));
            const std::string uid(model::string_at(document, ".spec.podRef.uid"));
            if (!pod || (!uid.empty() && uid != pod->meta.uid)) continue;
            known.insert(pod->meta.uid);
            if (phase == "Failed" || phase == "Succeeded") continue;
            under_way.insert(pod->meta.uid);
            ++leaving[pod->node];
        }
    }
};

// One look at all nodes, at one time.
class Pass {
public:
    Pass(const LoadRules& rules, const Objects& objects, base::Time now)
        : rules_(rules), objects_(objects), ledger_(objects.ledger()), now_(now), jobs_(objects) {}

    Reconciled look() {
        for (ledger::Row row = 0; row < static_cast<ledger::Row>(ledger_.rows()); ++row) measure(row);
        judge();
        const Fits fits = [&](const LoadMove& move, size_t target) {
            const auto& pod = ledger_.pod(pods_[move.node][move.pod]);
            return may_stand_on(*pod.spec, ledger_.node(rows_[target]));
        };
        for (const auto& move : moves_for(nodes_, rules_, fits)) order(move);
        out_.again = now_ + rules_.interval;
        return std::move(out_);
    }

private:
    void measure(ledger::Row row) {
        if (!ledger_.alive(row)) return;
        const model::Node& node = ledger_.node(row);
        for (const auto& [key, value] : rules_.node_labels) {
            const auto* has = node.meta.labels.find(key);
            if (!has || *has != value) return;
        }
        const auto metric = objects_.find(kNodeMetrics, "", node.meta.name);
        if (!metric) return;
        const auto seen = read_node_metric(metric->document());
        if (!seen.updated || *seen.updated + rules_.expiration <= now_) return;
        const auto allocatable = model::view_of(node).allocatable;
        LoadedNode out;
        out.name = node.meta.name;
        out.size = {allocatable.get(model::kCpu), allocatable.get(model::kMemory)};
        out.used = seen.system;
        out.free = {ledger_.free(row, model::kCpu), ledger_.free(row, model::kMemory)};
        out.schedulable = !node.unschedulable && !node.not_ready;
        const auto leaving = jobs_.leaving.find(out.name);
        out.leaving = leaving == jobs_.leaving.end() ? 0 : leaving->second;
        // Who has gone since, or goes, is not counted; who came since counts with what it asks.
        for (const auto index : ledger_.at(row).pods) {
            const auto& pod = ledger_.pod(index);
            if (pod.terminating || jobs_.under_way.contains(pod.uid.text())) continue;
            const auto used = used_by(pod, seen);
            out.used += used;
            if (is_prod(pod)) out.prod += used;
        }
        metrics_.push_back(seen);
        rows_.push_back(row);
        nodes_.push_back(std::move(out));
    }

    static Load used_by(const ledger::PodEntry& pod, const NodeMetric& seen) {
        const auto found = seen.pods.find(fmt::format("{}/{}", pod.ns(), std::string_view(pod.name)));
        return found == seen.pods.end() ? request_of(pod) : found->second.used;
    }
    static model::Qos qos_of(const ledger::PodEntry& pod) {
        const auto asked = request_of(pod);
        return model::qos_of(pod.spec->labels,
                             asked == Load() ? model::KubeQos::BestEffort : model::KubeQos::Burstable);
    }
    static bool is_prod(const ledger::PodEntry& pod) {
        return model::band_of(pod.spec->labels, pod.priority, qos_of(pod)) == model::PriorityBand::Prod;
    }

    // Counts how often each node was too busy, and finds who could leave it.
    void judge() {
        const auto all = levels_of(nodes_, rules_, false), prod = levels_of(nodes_, rules_, true);
        pods_.resize(nodes_.size());
        for (size_t i = 0; i < nodes_.size(); ++i) {
            const bool busy =
                is_high(nodes_[i].used, all[i], rules_.high) || is_high(nodes_[i].prod, prod[i], rules_.prod_high);
            count(i, busy);
            if (busy) find_pods(i);
        }
    }

    void count(size_t i, bool busy) {
        const auto& meta = ledger_.node(rows_[i]).meta;
        const auto* text = meta.annotations.find(kBusyNode);
        const auto document = text ? base::parse_json(*text) : Result<Json>(Json());
        const auto at = document ? model::parse_time(model::string_at(*document, ".at")) : Result<base::Time>(now_);
        const auto tell = [&](Json value) {
            out_.writes.push_back(patch_object(
                "nodes", meta,
                JsonObject{{"metadata", JsonObject{{"annotations", JsonObject{{kBusyNode, std::move(value)}}}}}}));
        };
        if (!busy) {
            if (text) tell(nullptr);
            return;
        }
        const bool follows = text && document && at && now_ < *at + 3 * rules_.interval;
        const int64_t before = follows ? std::clamp<int64_t>(model::int_at(*document, ".times"), 0, kForbidden) : 0;
        nodes_[i].abnormal = before;
        if (follows && now_ < *at + rules_.interval) return;  // it is the same look still
        nodes_[i].abnormal = before + 1;
        tell(Json(base::to_text(JsonObject{{"times", before + 1}, {"at", model::time_text(now_)}})));
    }

    void find_pods(size_t i) {
        for (const auto index : ledger_.at(rows_[i]).pods) {
            const auto& pod = ledger_.pod(index);
            const auto object = objects_.find("pods", std::string(pod.ns()), std::string(std::string_view(pod.name)));
            if (!object || !may_leave(*object)) continue;
            LoadedPod out;
            out.name = object->meta.full_name();
            out.qos = qos_of(pod);
            out.kube = model::kube_qos(object->document());
            out.band = model::band_of(pod.spec->labels, pod.priority, out.qos);
            out.priority = pod.priority;
            out.deletion_cost = cost_of(*object, "controller.kubernetes.io/pod-deletion-cost");
            out.eviction_cost = cost_of(*object, "scheduling.koordinator.sh/eviction-cost");
            out.used = used_by(pod, metrics_[i]);
            out.asked = request_of(pod);
            out.created = object->meta.created;
            nodes_[i].pods.push_back(std::move(out));
            pods_[i].push_back(index);
        }
    }

    // Somebody makes it again, elsewhere, and nobody has tried it lately.
    bool may_leave(const Object& pod) const {
        const auto* controller = pod.meta.controller();
        if (!controller || controller->kind == "DaemonSet" || controller->kind == "Node") return false;
        if (!is_active(pod) || jobs_.known.contains(pod.meta.uid)) return false;
        if (cost_of(pod, "scheduling.koordinator.sh/eviction-cost") >= kForbidden) return false;
        if (pod.meta.annotations.has("descheduler.alpha.kubernetes.io/evict")) return true;
        const auto names = [&](const auto& list) {
            return std::find(list.begin(), list.end(), pod.meta.ns) != list.end();
        };
        return !names(rules_.not_namespaces) && (rules_.namespaces.empty() || names(rules_.namespaces));
    }

    void order(const LoadMove& move) {
        const auto& node = nodes_[move.node];
        const auto& entry = ledger_.pod(pods_[move.node][move.pod]);
        const auto pod = objects_.find("pods", std::string(entry.ns()), std::string(std::string_view(entry.name)));
        const auto percent = [](int64_t used, int64_t size) {
            return size == 0 ? 100 : used / std::max<int64_t>(1, size / 100);
        };
        const Load& used = move.for_prod ? node.prod : node.used;
        out_.writes.push_back(move_job(
            *pod,
            {.name = fmt::format("low-node-load-{}", pod->meta.uid),
             .label = kRelieves,
             .node = node.name,
             .mode = rules_.job_mode,
             .ttl = rules_.job_ttl,
             .reason = "NodeTooBusy",
             .message = fmt::format("node {} uses {} % of its cpu and {} % of its memory{}, {} times in "
                                    "a row: the pod is moved to one that is less busy",
                                    node.name, percent(used.cpu, node.size.cpu), percent(used.memory, node.size.memory),
                                    move.for_prod ? " for production" : "", node.abnormal)}));
    }

    const LoadRules& rules_;
    const Objects& objects_;
    const ledger::View& ledger_;
    const base::Time now_;
    const Jobs jobs_;
    // By node that was measured:
    std::vector<LoadedNode> nodes_;
    std::vector<NodeMetric> metrics_;
    std::vector<ledger::Row> rows_;
    std::vector<std::vector<ledger::PodIndex>> pods_;  // as in LoadedNode::pods
    Reconciled out_;
};

class LowNodeLoad final : public Reconciler {
public:
    explicit LowNodeLoad(LoadRules rules) : rules_(std::move(rules)) {}
    std::string_view name() const override { return "low-node-load"; }
    std::string resource() const override { return "nodes"; }
    std::vector<std::string> watches() const override { return {"pods", kNodeMetrics, kMigrationJobs}; }
    bool counts() const override { return true; }
    // All nodes are looked at together, by the clock: metrics come all the time.
    std::vector<Key> standing() const override { return {{"", "all"}}; }
    std::vector<Key> concerned(const std::string&, const Object&, const Objects&) const override { return {}; }
    Reconciled reconcile(const Key&, const Objects& objects, base::Time now) const override {
        return Pass(rules_, objects, now).look();
    }

private:
    const LoadRules rules_;
};

}  // namespace

std::unique_ptr<Reconciler> low_node_load_reconciler(LoadRules rules) {
    return std::make_unique<LowNodeLoad>(std::move(rules));
}

}  // namespace berth::control
