#include <fmt/format.h>

#include <algorithm>

#include "control/pods.h"
#include "control/reconciler.h"
#include "control/templates.h"
#include "model/times.h"

namespace berth::control {
namespace {

constexpr std::string_view kHashLabel = "pod-template-hash";
constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

constexpr std::string_view kHistory = "deployment.kubernetes.io/revision-history";

std::string template_of(const Object& owner) {
    const Json* from = base::find(owner.document(), {"spec", "template"});
    return from ? template_text(*from) : "";
}

int64_t replicas_of(const Object& object) {
    return std::max<int64_t>(0, integer_at(object.document(), {"spec", "replicas"}, 1));
}

int64_t ready_of(const Object& set) {
    return integer_at(set.document(), {"status", "readyReplicas"}, 0);
}

int64_t revision_of(const Object& object) {
    int64_t revision = 0;
    const auto text = object.meta.annotations.get(kRevision);
    for (const char c : text) revision = c >= '0' && c <= '9' ? revision * 10 + (c - '0') : revision;
    return revision;
}

struct Sets {
    ObjectPtr current;           // made from today's template; nullptr: not made yet
    std::vector<ObjectPtr> old;  // the others, oldest revision first
    int64_t replicas = 0, ready = 0;

    // The number that today's template has, or gets: higher than those of all others.
    int64_t revision() const {
        const int64_t highest = old.empty() ? 0 : revision_of(*old.back());
        return current && revision_of(*current) > highest ? revision_of(*current) : highest + 1;
    }
};

Sets sets_of(const Object& deployment, const Objects& objects) {
    Sets out;
    const std::string wanted = template_of(deployment);
    for (const auto& set : objects.controlled_by("apps/replicasets", deployment.meta.uid)) {
        if (is_deleting(*set)) continue;
        out.replicas += integer_at(set->document(), {"status", "replicas"}, 0);
        out.ready += ready_of(*set);
        if (!out.current && template_of(*set) == wanted) {
            out.current = set;
        } else {
            out.old.push_back(set);
        }
    }
    std::sort(out.old.begin(), out.old.end(), [](const auto& a, const auto& b) {
        return std::tuple(revision_of(*a), a->meta.name) < std::tuple(revision_of(*b), b->meta.name);
    });
    return out;
}

Write scale_to(const Object& set, int64_t replicas) {
    return patch_object("apps/replicasets", set.meta, JsonObject{{"spec", JsonObject{{"replicas", replicas}}}});
}

// What a ReplicaSet takes over from its Deployment, the cause of the change among it.
JsonObject notes_for(const Object& deployment, int64_t revision) {
    JsonObject notes;
    for (const auto& [key, value] : deployment.meta.annotations) {
        const bool own = key.starts_with("deployment.kubernetes.io/") || key == kLastApplied;
        if (!own) notes[key] = value;
    }
    notes[kRevision] = std::to_string(revision);
    return notes;
}

Write new_set(const Object& deployment, int64_t replicas, int64_t revision) {
    const std::string hash = hash_text(template_of(deployment));
    Json pod_template = *base::find(deployment.document(), {"spec", "template"});
    base::object_at(pod_template, {"metadata", "labels"})[kHashLabel] = hash;
    Json selector = *base::find(deployment.document(), {"spec", "selector"});
    base::object_at(selector, {"matchLabels"})[kHashLabel] = hash;
    JsonObject meta{{"name", deployment.meta.name + "-" + hash},
                    {"namespace", deployment.meta.ns},
                    {"labels", *base::find(pod_template, {"metadata", "labels"})},
                    {"annotations", notes_for(deployment, revision)},
                    {"ownerReferences", JsonArray{controller_reference(deployment, "Deployment", "apps/v1")}}};
    return model::create_object(
        "apps/replicasets", deployment.meta.ns,
        JsonObject{{"kind", "ReplicaSet"},
                   {"apiVersion", "apps/v1"},
                   {"metadata", meta},
                   {"spec", JsonObject{{"replicas", replicas}, {"selector", selector}, {"template", pod_template}}}});
}

struct Limits {
    int64_t surge = 0;
    int64_t unavailable = 0;
};

// maxSurge rounds up, maxUnavailable down; both zero would stand still, so one may be unavailable.
Limits limits_of(const Object& deployment, int64_t wanted) {
    const auto at = [&](std::string_view field) {
        return base::find(deployment.document(), {"spec", "strategy", "rollingUpdate", field});
    };
    Limits limits{scaled(at("maxSurge"), wanted, true, (wanted + 3) / 4),
                  scaled(at("maxUnavailable"), wanted, false, wanted / 4)};
    if (limits.surge == 0 && limits.unavailable == 0) limits.unavailable = 1;
    return limits;
}

class Deployments final : public Reconciler {
public:
    std::string_view name() const override { return "deployment"; }
    std::string resource() const override { return "apps/deployments"; }
    std::vector<std::string> watches() const override { return {"apps/deployments", "apps/replicasets"}; }

