#include "control/volumes.h"

#include <algorithm>

#include "base/json_view.h"
#include "control/pods.h"
#include "model/volume_match.h"

namespace berth::control {
namespace {

using model::PersistentVolume;
using model::PersistentVolumeClaim;

constexpr const char* kVolumes = "persistentvolumes";
constexpr const char* kClaims = "persistentvolumeclaims";
constexpr const char* kClasses = "storage.k8s.io/storageclasses";

template <class T>
std::optional<T> read(const Object& object, Result<T> (*reader)(JsonView)) {
    base::JsonParser parser;
    const auto view = parser.parse(object.text());
    if (!view) return std::nullopt;
    auto typed = reader(*view);
    if (!typed) return std::nullopt;
    typed->meta.revision = object.meta.revision;
    return *std::move(typed);
}

JsonObject reference_to(const Object& claim) {
    return {{"apiVersion", "v1"},
            {"kind", "PersistentVolumeClaim"},
            {"namespace", claim.meta.ns},
            {"name", claim.meta.name},
            {"uid", claim.meta.uid}};
}

bool names_claim(const Object& volume) {
    return base::find(volume.document(), {"spec", "claimRef"}) != nullptr;
}

// For claims that were there before it; admission gives it to new ones.
std::string default_class(const Objects& objects) {
    std::optional<model::StorageClass> chosen;
    for (const auto& object : objects.list(kClasses)) {
        auto found = read(*object, model::read_storage_class);
        if (!found || !found->is_default || is_deleting(*object)) continue;
        if (!chosen || found->meta.created > chosen->meta.created) chosen = std::move(found);
    }
    return chosen ? chosen->meta.name : "";
}

class Claims final : public Reconciler {
public:
    std::string_view name() const override { return "persistentvolume-binder"; }
    std::string resource() const override { return kClaims; }
    std::vector<std::string> watches() const override { return {kClaims, kVolumes, kClasses}; }

    // A free volume may be what any unbound claim of its class waits for.
    std::vector<Key> concerned(const std::string& resource, const Object& object,
                               const Objects& objects) const override {
        if (resource == kClaims) return {{object.meta.ns, object.meta.name}};
        const bool kept = resource == kVolumes && names_claim(object);
        if (kept) {
            return {{std::string(base::find_string(object.document(), {"spec", "claimRef", "namespace"})),
                     std::string(base::find_string(object.document(), {"spec", "claimRef", "name"}))}};
        }
        std::vector<Key> out;
        for (const auto& claim : objects.list(kClaims)) {
            if (claim->phase != "Bound") out.push_back({claim->meta.ns, claim->meta.name});
        }
        return out;
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time) const override {
        const auto object = objects.find(kClaims, target.ns, target.name);
        if (!object || is_deleting(*object)) return {};
        const auto claim = claim_of(*object);
        if (!claim) return {};
        if (!claim->storage_class && claim->volume.empty()) {
            const std::string standard = default_class(objects);
            if (!standard.empty()) return {{patch_seen(kClaims, *object, {}, {{"storageClassName", standard}})}};
        }
        const auto volume =
            claim->volume.empty() ? best_volume(*claim, objects) : objects.find(kVolumes, "", claim->volume);
        if (!volume) return without_volume(*object, *claim);
        const auto typed = volume_of(*volume);
        if (!typed) return {};
        if (typed->claim && !typed->is_for(claim->meta)) return without_volume(*object, *claim);
        return bind(*object, *claim, *volume, *typed);
    }

private:
    static Reconciled without_volume(const Object& object, const PersistentVolumeClaim& claim) {
        const std::string_view phase = claim.fully_bound() ? "Lost" : "Pending";
        if (object.phase == phase) return {};
        return {{patch_status(kClaims, object.meta, {{"phase", phase}})}};
    }

    // First the volume names the claim, then the claim the volume, then the claim says so.
    static Reconciled bind(const Object& object, const PersistentVolumeClaim& claim, const Object& volume,
                           const PersistentVolume& typed) {
        if (!typed.claim || typed.claim->uid.empty()) {
            JsonObject notes;
            if (!typed.claim) notes[model::kBoundByController] = "yes";
            return {{patch_seen(kVolumes, volume, {{"annotations", notes}}, {{"claimRef", reference_to(object)}})}};
        }
        if (!claim.fully_bound()) {
            JsonObject notes{{model::kBindCompleted, "yes"}};
            if (claim.volume.empty()) notes[model::kBoundByController] = "yes";
            return {{patch_seen(kClaims, object, {{"annotations", notes}}, {{"volumeName", volume.meta.name}})}};
        }
        if (object.phase == "Bound") return {};
        const Json* modes = base::find(volume.document(), {"spec", "accessModes"});
        const Json* capacity = base::find(volume.document(), {"spec", "capacity"});
        return {{patch_status(kClaims, object.meta,
                              {{"phase", "Bound"},
                               {"accessModes", modes ? *modes : Json(nullptr)},
                               {"capacity", capacity ? *capacity : Json(nullptr)}})}};
    }
};

class VolumesHalf final : public Reconciler {
public:
    std::string_view name() const override { return "persistentvolume-binder"; }
    std::string resource() const override { return kVolumes; }
    std::vector<std::string> watches() const override { return {kVolumes, kClaims}; }

