// Pods with names, places in an order and claims of their own.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "control/pods.h"
#include "control/reconciler.h"
#include "control/revisions.h"

namespace berth::control {
namespace {

constexpr const char* kStatefulSets = "apps/statefulsets";
constexpr const char* kClaimsOfSet = "persistentvolumeclaims";

// "web-3" of "web" is 3; nullopt: it is not one of its pods.
std::optional<int64_t> ordinal_of(const Object& pod, const Object& set) {
    const std::string_view name = pod.meta.name;
    if (!name.starts_with(set.meta.name + "-")) return std::nullopt;
    const std::string_view digits = name.substr(set.meta.name.size() + 1);
    int64_t ordinal = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
    const bool all = error == std::errc() && end == digits.data() + digits.size();
    return all && std::to_string(ordinal) == digits ? std::optional(ordinal) : std::nullopt;
}

const JsonArray& claim_templates(const Object& set) {
    static const JsonArray kNone;
    const Json* list = base::find(set.document(), {"spec", "volumeClaimTemplates"});
    return list && list->is_array() ? list->get_array() : kNone;
}

// One set and its pods, at one time.
class Ordered {
public:
    Ordered(const Object& set, const Objects& objects, base::Time now)
        : set_(set),
          objects_(objects),
          now_(now),
          revisions_(set, "StatefulSet", objects),
          start_(integer_at(set.document(), {"spec", "ordinals", "start"}, 0)),
          replicas_(std::max<int64_t>(0, integer_at(set.document(), {"spec", "replicas"}, 1))),
          in_order_(base::find_string(set.document(), {"spec", "podManagementPolicy"}) != "Parallel") {}

    Reconciled reconcile() {
        revisions_.keep(out_.writes);
        if (!revisions_.update()) return std::move(out_);  // pods are marked with its name
        sort_pods();
        if (scale() || !in_order_) roll();
        tell();
        return std::move(out_);
    }

private:
    void sort_pods() {
        wanted_.resize(static_cast<size_t>(replicas_));
        for (const auto& pod : objects_.controlled_by("pods", set_.meta.uid)) {
            const auto ordinal = ordinal_of(*pod, set_);
            if (!ordinal) continue;
            all_.push_back(pod);
            if (*ordinal < start_ || *ordinal >= start_ + replicas_) {
                surplus_.push_back(pod);
            } else {
                wanted_[static_cast<size_t>(*ordinal - start_)] = pod;
            }
        }
        std::sort(surplus_.begin(), surplus_.end(),
                  [&](const auto& a, const auto& b) { return *ordinal_of(*a, set_) > *ordinal_of(*b, set_); });
    }

    // True when every pod is there that should be, and none besides; in order, when each is also ready.
    bool scale() {
        bool complete = true;
        for (size_t i = 0; i < wanted_.size(); ++i) {
            if (place(i)) continue;
            if (in_order_) return false;
            complete = false;
        }
        for (const auto& pod : surplus_) {
            complete = false;
            if (!is_deleting(*pod) && release_claims(*pod)) out_.writes.push_back(delete_object("pods", pod->meta));
            if (in_order_) return false;
        }
        return complete;
    }

    // Whether the pod of this place is there, and the next one's turn has come.
    bool place(size_t i) {
        const auto& pod = wanted_[i];
        const int64_t ordinal = start_ + static_cast<int64_t>(i);
        if (!pod) {
            adopt_or_create(ordinal);
            return false;
        }
        if (is_deleting(*pod)) return false;
        if (is_terminal(*pod)) {
            out_.writes.push_back(delete_object("pods", pod->meta));
            return false;
        }
        keep_claims(ordinal);
        return !in_order_ || is_available(*pod);
    }

    void adopt_or_create(int64_t ordinal) {
        keep_claims(ordinal);
        const auto found = objects_.find("pods", set_.meta.ns, fmt::format("{}-{}", set_.meta.name, ordinal));
        if (!found) {
            out_.writes.push_back(model::create_object("pods", set_.meta.ns, pod_for(ordinal)));
        } else if (!found->meta.controller() && !is_deleting(*found)) {
            const JsonArray owners{controller_reference(set_, "StatefulSet", "apps/v1")};
            out_.writes.push_back(if_unchanged(
                patch_object("pods", found->meta, JsonObject{{"metadata", JsonObject{{"ownerReferences", owners}}}}),
                found->meta));
        }
    }

    // Below the partition pods are made as they were before the update.
    const Object& revision_for(int64_t ordinal) const {
        const Object* current = revisions_.find(current_revision());
        return current && ordinal < start_ + partition() && rolls() ? *current : *revisions_.update();
    }