    std::vector<Key> concerned(const std::string& resource, const Object& object, const Objects&) const override {
        if (resource == "apps/deployments") return {{object.meta.ns, object.meta.name}};
        const auto* controller = object.meta.controller();
        if (!controller || controller->kind != "Deployment") return {};
        return {{object.meta.ns, controller->name}};
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const auto deployment = objects.find("apps/deployments", target.ns, target.name);
        if (!deployment || is_deleting(*deployment)) return {};
        const Sets sets = sets_of(*deployment, objects);
        Reconciled outcome;
        const Json* paused = base::find(deployment->document(), {"spec", "paused"});
        if (!paused || !paused->is_bool() || !paused->get_bool()) roll(*deployment, sets, outcome.writes);
        number(*deployment, sets, outcome.writes);
        tidy(*deployment, sets, outcome.writes);
        tell(*deployment, sets, now, outcome.writes);
        return outcome;
    }

private:
    static void roll(const Object& deployment, const Sets& sets, Writes& writes) {
        const int64_t wanted = replicas_of(deployment);
        const bool recreate = base::find_string(deployment.document(), {"spec", "strategy", "type"}) == "Recreate";
        int64_t old_replicas = 0;
        for (const auto& set : sets.old) old_replicas += replicas_of(*set);
        if (recreate && !sets.old.empty()) {
            bool running = false;
            for (const auto& set : sets.old) {
                if (replicas_of(*set) > 0) writes.push_back(scale_to(*set, 0));
                running =
                    running || replicas_of(*set) > 0 || integer_at(set->document(), {"status", "replicas"}, 0) > 0;
            }
            if (running) return;
        }
        const Limits limits = recreate ? Limits{} : limits_of(deployment, wanted);
        const int64_t room = std::max<int64_t>(0, wanted + limits.surge - old_replicas);
        if (!sets.current) {
            writes.push_back(new_set(deployment, std::min(wanted, room), sets.revision()));
            return;
        }
        const int64_t current = replicas_of(*sets.current);
        if (current > wanted) {
            writes.push_back(scale_to(*sets.current, wanted));
        } else if (current < std::min(wanted, room)) {
            writes.push_back(scale_to(*sets.current, std::min(wanted, room)));
        }
        shrink_old(sets, wanted - limits.unavailable, writes);
    }

    // Where an old template came back (`kubectl rollout undo`) its ReplicaSet gets the next number, and remembers the
    // one that it had.
    static void number(const Object& deployment, const Sets& sets, Writes& writes) {
        if (!sets.current) return;
        const Object& set = *sets.current;
        JsonObject notes;
        for (auto& [key, value] : notes_for(deployment, sets.revision())) {
            const auto* has = set.meta.annotations.find(key);
            if (!has || Json(*has) != value) notes[key] = value;
        }
        if (notes.contains(kRevision) && revision_of(set) > 0) {
            std::string before(set.meta.annotations.get(kHistory));
            if (!before.empty()) before += ',';
            notes[kHistory] = before + std::to_string(revision_of(set));
        }
        if (notes.empty()) return;
        writes.push_back(patch_object("apps/replicasets", set.meta,
                                      JsonObject{{"metadata", JsonObject{{"annotations", std::move(notes)}}}}));
    }

