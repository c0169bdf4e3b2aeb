#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "control/low_node_load.h"
#include "control/migration.h"
#include "control/pods.h"
#include "ledger/view.h"
#include "model/kinds/path.h"
#include "model/node_reservation.h"
#include "model/node_selector.h"
#include "model/times.h"

namespace berth::control {
namespace {

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
    std::map<std::string, int64_t, std::less<>> leaving;                // by node
    std::map<std::string, std::vector<ObjectPtr>, std::less<>> coming;  // by node

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
            if (const auto* to = job->meta.annotations.find(kMovesTo)) coming[*to].push_back(pod);
        }
    }
};

using Seen = std::vector<bool>;  // by row

// One look at the nodes of a pool, at one time.
class Pass {
public:
    Pass(const LoadRules& rules, const LoadMeasure& by, const Objects& objects, const Jobs& jobs, base::Time now)
        : rules_(rules), by_(by), objects_(objects), ledger_(objects.ledger()), jobs_(jobs), now_(now) {}

    // At those that no earlier pool has.
    Writes look(Seen& seen) {
        for (ledger::Row row = 0; row < static_cast<ledger::Row>(ledger_.rows()); ++row) {
            if (!ledger_.alive(row) || !by_.nodes.matches(ledger_.node(row).meta.labels)) continue;
            if (seen[row]) continue;
            seen[row] = true;
            measure(row);
        }
        judge();
        const Fits fits = [&](const LoadMove& move, size_t target) {
            const auto& pod = ledger_.pod(pods_[move.node][move.pod]);
            return may_stand_on(*pod.spec, ledger_.node(rows_[target]));
        };
        for (const auto& move : moves_for(nodes_, rules_, by_, fits)) {
            if (rules_.dry_run) {
                would_[move.node].push_back(Json(nodes_[move.node].pods[move.pod].name));
            } else {
                order(move);
            }
        }
        for (size_t i = 0; i < nodes_.size(); ++i) tell_count(i);
        return std::move(out_);
    }

private:
    void measure(ledger::Row row) {
        const model::Node& node = ledger_.node(row);
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
        count_coming(out);
        metrics_.push_back(seen);
        rows_.push_back(row);
        nodes_.push_back(std::move(out));
    }

    // Each with what it uses where it is still.
    void count_coming(LoadedNode& node) const {
        const auto pods = jobs_.coming.find(node.name);
        if (pods == jobs_.coming.end()) return;
        for (const auto& pod : pods->second) {
            const auto index = ledger_.find_pod(pod->meta.uid);
            const auto metric = objects_.find(kNodeMetrics, "", pod->node);
            if (index == ledger::kNone || !metric) continue;
            const auto& entry = ledger_.pod(index);
            const Load used = used_by(entry, read_node_metric(metric->document()));
            node.coming += used;
            if (is_prod(entry)) node.coming_prod += used;
            node.free -= request_of(entry);
        }
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
        const auto all = levels_of(nodes_, by_, false), prod = levels_of(nodes_, by_, true);
        pods_.resize(nodes_.size());
        counts_.resize(nodes_.size());
        would_.resize(nodes_.size());
        for (size_t i = 0; i < nodes_.size(); ++i) {
            const bool busy =
                is_high(nodes_[i].used, all[i], by_.high) || is_high(nodes_[i].prod, prod[i], by_.prod_high);
            count(i, busy);
            if (busy) find_pods(i);
        }
    }

    void count(size_t i, bool busy) {
        Count& count = counts_[i];
        count.busy = busy;
        const auto* text = ledger_.node(rows_[i]).meta.annotations.find(kBusyNode);
        count.said = text != nullptr;
        if (!busy) return;
        const auto document = text ? base::parse_json(*text) : Result<Json>(Json());
        const auto at = document ? model::parse_time(model::string_at(*document, ".at")) : Result<base::Time>(now_);
        const bool follows = text && document && at && now_ < *at + 3 * rules_.interval;
        constexpr int64_t kMost = 1'000'000'000;
        const int64_t before = follows ? std::clamp<int64_t>(model::int_at(*document, ".times"), 0, kMost) : 0;
        count.same_look = follows && now_ < *at + rules_.interval;
        nodes_[i].abnormal = before + (count.same_look ? 0 : 1);
        nodes_[i].gives = !count.same_look;  // what came and went since is not measured yet
    }