    Json pod_for(int64_t ordinal) const {
        const Object& revision = revision_for(ordinal);
        const std::string name = fmt::format("{}-{}", set_.meta.name, ordinal);
        Json pod = pod_from_template(*Revisions::template_of(revision), set_, "StatefulSet", "apps/v1");
        JsonObject& meta = base::object_at(pod, {"metadata"});
        meta.erase("generateName");
        meta["name"] = name;
        JsonObject& labels = base::object_at(pod, {"metadata", "labels"});
        labels["statefulset.kubernetes.io/pod-name"] = name;
        labels["apps.kubernetes.io/pod-index"] = std::to_string(ordinal);
        labels[kRevisionLabel] = revision.meta.name;
        JsonObject& spec = base::object_at(pod, {"spec"});
        spec["hostname"] = name;
        if (const auto service = base::find_string(set_.document(), {"spec", "serviceName"}); !service.empty()) {
            spec["subdomain"] = service;
        }
        mount_claims(ordinal, spec);
        return pod;
    }

    std::string claim_name(const Json& claim_template, int64_t ordinal) const {
        return fmt::format("{}-{}-{}", base::find_string(claim_template, {"metadata", "name"}), set_.meta.name,
                           ordinal);
    }

    // A claim takes the place of a volume of its name.
    void mount_claims(int64_t ordinal, JsonObject& spec) const {
        JsonArray volumes;
        for (const auto& claim : claim_templates(set_)) {
            volumes.push_back(
                JsonObject{{"name", base::find_string(claim, {"metadata", "name"})},
                           {"persistentVolumeClaim", JsonObject{{"claimName", claim_name(claim, ordinal)}}}});
        }
        const size_t ours = volumes.size();
        if (const Json* given = spec.if_contains("volumes"); given && given->is_array()) {
            for (const auto& volume : given->get_array()) {
                const bool taken = std::any_of(
                    volumes.begin(), volumes.begin() + static_cast<std::ptrdiff_t>(ours), [&](const Json& claim) {
                        return base::find_string(claim, {"name"}) == base::find_string(volume, {"name"});
                    });
                if (!taken) volumes.push_back(volume);
            }
        }
        if (!volumes.empty()) spec["volumes"] = std::move(volumes);
    }

    // Makes those that are missing; by persistentVolumeClaimRetentionPolicy they go with the set.
    void keep_claims(int64_t ordinal) {
        for (const auto& claim : claim_templates(set_)) {
            const std::string name = claim_name(claim, ordinal);
            const auto found = objects_.find(kClaimsOfSet, set_.meta.ns, name);
            if (found) {
                own_claim(*found, retains("whenDeleted") ? nullptr : &set_, "StatefulSet", "apps/v1");
                continue;
            }
            Json made = claim;
            made.as_object()["kind"] = "PersistentVolumeClaim";
            made.as_object()["apiVersion"] = "v1";
            made.as_object().erase("status");
            JsonObject& meta = base::object_at(made, {"metadata"});
            meta["name"] = name;
            meta["namespace"] = set_.meta.ns;
            if (const Json* labels = base::find(set_.document(), {"spec", "selector", "matchLabels"})) {
                for (const auto& label : labels->as_object()) {
                    base::object_at(made, {"metadata", "labels"})[label.key()] = label.value();
                }
            }
            if (!retains("whenDeleted")) {
                base::object_at(made, {"metadata"})["ownerReferences"] =
                    JsonArray{controller_reference(set_, "StatefulSet", "apps/v1")};
            }
            out_.writes.push_back(model::create_object(kClaimsOfSet, set_.meta.ns, std::move(made)));
        }
    }

    bool retains(std::string_view when) const {
        return base::find_string(set_.document(), {"spec", "persistentVolumeClaimRetentionPolicy", when}) != "Delete";
    }

    // Where claims go with the pods that are too many, each belongs to its pod before that goes: true when it does.
    bool release_claims(const Object& pod) {
        if (retains("whenScaled")) return true;
        bool owned = true;
        for (const auto& claim : claim_templates(set_)) {
            const auto found = objects_.find(kClaimsOfSet, set_.meta.ns, claim_name(claim, *ordinal_of(pod, set_)));
            if (found) owned = own_claim(*found, &pod, "Pod", "v1") && owned;
        }
        return owned;
    }

    // True when it is so already. The owners that others gave it stay.
    bool own_claim(const Object& claim, const Object* owner, std::string_view kind, std::string_view version) {
        const auto& owners = claim.meta.owners;
        const auto ours = [&](const model::OwnerRef& each) {
            return each.uid == set_.meta.uid || (each.kind == "Pod" && each.name.starts_with(set_.meta.name + "-"));
        };
        const bool same = owner ? std::any_of(owners.begin(), owners.end(),
                                              [&](const auto& each) { return each.uid == owner->meta.uid; })
                                : std::none_of(owners.begin(), owners.end(), ours);
        if (same || is_deleting(claim)) return same;
        JsonArray next;
        if (owner) next.push_back(controller_reference(*owner, kind, version));
        if (const Json* before = base::find(claim.document(), {"metadata", "ownerReferences"})) {
            for (size_t i = 0; i < before->as_array().size() && i < owners.size(); ++i) {
                if (!ours(owners[i])) next.push_back(before->as_array()[i]);
            }
        }
        out_.writes.push_back(if_unchanged(
            patch_object(kClaimsOfSet, claim.meta, JsonObject{{"metadata", JsonObject{{"ownerReferences", next}}}}),
            claim.meta));
        return false;
    }

