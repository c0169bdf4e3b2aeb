// Objects whose owners are all gone go too; owners that wait for their dependents (foreground) or leave them behind
// (orphan) are let go when that is done.
#include <algorithm>

#include "control/pods.h"
#include "control/reconciler.h"

namespace berth::control {
namespace {

constexpr std::string_view kForeground = "foregroundDeletion";
constexpr std::string_view kOrphan = "orphan";

bool has_finalizer(const Object& object, std::string_view wanted) {
    const Json* finalizers = base::find(object.document(), {"metadata", "finalizers"});
    if (!finalizers || !finalizers->is_array()) return false;
    return std::any_of(finalizers->as_array().begin(), finalizers->as_array().end(),
                       [&](const Json& item) { return item.is_string() && item.as_string() == wanted; });
}

Write patch_meta(const std::string& resource, const Object& object, JsonObject meta) {
    return if_unchanged(patch_object(resource, object.meta, JsonObject{{"metadata", std::move(meta)}}), object.meta);
}

Write without_finalizer(const std::string& resource, const Object& object, std::string_view gone) {
    JsonArray left;
    for (const auto& item : base::find(object.document(), {"metadata", "finalizers"})->as_array()) {
        if (!item.is_string() || item.as_string() != gone) left.push_back(item);
    }
    return patch_meta(resource, object, {{"finalizers", left}});
}

Write without_owner(const std::string& resource, const Object& object, const std::string& uid) {
    JsonArray left;
    for (const auto& item : base::find(object.document(), {"metadata", "ownerReferences"})->as_array()) {
        if (base::find_string(item, {"uid"}) != uid) left.push_back(item);
    }
    return patch_meta(resource, object, {{"ownerReferences", left}});
}

bool blocks(const Object& dependent, const std::string& uid) {
    for (const auto& item : base::find(dependent.document(), {"metadata", "ownerReferences"})->as_array()) {
        const Json* flag = base::find(item, {"blockOwnerDeletion"});
        if (base::find_string(item, {"uid"}) == uid && flag && flag->is_bool() && flag->get_bool()) return true;
    }
    return false;
}

// Its targets are objects of every resource, so a target's ns holds "resource|namespace".
class Garbage final : public Reconciler {
public:
    explicit Garbage(std::vector<std::string> resources) : resources_(std::move(resources)) {}
    std::string_view name() const override { return "garbage-collector"; }
    std::string resource() const override { return ""; }
    std::vector<std::string> watches() const override { return resources_; }

    std::vector<Key> concerned(const std::string& resource, const Object& object,
                               const Objects& objects) const override {
        std::vector<Key> targets;
        if (!object.meta.owners.empty() || is_deleting(object)) targets.push_back(target_of(resource, object));
        for (const auto& [kind, dependent] : objects.dependents(object.meta.uid)) {
            targets.push_back(target_of(kind, *dependent));
        }
        if (!is_deleting(object)) return targets;
        for (const auto& owner : object.meta.owners) add_owner(owner, object.meta.ns, objects, targets);
        return targets;
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time) const override {
        const auto bar = target.ns.find('|');
        const std::string resource = target.ns.substr(0, bar);
        const auto object = objects.find(resource, target.ns.substr(bar + 1), target.name);
        if (!object) return {};
        if (is_deleting(*object)) return release(resource, *object, objects);
        const auto& owners = object->meta.owners;
        const bool orphaned = !owners.empty() && std::none_of(owners.begin(), owners.end(), [&](const auto& owner) {
            return objects.exists(owner.uid);
        });
        if (!orphaned) return {};
        return {{delete_object(resource, object->meta)}};
    }

private:
    static Key target_of(const std::string& resource, const Object& object) {
        return {resource + "|" + object.meta.ns, object.meta.name};
    }

    void add_owner(const model::OwnerRef& owner, const std::string& ns, const Objects& objects,
                   std::vector<Key>& targets) const {
        for (const auto& resource : resources_) {
            for (const auto& space : {ns, std::string()}) {
                const auto found = objects.find(resource, space, owner.name);
                if (found && found->meta.uid == owner.uid) targets.push_back(target_of(resource, *found));
            }
        }
    }

    static Reconciled release(const std::string& resource, const Object& owner, const Objects& objects) {
        Reconciled outcome;
        const auto dependents = objects.dependents(owner.meta.uid);
        if (has_finalizer(owner, kOrphan)) {
            for (const auto& [kind, dependent] : dependents) {
                outcome.writes.push_back(without_owner(kind, *dependent, owner.meta.uid));
            }
            if (dependents.empty()) outcome.writes.push_back(without_finalizer(resource, owner, kOrphan));
        } else if (has_finalizer(owner, kForeground)) {
            bool waiting = false;
            for (const auto& [kind, dependent] : dependents) {
                waiting = waiting || blocks(*dependent, owner.meta.uid);
                if (is_deleting(*dependent)) continue;
                auto write = delete_object(kind, dependent->meta);
                write.body.as_object()["propagationPolicy"] = "Foreground";
                outcome.writes.push_back(std::move(write));
            }
            if (!waiting) outcome.writes.push_back(without_finalizer(resource, owner, kForeground));
        }
        return outcome;
    }

    std::vector<std::string> resources_;
};

}  // namespace

std::unique_ptr<Reconciler> garbage_reconciler(std::vector<std::string> resources) {
    return std::make_unique<Garbage>(std::move(resources));
}

}  // namespace berth::control
