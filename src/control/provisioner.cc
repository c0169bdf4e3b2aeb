// Volumes without disks, for classes whose provisioner is kSimulatedProvisioner.
#include "control/pods.h"
#include "control/volumes.h"

namespace berth::control {
namespace {

constexpr const char* kVolumes = "persistentvolumes";
constexpr const char* kClaims = "persistentvolumeclaims";
constexpr const char* kClasses = "storage.k8s.io/storageclasses";

class Provisioner final : public Reconciler {
public:
    std::string_view name() const override { return "simulated-provisioner"; }
    std::string resource() const override { return kClaims; }
    std::vector<std::string> watches() const override { return {kClaims, kVolumes, kClasses, "nodes"}; }

    // A class that appears may be what claims wait for; a volume or a node changes nothing for others.
    std::vector<Key> concerned(const std::string& resource, const Object& object,
                               const Objects& objects) const override {
        if (resource == kClaims) return {{object.meta.ns, object.meta.name}};
        std::vector<Key> out;
        if (resource != kClasses) return out;
        for (const auto& claim : objects.list(kClaims)) out.push_back({claim->meta.ns, claim->meta.name});
        return out;
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time) const override {
        const auto object = objects.find(kClaims, target.ns, target.name);
        if (!object || is_deleting(*object)) return {};
        const auto claim = claim_of(*object);
        if (!claim || !claim->volume.empty() || !claim->request) return {};
        const auto made_by = class_of(objects, claim->class_name());
        if (!made_by || made_by->provisioner != kSimulatedProvisioner) return {};
        if (made_by->wait_for_consumer && !claim->selected_node) return {};
        if (claim->selected_node && !objects.find("nodes", "", *claim->selected_node)) return reject(*object);
        const std::string volume = "pvc-" + object->meta.uid;
        if (best_volume(*claim, objects) || objects.find(kVolumes, "", volume)) return {};
        return {{make(*object, *made_by, volume, objects)}};
    }

private:
    // The scheduler chooses anew.
    static Reconciled reject(const Object& claim) {
        return {{patch_seen(kClaims, claim, {{"annotations", JsonObject{{model::kSelectedNode, nullptr}}}}, {})}};
    }

    static Write make(const Object& claim, const model::StorageClass& made_by, const std::string& name,
                      const Objects& objects) {
        const auto copied = [&](std::initializer_list<std::string_view> path) {
            const Json* found = base::find(claim.document(), path);
            return found ? *found : Json(nullptr);
        };
        JsonObject spec{
            {"capacity", JsonObject{{"storage", copied({"spec", "resources", "requests", "storage"})}}},
            {"accessModes", copied({"spec", "accessModes"})},
            {"storageClassName", made_by.meta.name},
            {"persistentVolumeReclaimPolicy", made_by.reclaim == model::ReclaimPolicy::Retain ? "Retain" : "Delete"},
            {"csi", JsonObject{{"driver", kSimulatedProvisioner}, {"volumeHandle", name}}},
            {"claimRef", JsonObject{{"apiVersion", "v1"},
                                    {"kind", "PersistentVolumeClaim"},
                                    {"namespace", claim.meta.ns},
                                    {"name", claim.meta.name},
                                    {"uid", claim.meta.uid}}}};
        if (Json mode = copied({"spec", "volumeMode"}); !mode.is_null()) spec["volumeMode"] = std::move(mode);
        if (Json terms = reachable(made_by, objects); !terms.is_null()) {
            spec["nodeAffinity"] = JsonObject{{"required", JsonObject{{"nodeSelectorTerms", std::move(terms)}}}};
        }
        return model::create_object(
            kVolumes, "",
            JsonObject{
                {"apiVersion", "v1"},
                {"kind", "PersistentVolume"},
                {"metadata", JsonObject{{"name", name},
                                        {"annotations", JsonObject{{model::kProvisionedBy, kSimulatedProvisioner}}}}},
                {"spec", std::move(spec)}});
    }

    // Where the class allows its volumes; null: everywhere.
    static Json reachable(const model::StorageClass& made_by, const Objects& objects) {
        const auto object = objects.find(kClasses, "", made_by.meta.name);
        const Json* topologies = base::find(object->document(), {"allowedTopologies"});
        if (!topologies || !topologies->is_array()) return nullptr;
        JsonArray terms;
        for (const auto& topology : topologies->as_array()) {
            JsonArray expressions;
            const Json* labels = base::find(topology, {"matchLabelExpressions"});
            if (!labels || !labels->is_array()) continue;
            for (const auto& label : labels->as_array()) {
                const Json* values = base::find(label, {"values"});
                expressions.push_back(JsonObject{{"key", base::find_string(label, {"key"})},
                                                 {"operator", "In"},
                                                 {"values", values ? *values : Json(JsonArray())}});
            }
            terms.push_back(JsonObject{{"matchExpressions", std::move(expressions)}});
        }
        if (terms.empty()) return nullptr;
        return terms;
    }
};

}  // namespace

std::unique_ptr<Reconciler> simulated_provisioner_reconciler() {
    return std::make_unique<Provisioner>();
}

}  // namespace berth::control