    // From the last to the partition, as many at a time as may be unavailable. Old pods that are not available anyway
    // come first; of the others go as many as no unavailable one leaves no room for. E.g. of five two may be out: one
    // new pod is not ready yet, so one old one goes.
    void roll() {
        if (!rolls()) return;
        std::vector<ObjectPtr> broken, sound;
        int64_t spare = most_unavailable();
        for (size_t i = wanted_.size(); i-- > 0;) {
            const auto& pod = wanted_[i];
            const bool there = pod && !is_deleting(*pod);
            const bool available = there && is_available(*pod);
            if (there && static_cast<int64_t>(i) >= partition() && is_old(*pod)) {
                (available ? sound : broken).push_back(pod);
            } else if (!available) {
                --spare;
            }
        }
        const auto replace = [&](const std::vector<ObjectPtr>& pods, int64_t most) {
            for (int64_t i = 0; i < std::min(most, static_cast<int64_t>(pods.size())); ++i)
                out_.writes.push_back(delete_object("pods", pods[static_cast<size_t>(i)]->meta));
        };
        replace(broken, spare);
        replace(sound, spare - static_cast<int64_t>(broken.size()));
    }

    bool is_old(const Object& pod) const {
        return pod.meta.labels.get(kRevisionLabel) != revisions_.update()->meta.name;
    }
    // A share rounds down; at least one, or nothing would ever be updated.
    int64_t most_unavailable() const {
        const Json* given = base::find(set_.document(), {"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"});
        return std::max<int64_t>(1, scaled(given, replicas_, false, 1));
    }
    bool rolls() const { return base::find_string(set_.document(), {"spec", "updateStrategy", "type"}) != "OnDelete"; }
    int64_t partition() const {
        return std::max<int64_t>(
            0, integer_at(set_.document(), {"spec", "updateStrategy", "rollingUpdate", "partition"}, 0));
    }

    bool is_available(const Object& pod) {
        const auto since = ready_since(pod);
        if (!since || pod.phase != "Running") return false;
        const base::Time due =
            *since + std::chrono::seconds(integer_at(set_.document(), {"spec", "minReadySeconds"}, 0));
        if (due <= now_) return true;
        out_.again = out_.again ? std::min(*out_.again, due) : due;
        return false;
    }

    std::string current_revision() const {
        std::string current(base::find_string(set_.document(), {"status", "currentRevision"}));
        return revisions_.find(current) ? current : revisions_.update()->meta.name;
    }

    void tell() {
        const std::string update = revisions_.update()->meta.name;
        std::string current = current_revision();
        int64_t ready = 0, available = 0, updated = 0, at_current = 0;
        std::set<std::string, std::less<>> needed;
        for (const auto& pod : all_) {
            const auto revision = pod->meta.labels.get(kRevisionLabel);
            needed.emplace(revision);
            ready += pod->phase == "Running" && is_ready(*pod);
            available += is_available(*pod);
            updated += !is_deleting(*pod) && revision == update;
            at_current += !is_deleting(*pod) && revision == current;
        }
        const auto count = static_cast<int64_t>(all_.size());
        if (rolls() && updated == replicas_ && count == replicas_ && ready == replicas_) {
            current = update;
            at_current = updated;
        }
        needed.insert(current);
        revisions_.truncate(needed, out_.writes);
        const JsonObject status{{"observedGeneration", integer_at(set_.document(), {"metadata", "generation"}, 0)},
                                {"replicas", count},
                                {"readyReplicas", ready},
                                {"availableReplicas", available},
                                {"currentReplicas", at_current},
                                {"updatedReplicas", updated},
                                {"currentRevision", current},
                                {"updateRevision", update},
                                {"collisionCount", 0}};
        if (!says(set_, status)) out_.writes.push_back(patch_status(kStatefulSets, set_.meta, status));
    }

    const Object& set_;
    const Objects& objects_;
    base::Time now_;
    Revisions revisions_;
    int64_t start_;
    int64_t replicas_;
    bool in_order_;
    std::vector<ObjectPtr> all_;
    std::vector<ObjectPtr> wanted_;   // by place; nullptr: it is missing
    std::vector<ObjectPtr> surplus_;  // the last first
    Reconciled out_;
};

class StatefulSets final : public Reconciler {
public:
    std::string_view name() const override { return "statefulset"; }
    std::string resource() const override { return kStatefulSets; }
    std::vector<std::string> watches() const override {
        return {kStatefulSets, "pods", kClaimsOfSet, "apps/controllerrevisions"};
    }

    std::vector<Key> concerned(const std::string& resource, const Object& object, const Objects&) const override {
        if (resource == kStatefulSets) return {{object.meta.ns, object.meta.name}};
        const auto* controller = object.meta.controller();
        if (!controller || controller->kind != "StatefulSet") return {};
        return {{object.meta.ns, controller->name}};
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const auto set = objects.find(kStatefulSets, target.ns, target.name);
        if (!set || is_deleting(*set)) return {};
        return Ordered(*set, objects, now).reconcile();
    }
};

}  // namespace

std::unique_ptr<Reconciler> statefulset_reconciler() {
    return std::make_unique<StatefulSets>();
}

}  // namespace berth::control