    std::vector<Key> concerned(const std::string& resource, const Object& object,
                               const Objects& objects) const override {
        if (resource == kVolumes) return {{"", object.meta.name}};
        std::vector<Key> out;
        for (const auto& volume : objects.list(kVolumes)) {
            if (base::find_string(volume->document(), {"spec", "claimRef", "name"}) == object.meta.name &&
                base::find_string(volume->document(), {"spec", "claimRef", "namespace"}) == object.meta.ns) {
                out.push_back({"", volume->meta.name});
            }
        }
        return out;
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time) const override {
        const auto object = objects.find(kVolumes, "", target.name);
        if (!object || is_deleting(*object)) return {};
        const auto volume = volume_of(*object);
        if (!volume) return {};
        if (!volume->claim || volume->claim->uid.empty()) return phase(*object, "Available", "");
        const auto holder = objects.find(kClaims, volume->claim->ns, volume->claim->name);
        if (!holder || holder->meta.uid != volume->claim->uid) return claim_gone(*object, *volume);
        const auto claim = claim_of(*holder);
        if (!claim || claim->volume.empty()) return {};  // on its way
        if (claim->volume == object->meta.name) return phase(*object, "Bound", "");
        return let_go(*object, *volume);
    }

private:
    static Reconciled phase(const Object& object, std::string_view wanted, std::string_view message) {
        if (object.phase == wanted) return {};
        JsonObject status{{"phase", wanted}};
        status["message"] = message.empty() ? Json(nullptr) : Json(message);
        return {{patch_status(kVolumes, object.meta, std::move(status))}};
    }

    // The claim took another volume. One that was kept for it by hand keeps its name, not its uid.
    static Reconciled let_go(const Object& object, const PersistentVolume& volume) {
        if (made_for_claim(volume)) return reclaim(object, volume);
        const bool ours = volume.meta.annotations.has(model::kBoundByController);
        const Json left = ours ? Json(nullptr) : Json(JsonObject{{"uid", nullptr}, {"resourceVersion", nullptr}});
        return {{patch_seen(kVolumes, object, {{"annotations", JsonObject{{model::kBoundByController, nullptr}}}},
                            {{"claimRef", left}})}};
    }

    // Never bound: whoever kept it for the claim may not have been first to hear of the claim, so nothing is lost yet.
    static Reconciled claim_gone(const Object& object, const PersistentVolume& volume) {
        const bool was_bound =
            volume.phase != model::VolumePhase::Pending && volume.phase != model::VolumePhase::Available;
        if (!was_bound && !made_for_claim(volume)) return let_go(object, volume);
        return reclaim(object, volume);
    }

    static bool made_for_claim(const PersistentVolume& volume) {
        return volume.meta.annotations.has(model::kProvisionedBy) && volume.reclaim == model::ReclaimPolicy::Delete;
    }

    static Reconciled reclaim(const Object& object, const PersistentVolume& volume) {
        const std::string* maker = volume.meta.annotations.find(model::kProvisionedBy);
        switch (volume.reclaim) {
            case model::ReclaimPolicy::Retain:
                return phase(object, "Released", "");
            case model::ReclaimPolicy::Recycle:
                return phase(object, "Failed", "the reclaim policy Recycle is not supported");
            case model::ReclaimPolicy::Delete:
                break;
        }
        if (!maker) return phase(object, "Failed", "nobody can delete a volume that was not provisioned");
        if (*maker != kSimulatedProvisioner) return phase(object, "Released", "");  // its maker deletes it
        return {{delete_object(kVolumes, object.meta)}};
    }
};

}  // namespace

std::optional<model::PersistentVolume> volume_of(const Object& object) {
    return read(object, model::read_persistent_volume);
}

std::optional<model::PersistentVolumeClaim> claim_of(const Object& object) {
    return read(object, model::read_persistent_volume_claim);
}

std::optional<model::StorageClass> class_of(const Objects& objects, std::string_view name) {
    const auto object = objects.find(kClasses, "", std::string(name));
    return object ? read(*object, model::read_storage_class) : std::nullopt;
}

ObjectPtr best_volume(const PersistentVolumeClaim& claim, const Objects& objects) {
    const auto made_by = class_of(objects, claim.class_name());
    const bool waits = made_by && made_by->wait_for_consumer;
    ObjectPtr best;
    std::optional<model::Quantity> size;
    for (const auto& object : objects.list(kVolumes)) {
        if (base::find_string(object->document(), {"spec", "storageClassName"}) != claim.class_name()) continue;
        const auto volume = volume_of(*object);
        if (!volume || !model::serves(*volume, claim)) continue;
        if (volume->is_for(claim.meta)) return object;
        if (waits || !model::is_free_for(*volume, claim)) continue;
        if (size && !(volume->capacity < *size)) continue;
        best = object;
        size = volume->capacity;
    }
    return best;
}

Write patch_seen(std::string resource, const Object& object, JsonObject metadata, JsonObject spec) {
    JsonObject body{{"metadata", std::move(metadata)}};
    if (!spec.empty()) body["spec"] = std::move(spec);
    return if_unchanged(patch_object(std::move(resource), object.meta, std::move(body)), object.meta);
}

std::unique_ptr<Reconciler> claim_binder_reconciler() {
    return std::make_unique<Claims>();
}

std::unique_ptr<Reconciler> volume_binder_reconciler() {
    return std::make_unique<VolumesHalf>();
}

}  // namespace berth::control
