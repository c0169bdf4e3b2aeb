#include <algorithm>

#include "base/json_view.h"
#include "control/pods.h"
#include "control/reconciler.h"
#include "model/read_selectors.h"
#include "model/reader.h"
#include "model/times.h"

namespace berth::control {
namespace {

// How long an eviction that was granted, but whose pod still stands, keeps counting.
constexpr base::Duration kDisruptionTimeout = std::chrono::minutes(2);

Selector selector_of(const Object& budget) {
    const Json* from = base::find(budget.document(), {"spec", "selector"});
    if (!from) return Selector::nothing();
    const std::string text = base::to_text(*from);
    base::JsonParser parser;
    const auto view = parser.parse(text);
    std::string trouble;
    auto selector = view ? model::read_selector(model::Reader(*view, trouble)) : std::nullopt;
    return selector && trouble.empty() ? *selector : Selector::nothing();
}

// How many pods the controllers of these pods want altogether; pods without a known controller count as themselves.
int64_t expected_pods(const std::vector<ObjectPtr>& pods, const Objects& objects) {
    std::map<std::string, int64_t> by_controller;
    int64_t alone = 0;
    for (const auto& pod : pods) {
        const auto* controller = pod->meta.controller();
        ObjectPtr owner;
        for (const auto* resource : {"apps/replicasets", "apps/statefulsets", "replicationcontrollers", "batch/jobs"}) {
            if (!controller || owner) break;
            owner = objects.find(resource, pod->meta.ns, controller->name);
            if (owner && owner->meta.uid != controller->uid) owner = nullptr;
        }
        if (!owner) {
            ++alone;
        } else {
            by_controller[owner->meta.uid] = integer_at(owner->document(), {"spec", "replicas"},
                                                        integer_at(owner->document(), {"spec", "parallelism"}, 1));
        }
    }
    int64_t sum = alone;
    for (const auto& [uid, replicas] : by_controller) sum += replicas;
    return sum;
}

const std::string kBudgets = "policy/poddisruptionbudgets";

class Disruption final : public Reconciler {
public:
    std::string_view name() const override { return "disruption"; }
    std::string resource() const override { return kBudgets; }
    std::vector<std::string> watches() const override {
        return {kBudgets, "pods", "apps/replicasets", "apps/statefulsets", "replicationcontrollers", "batch/jobs"};
    }

    std::vector<Key> concerned(const std::string& resource, const Object& object,
                               const Objects& objects) const override {
        if (resource == kBudgets) return {{object.meta.ns, object.meta.name}};
        std::vector<Key> targets;
        for (const auto& budget : objects.list(kBudgets, object.meta.ns)) {
            targets.push_back({budget->meta.ns, budget->meta.name});
        }
        return targets;
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const auto budget = objects.find(resource(), target.ns, target.name);
        if (!budget || is_deleting(*budget)) return {};
        const Selector selector = selector_of(*budget);
        std::vector<ObjectPtr> pods;
        for (const auto& pod : objects.list("pods", target.ns)) {
            if (!is_terminal(*pod) && selector.matches(pod->meta.labels)) pods.push_back(pod);
        }
        Reconciled outcome;
        const JsonObject disrupted = still_disrupted(*budget, pods, now, outcome);
        const auto healthy = std::count_if(pods.begin(), pods.end(), [&](const auto& pod) {
            return !is_deleting(*pod) && is_ready(*pod) && !disrupted.contains(pod->meta.name);
        });
        const Json* least = base::find(budget->document(), {"spec", "minAvailable"});
        const Json* most = base::find(budget->document(), {"spec", "maxUnavailable"});
        const bool plain = least && least->is_int64();
        const int64_t expected = plain ? static_cast<int64_t>(pods.size()) : expected_pods(pods, objects);
        int64_t desired = 0;
        if (least) desired = scaled(least, expected, true, 0);
        if (most) desired = std::max<int64_t>(0, expected - scaled(most, expected, true, 0));
        tell(*budget, disrupted, healthy, desired, expected, now, outcome.writes);
        return outcome;
    }

private:
    // Evictions that were granted and whose pods are still there and not yet deleting.
    static JsonObject still_disrupted(const Object& budget, const std::vector<ObjectPtr>& pods, base::Time now,
                                      Reconciled& outcome) {
        JsonObject left;
        const Json* all = base::find(budget.document(), {"status", "disruptedPods"});
        if (!all || !all->is_object()) return left;
        for (const auto& [name, since] : all->as_object()) {
            const auto pod =
                std::find_if(pods.begin(), pods.end(), [&](const auto& p) { return p->meta.name == name; });
            const auto time = model::parse_time(since.is_string() ? std::string_view(since.as_string()) : "");
            if (pod == pods.end() || is_deleting(**pod) || !time || *time + kDisruptionTimeout <= now) continue;
            left[name] = since;
            const base::Time due = *time + kDisruptionTimeout;
            outcome.again = outcome.again ? std::min(*outcome.again, due) : due;
        }
        return left;
    }

    static void tell(const Object& budget, const JsonObject& disrupted, int64_t healthy, int64_t desired,
                     int64_t expected, base::Time now, Writes& writes) {
        const int64_t allowed = expected > 0 ? std::max<int64_t>(0, healthy - desired) : 0;
        const int64_t generation = integer_at(budget.document(), {"metadata", "generation"}, 0);
        const Json* before = base::find(budget.document(), {"status", "disruptedPods"});
        const bool same_pods = before && before->is_object() ? before->as_object() == disrupted : disrupted.empty();
        const auto has = [&](std::string_view field, int64_t value) {
            return integer_at(budget.document(), {"status", field}, -1) == value;
        };
        if (same_pods && has("currentHealthy", healthy) && has("desiredHealthy", desired) &&
            has("expectedPods", expected) && has("disruptionsAllowed", allowed) &&
            has("observedGeneration", generation)) {
            return;
        }
        JsonObject pods;
        if (before && before->is_object()) {
            for (const auto& [name, since] : before->as_object()) pods[name] = nullptr;
        }
        for (const auto& [name, since] : disrupted) pods[name] = since;
        JsonObject condition{{"type", "DisruptionAllowed"},
                             {"status", allowed > 0 ? "True" : "False"},
                             {"reason", allowed > 0 ? "SufficientPods" : "InsufficientPods"},
                             {"message", ""},
                             {"observedGeneration", generation},
                             {"lastTransitionTime", model::time_text(now)}};
        // The revision makes it a refusal when an eviction was granted in between: then it is computed anew.
        writes.push_back(if_unchanged(patch_status(kBudgets, budget.meta,
                                                   {{"disruptedPods", pods},
                                                    {"currentHealthy", healthy},
                                                    {"desiredHealthy", desired},
                                                    {"expectedPods", expected},
                                                    {"disruptionsAllowed", allowed},
                                                    {"observedGeneration", generation},
                                                    {"conditions", JsonArray{condition}}}),
                                      budget.meta));
    }
};

}  // namespace

std::unique_ptr<Reconciler> disruption_reconciler() {
    return std::make_unique<Disruption>();
}

}  // namespace berth::control
