#include <algorithm>

#include "control/pods.h"
#include "control/reconciler.h"
#include "model/read_selectors.h"

namespace berth::control {
namespace {

constexpr size_t kMostPodsAtOnce = 500;
constexpr base::Duration kFirstRest = std::chrono::seconds(1);
constexpr base::Duration kLongestRest = std::chrono::minutes(5);

class ReplicaSets final : public Reconciler {
public:
    std::string_view name() const override { return "replicaset"; }
    std::string resource() const override { return "apps/replicasets"; }
    std::vector<std::string> watches() const override { return {"apps/replicasets", "pods"}; }

    std::vector<Key> concerned(const std::string& resource, const Object& object, const Objects&) const override {
        if (resource == "apps/replicasets") return {{object.meta.ns, object.meta.name}};
        const auto* controller = object.meta.controller();
        if (!controller || controller->kind != "ReplicaSet") return {};
        return {{object.meta.ns, controller->name}};
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const auto set = objects.find("apps/replicasets", target.ns, target.name);
        if (!set || is_deleting(*set)) return {};
        std::vector<ObjectPtr> active;
        Failures failures;
        for (const auto& pod : objects.controlled_by("pods", set->meta.uid)) {
            if (is_active(*pod)) active.push_back(pod);
            if (pod->phase == "Failed") failures.add(*pod);
        }
        Reconciled outcome;
        outcome.again = failures.rest(now);
        scale(*set, active, outcome.again.has_value(), outcome.writes);
        tell(*set, active, outcome.writes);
        return outcome;
    }

private:
    // A set whose pods fail at once (its template names a full node) would fill the store with them: after each one it
    // rests, from a second on twice as long.
    struct Failures {
        int count = 0;
        base::Time last;

        void add(const Object& pod) {
            ++count;
            last = std::max(last, pod.meta.created);
        }
        std::optional<base::Time> rest(base::Time now) const {
            if (count == 0) return std::nullopt;
            const base::Time end =
                last + std::min<base::Duration>(kLongestRest, kFirstRest * (1 << std::min(count - 1, 9)));
            if (end <= now) return std::nullopt;
            return end;
        }
    };

    static void scale(const Object& set, std::vector<ObjectPtr> active, bool rests, Writes& writes) {
        const auto wanted =
            static_cast<size_t>(std::max<int64_t>(0, integer_at(set.document(), {"spec", "replicas"}, 1)));
        if (active.size() < wanted && !rests) {
            const Json* pod_template = base::find(set.document(), {"spec", "template"});
            if (!pod_template) return;
            const Json pod = pod_from_template(*pod_template, set, "ReplicaSet", "apps/v1");
            for (size_t i = 0; i < std::min(kMostPodsAtOnce, wanted - active.size()); ++i) {
                writes.push_back(model::create_object("pods", set.meta.ns, pod));
            }
        }
        if (active.size() > wanted) {
            sort_for_deletion(active);
            active.resize(std::min(kMostPodsAtOnce, active.size() - wanted));
            for (const auto& pod : active) {
                writes.push_back(delete_object("pods", pod->meta));
            }
        }
    }

    static void tell(const Object& set, const std::vector<ObjectPtr>& active, Writes& writes) {
        const auto ready = std::count_if(active.begin(), active.end(), [](const auto& pod) { return is_ready(*pod); });
        const auto count = static_cast<int64_t>(active.size());
        const int64_t generation = integer_at(set.document(), {"metadata", "generation"}, 0);
        const bool same = integer_at(set.document(), {"status", "replicas"}, 0) == count &&
                          integer_at(set.document(), {"status", "readyReplicas"}, 0) == ready &&
                          integer_at(set.document(), {"status", "observedGeneration"}, 0) == generation;
        if (same) return;
        writes.push_back(patch_status("apps/replicasets", set.meta,
                                      {{"replicas", count},
                                       {"fullyLabeledReplicas", count},
                                       {"readyReplicas", ready},
                                       {"availableReplicas", ready},
                                       {"observedGeneration", generation}}));
    }
};

}  // namespace

std::unique_ptr<Reconciler> replicaset_reconciler() {
    return std::make_unique<ReplicaSets>();
}

}  // namespace berth::control
