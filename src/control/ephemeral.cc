// Claims of pods whose volumes are as ephemeral as they are: POD-VOLUME, owned by the pod.
#include <fmt/format.h>

#include "control/pods.h"
#include "control/volumes.h"

namespace berth::control {
namespace {

constexpr const char* kClaimsOfPods = "persistentvolumeclaims";

const JsonArray& volumes_of(const Object& pod) {
    static const JsonArray kNone;
    const Json* list = base::find(pod.document(), {"spec", "volumes"});
    return list && list->is_array() ? list->get_array() : kNone;
}

class EphemeralVolumes final : public Reconciler {
public:
    std::string_view name() const override { return "ephemeral-volume"; }
    std::string resource() const override { return "pods"; }
    std::vector<std::string> watches() const override { return {"pods", kClaimsOfPods}; }

    // A claim that goes may have stood in the way of one of its name.
    std::vector<Key> concerned(const std::string& resource, const Object& object, const Objects&) const override {
        if (resource == "pods") return {{object.meta.ns, object.meta.name}};
        const auto* controller = object.meta.controller();
        if (!controller || controller->kind != "Pod") return {};
        return {{object.meta.ns, controller->name}};
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time) const override {
        const auto pod = objects.find("pods", target.ns, target.name);
        if (!pod || is_deleting(*pod) || is_terminal(*pod)) return {};
        Reconciled out;
        for (const auto& volume : volumes_of(*pod)) {
            const Json* wanted = base::find(volume, {"ephemeral", "volumeClaimTemplate"});
            if (!wanted || !wanted->is_object()) continue;
            const std::string name = fmt::format("{}-{}", pod->meta.name, base::find_string(volume, {"name"}));
            // Another pod's, or nobody's: the scheduler says that it is not this one's.
            if (!objects.find(kClaimsOfPods, target.ns, name)) out.writes.push_back(make(*pod, name, *wanted));
        }
        return out;
    }

private:
    static Write make(const Object& pod, const std::string& name, const Json& wanted) {
        JsonObject meta{{"name", name},
                        {"namespace", pod.meta.ns},
                        {"ownerReferences", JsonArray{controller_reference(pod, "Pod", "v1")}}};
        for (const auto* field : {"labels", "annotations"}) {
            if (const Json* value = base::find(wanted, {"metadata", field})) meta[field] = *value;
        }
        const Json* spec = base::find(wanted, {"spec"});
        return model::create_object(kClaimsOfPods, pod.meta.ns,
                                    JsonObject{{"apiVersion", "v1"},
                                               {"kind", "PersistentVolumeClaim"},
                                               {"metadata", std::move(meta)},
                                               {"spec", spec ? *spec : Json(JsonObject{})}});
    }
};

}  // namespace

std::unique_ptr<Reconciler> ephemeral_volumes_reconciler() {
    return std::make_unique<EphemeralVolumes>();
}

}  // namespace berth::control