    // Takes old pods away while at least `least` stay ready; those that are not ready cost nothing.
    static void shrink_old(const Sets& sets, int64_t least, Writes& writes) {
        int64_t spare = sets.ready - least;
        for (const auto& set : sets.old) {
            const int64_t replicas = replicas_of(*set);
            if (replicas == 0) continue;
            const int64_t unready = std::max<int64_t>(0, replicas - ready_of(*set));
            const int64_t from_ready = std::clamp<int64_t>(spare, 0, replicas - unready);
            spare -= from_ready;
            const int64_t left = replicas - unready - from_ready;
            if (left != replicas) writes.push_back(scale_to(*set, left));
        }
    }

    static void tidy(const Object& deployment, const Sets& sets, Writes& writes) {
        const int64_t keep = integer_at(deployment.document(), {"spec", "revisionHistoryLimit"}, 10);
        int64_t surplus = static_cast<int64_t>(sets.old.size()) - keep;
        for (const auto& set : sets.old) {
            if (surplus <= 0) return;
            if (replicas_of(*set) > 0 || integer_at(set->document(), {"status", "replicas"}, 0) > 0) continue;
            writes.push_back(delete_object("apps/replicasets", set->meta));
            --surplus;
        }
    }

    static Json condition(const Object& deployment, std::string_view type, bool holds, std::string_view reason,
                          std::string_view message, base::Time now) {
        std::string since = model::time_text(now);
        const std::string_view status = holds ? "True" : "False";
        if (const Json* conditions = base::find(deployment.document(), {"status", "conditions"})) {
            for (const auto& old : conditions->as_array()) {
                if (base::find_string(old, {"type"}) != type || base::find_string(old, {"status"}) != status) continue;
                if (base::find_string(old, {"reason"}) == reason) return old;
                since = base::find_string(old, {"lastTransitionTime"});
            }
        }
        return JsonObject{{"type", type},
                          {"status", status},
                          {"lastUpdateTime", model::time_text(now)},
                          {"lastTransitionTime", since},
                          {"reason", reason},
                          {"message", message}};
    }

    static void tell(const Object& deployment, const Sets& sets, base::Time now, Writes& writes) {
        const int64_t wanted = replicas_of(deployment);
        const int64_t updated = sets.current ? integer_at(sets.current->document(), {"status", "replicas"}, 0) : 0;
        const bool available = sets.ready >= wanted - limits_of(deployment, wanted).unavailable;
        const bool complete = sets.current && updated == wanted && sets.replicas == wanted && sets.ready == wanted;
        JsonObject status{
            {"observedGeneration", integer_at(deployment.document(), {"metadata", "generation"}, 0)},
            {"replicas", sets.replicas},
            {"updatedReplicas", updated},
            {"readyReplicas", sets.ready},
            {"availableReplicas", sets.ready},
            {"unavailableReplicas", std::max<int64_t>(0, std::max(wanted, sets.replicas) - sets.ready)},
            {"conditions",
             JsonArray{
                 condition(deployment, "Available", available,
                           available ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                           available ? "Deployment has minimum availability."
                                     : "Deployment does not have minimum availability.",
                           now),
                 condition(deployment, "Progressing", true, complete ? "NewReplicaSetAvailable" : "ReplicaSetUpdated",
                           complete ? "The new ReplicaSet has all its pods." : "The rollout is under way.", now)}}};
        if (!says(deployment, status)) {
            writes.push_back(patch_status("apps/deployments", deployment.meta, std::move(status)));
        }
        if (sets.current && deployment.meta.annotations.get(kRevision) != std::to_string(revision_of(*sets.current))) {
            const JsonObject notes{{kRevision, std::to_string(revision_of(*sets.current))}};
            writes.push_back(patch_object("apps/deployments", deployment.meta,
                                          JsonObject{{"metadata", JsonObject{{"annotations", notes}}}}));
        }
    }
};

}  // namespace

std::unique_ptr<Reconciler> deployment_reconciler() {
    return std::make_unique<Deployments>();
}

}  // namespace berth::control