    // What was seen is written once a look; a node that is busy no more loses it.
    void tell_count(size_t i) {
        const Count& count = counts_[i];
        if (count.busy ? count.same_look : !count.said) return;
        Json value;
        if (count.busy) {
            JsonObject said{{"times", nodes_[i].abnormal}, {"at", model::time_text(now_)}};
            if (!would_[i].empty()) said["wouldMove"] = std::move(would_[i]);
            value = base::to_text(said);
        }
        out_.push_back(patch_object(
            "nodes", ledger_.node(rows_[i]).meta,
            JsonObject{{"metadata", JsonObject{{"annotations", JsonObject{{kBusyNode, std::move(value)}}}}}}));
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

    // Nobody has tried it lately, and its workload does not go as a whole.
    bool may_leave(const Object& pod) {
        if (!may_be_moved(pod, rules_.movable) || jobs_.known.contains(pod.meta.uid)) return false;
        return rules_.movable.few_replicas || !moves_whole(pod);
    }
    // E.g. the only pod of a ReplicaSet: between its end and its replacement there would be none.
    bool moves_whole(const Object& pod) {
        const auto& workload = pod.meta.controller()->uid;
        const auto [whole, fresh] = whole_.try_emplace(workload, false);
        if (fresh) {
            const auto all = objects_.controlled_by("pods", workload);
            const auto active =
                std::count_if(all.begin(), all.end(), [](const auto& each) { return is_active(*each); });
            const auto& unavailable = rules_.limits.unavailable;
            whole->second = moves_per_workload(active, rules_.limits) >= active ||
                            (unavailable.is_said() && unavailable.of(active) >= active);
        }
        return whole->second;
    }

    void order(const LoadMove& move) {
        const auto& node = nodes_[move.node];
        const auto& entry = ledger_.pod(pods_[move.node][move.pod]);
        const auto pod = objects_.find("pods", std::string(entry.ns()), std::string(std::string_view(entry.name)));
        const auto percent = [](int64_t used, int64_t size) {
            return size == 0 ? 100 : used / std::max<int64_t>(1, size / 100);
        };
        const Load& used = move.for_prod ? node.prod : node.used;
        out_.push_back(move_job(
            *pod,
            {.name = fmt::format("low-node-load-{}", pod->meta.uid),
             .label = kRelieves,
             .node = node.name,
             .mode = rules_.job_mode,
             .ttl = rules_.job_ttl,
             .to = rules_.node_fit ? nodes_[move.target].name : "",
             .reason = "NodeTooBusy",
             .message = fmt::format("node {} uses {} % of its cpu and {} % of its memory{}, {} times in "
                                    "a row: the pod is moved to one that is less busy",
                                    node.name, percent(used.cpu, node.size.cpu), percent(used.memory, node.size.memory),
                                    move.for_prod ? " for production" : "", node.abnormal)}));
    }

    struct Count {
        bool busy = false, said = false, same_look = false;
    };

    const LoadRules& rules_;
    const LoadMeasure& by_;
    const Objects& objects_;
    const ledger::View& ledger_;
    const Jobs& jobs_;
    const base::Time now_;
    // By node that was measured:
    std::vector<LoadedNode> nodes_;
    std::vector<NodeMetric> metrics_;
    std::vector<ledger::Row> rows_;
    std::vector<std::vector<ledger::PodIndex>> pods_;  // as in LoadedNode::pods
    std::vector<Count> counts_;
    std::vector<JsonArray> would_;       // be moved
    std::map<std::string, bool> whole_;  // by workload
    Writes out_;
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
        const Jobs jobs(objects);
        Seen seen(objects.ledger().rows());
        Reconciled out;
        const auto look = [&](const LoadMeasure& by) {
            for (auto& write : Pass(rules_, by, objects, jobs, now).look(seen)) out.writes.push_back(std::move(write));
        };
        for (const auto& pool : rules_.pools) look(pool);
        look(rules_);
        out.again = now + rules_.interval;
        return out;
    }

private:
    const LoadRules rules_;
};

}  // namespace

std::unique_ptr<Reconciler> low_node_load_reconciler(LoadRules rules) {
    return std::make_unique<LowNodeLoad>(std::move(rules));
}

}  // namespace berth::control
