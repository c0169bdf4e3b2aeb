#include "api/node_mounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/wire.h"
#include "model/kinds/path.h"

namespace berth::api {
namespace {

constexpr size_t kPage = 1000;

// Where a pod mentions objects of a kind; "[]" is every element of a list.
struct Place {
    std::string_view kind;
    std::string_view path;
};

constexpr std::array kInPod{
    Place{"secrets", "spec.imagePullSecrets[].name"},
    Place{"secrets", "spec.volumes[].secret.secretName"},
    Place{"secrets", "spec.volumes[].projected.sources[].secret.name"},
    Place{"secrets", "spec.volumes[].csi.nodePublishSecretRef.name"},
    Place{"secrets", "spec.volumes[].azureFile.secretName"},
    Place{"secrets", "spec.volumes[].cephfs.secretRef.name"},
    Place{"secrets", "spec.volumes[].cinder.secretRef.name"},
    Place{"secrets", "spec.volumes[].flexVolume.secretRef.name"},
    Place{"secrets", "spec.volumes[].iscsi.secretRef.name"},
    Place{"secrets", "spec.volumes[].rbd.secretRef.name"},
    Place{"secrets", "spec.volumes[].scaleIO.secretRef.name"},
    Place{"secrets", "spec.volumes[].storageos.secretRef.name"},
    Place{"configmaps", "spec.volumes[].configMap.name"},
    Place{"configmaps", "spec.volumes[].projected.sources[].configMap.name"},
    Place{"persistentvolumeclaims", "spec.volumes[].persistentVolumeClaim.claimName"},
    Place{"resource.k8s.io/resourceclaims", "spec.resourceClaims[].resourceClaimName"},
    Place{"resource.k8s.io/resourceclaims", "status.resourceClaimStatuses[].resourceClaimName"},
};
constexpr std::array kInContainer{
    Place{"secrets", "env[].valueFrom.secretKeyRef.name"},
    Place{"secrets", "envFrom[].secretRef.name"},
    Place{"configmaps", "env[].valueFrom.configMapKeyRef.name"},
    Place{"configmaps", "envFrom[].configMapRef.name"},
};

bool stands_at(const Json& from, std::string_view path, std::string_view text) {
    const auto list = path.find("[]");
    if (list == std::string_view::npos) return model::string_at(from, fmt::format(".{}", path)) == text;
    const auto& items = model::list_at(from, fmt::format(".{}", path.substr(0, list)));
    const auto rest = path.substr(std::min(list + 3, path.size()));
    return std::any_of(items.begin(), items.end(),
                       [&](const Json& item) { return item.is_object() && stands_at(item, rest, text); });
}

template <size_t N>
bool any_place(const std::array<Place, N>& places, const Json& from, const store::Key& object) {
    return std::any_of(places.begin(), places.end(), [&](const Place& place) {
        return place.kind == object.kind && stands_at(from, place.path, object.name);
    });
}

// The claim that is made for a volume of the pod is called after both.
bool makes_claim(const Json& pod, const store::Key& object) {
    if (object.kind != "persistentvolumeclaims") return false;
    const auto name = model::string_at(pod, ".metadata.name");
    const auto& volumes = model::list_at(pod, ".spec.volumes");
    return std::any_of(volumes.begin(), volumes.end(), [&](const Json& volume) {
        return base::find(volume, {"ephemeral"}) != nullptr &&
               object.name == fmt::format("{}-{}", name, model::string_at(volume, ".name"));
    });
}

bool mentions(const Json& pod, const store::Key& object) {
    if (any_place(kInPod, pod, object) || makes_claim(pod, object)) return true;
    for (const auto* list : {".spec.containers", ".spec.initContainers", ".spec.ephemeralContainers"}) {
        for (const auto& container : model::list_at(pod, list)) {
            if (container.is_object() && any_place(kInContainer, container, object)) return true;
        }
    }
    return false;
}

bool pod_mentions(const store::Record& record, std::string_view node, const store::Key& object) {
    const auto pod = stored_object(record);
    return pod && model::string_at(*pod, ".spec.nodeName") == node && mentions(*pod, object);
}

// A volume is a node's by the claim it is bound to.
bool mounts_volume(const store::Store& objects, std::string_view node, const store::Key& volume) {
    const auto record = objects.get(volume);
    if (record == nullptr) return false;
    const auto object = stored_object(*record);
    if (!object) return false;
    const std::string ns(model::string_at(*object, ".spec.claimRef.namespace"));
    const std::string name(model::string_at(*object, ".spec.claimRef.name"));
    return !name.empty() && node_mounts(objects, node, {"persistentvolumeclaims", ns, name});
}

}  // namespace

bool node_mounts(const store::Store& objects, std::string_view node, const store::Key& object) {
    if (object.kind == "persistentvolumes") return mounts_volume(objects, node, object);
    if (object.ns.empty()) return false;
    const std::string bound = fmt::format("\"nodeName\":\"{}\"", node);
    store::Listing listing{"pods", object.ns, kPage};
    while (true) {
        const auto page = objects.list(listing);
        if (!page) return false;
        for (const auto& record : page->records) {
            if (record->bytes->find(bound) != std::string::npos && pod_mentions(*record, node, object)) return true;
        }
        if (!page->next) return false;
        listing.after = page->next;
    }
}

}  // namespace berth::api
