#include "ledger/intake.h"

#include <algorithm>

#include "base/check.h"
#include "base/json_view.h"
#include "ledger/spaces.h"
#include "model/node.h"
#include "model/storage.h"
#include "model/workloads.h"

namespace berth::ledger {
namespace {

constexpr auto kNobody = Change{};  // what it changes, is asked at the next attempt
constexpr auto kByName = Change{};  // whoever may start then is told by name

template <auto Read>
Result<Object> read(JsonView document, uint64_t revision) {
    auto object = TRY(Read(document));
    if constexpr (requires { object.meta; }) {
        if (revision != 0) object.meta.revision = revision;
    }
    return Object(std::make_shared<const decltype(object)>(std::move(object)));
}

template <model::WorkloadKind Of>
Result<model::Workload> workload(JsonView document) {
    return model::read_workload(Of, document);
}

template <class T>
void put(Ledger& ledger, const Object& object) {
    ledger.put(object.as<T>());
}

template <class T>
void put_value(Ledger& ledger, const Object& object) {
    ledger.put(*object.as<T>());
}

template <class T>
void put_volume(Ledger& ledger, const Object& object) {
    ledger.volumes().put(object.as<T>());
}

template <void (Volumes::*Remove)(std::string_view, std::string_view)>
void remove_volume(Ledger& ledger, const model::Meta& meta) {
    (ledger.volumes().*Remove)(meta.full_name(), meta.uid);
}

// Those who share count them by namespace.
void put_claim(Ledger& ledger, const Object& object) {
    put_volume<model::PersistentVolumeClaim>(ledger, object);
    if (ledger.spaces()) ledger.spaces()->touch_claims();
}
void remove_claim(Ledger& ledger, const model::Meta& meta) {
    remove_volume<&Volumes::remove_claim>(ledger, meta);
    if (ledger.spaces()) ledger.spaces()->touch_claims();
}

template <model::WorkloadKind Of>
constexpr Kind workload_row(std::string_view kind, std::string_view group, std::string_view plural) {
    return {kind,
            group,
            "v1",
            plural,
            Reader::Decides,
            kNobody,
            read<workload<Of>>,
            put_value<model::Workload>,
            [](Ledger& ledger, const model::Meta& meta) {
                ledger.remove_workload(Of, meta.ns.empty() ? "default" : meta.ns, meta.name);
            },
            typeid(model::Workload)};
}

// By what namespaces share; of no use where nobody asks for shares.
template <class T>
void put_rule(Ledger& ledger, const Object& object) {
    if (ledger.spaces()) ledger.spaces()->put(object.as<T>());
}

template <auto Read, class T, void (Volumes::*Remove)(std::string_view, std::string_view)>
constexpr Kind volume_row(std::string_view kind, std::string_view group, std::string_view plural, Reader reader) {
    return {kind,     group, "v1", plural, reader, Change::Volume, read<Read>, put_volume<T>, remove_volume<Remove>,
            typeid(T)};
}

constexpr std::string_view kStorage = "storage.k8s.io";

constexpr Kind kKinds[] = {
    {"Node", "", "v1", "nodes", Reader::Counts, Change::NodeAdded, read<model::read_node>, put<model::Node>,
     [](Ledger& ledger, const model::Meta& meta) { ledger.remove_node(meta.name); }, typeid(model::Node)},
    {"NodeResourceTopology", "topology.node.k8s.io", "v1alpha1", "noderesourcetopologies", Reader::Counts,
     Change::Parts, read<model::read_node_topology>, put<model::NodeTopology>,
     [](Ledger& ledger, const model::Meta& meta) { ledger.remove_topology(meta.name, meta.uid); },
     typeid(model::NodeTopology)},
    {"Device", "scheduling.koordinator.sh", "v1alpha1", "devices", Reader::Counts, Change::Parts,
     read<model::read_device>, put<model::Device>,
     [](Ledger& ledger, const model::Meta& meta) { ledger.remove_devices(meta.name, meta.uid); },
     typeid(model::Device)},
    {"Namespace", "", "v1", "namespaces", Reader::Decides, Change::Namespace, read<model::read_namespace>,
     put_value<model::Namespace>, [](Ledger& ledger, const model::Meta& meta) { ledger.remove_namespace(meta.name); },
     typeid(model::Namespace)},
    workload_row<model::WorkloadKind::Service>("Service", "", "services"),
    workload_row<model::WorkloadKind::ReplicationController>("ReplicationController", "", "replicationcontrollers"),
    workload_row<model::WorkloadKind::ReplicaSet>("ReplicaSet", "apps", "replicasets"),
    workload_row<model::WorkloadKind::StatefulSet>("StatefulSet", "apps", "statefulsets"),
    volume_row<model::read_persistent_volume, model::PersistentVolume, &Volumes::remove_volume>(
        "PersistentVolume", "", "persistentvolumes", Reader::Judges),
    {"PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", Reader::Judges, Change::Volume,
     read<model::read_persistent_volume_claim>, put_claim, remove_claim, typeid(model::PersistentVolumeClaim)},
    volume_row<model::read_storage_class, model::StorageClass, &Volumes::remove_class>(
        "StorageClass", kStorage, "storageclasses", Reader::Judges),
    volume_row<model::read_csi_node, model::CsiNode, &Volumes::remove_csi_node>("CSINode", kStorage, "csinodes",
                                                                                Reader::Judges),
    volume_row<model::read_csi_driver, model::CsiDriver, &Volumes::remove_csi_driver>("CSIDriver", kStorage,
                                                                                      "csidrivers", Reader::Decides),
    volume_row<model::read_csi_storage_capacity, model::CsiStorageCapacity, &Volumes::remove_capacity>(
        "CSIStorageCapacity", kStorage, "csistoragecapacities", Reader::Decides),
    volume_row<model::read_volume_attachment, model::VolumeAttachment, &Volumes::remove_attachment>(
        "VolumeAttachment", kStorage, "volumeattachments", Reader::Judges),
    {"PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets", Reader::Decides, kNobody,
     read<model::read_pod_disruption_budget>,
     [](Ledger& ledger, const Object& object) { ledger.budgets().put(object.as<model::PodDisruptionBudget>()); },
     [](Ledger& ledger, const model::Meta& meta) { ledger.budgets().remove(meta.full_name(), meta.uid); },
     typeid(model::PodDisruptionBudget)},
    {"PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", Reader::Decides, kNobody,
     read<model::read_priority_class>,
     [](Ledger& ledger, const Object& object) { ledger.priority_classes().put(*object.as<model::PriorityClass>()); },
     [](Ledger& ledger, const model::Meta& meta) { ledger.priority_classes().remove(meta.name); },
     typeid(model::PriorityClass)},
    {"ResourceQuota", "", "v1", "resourcequotas", Reader::Shares, kByName, read<model::read_resource_quota>,
     put_rule<model::ResourceQuota>,
     [](Ledger& ledger, const model::Meta& meta) {
         if (ledger.spaces()) ledger.spaces()->remove_quota(meta.full_name());
     },
     typeid(model::ResourceQuota)},
    {"Consumer", model::kSharesGroup, "v1", "consumers", Reader::Shares, kByName, read<model::read_consumer>,
     put_rule<model::Consumer>,
     [](Ledger& ledger, const model::Meta& meta) {
         if (ledger.spaces()) ledger.spaces()->remove_consumer(meta.name);
     },
     typeid(model::Consumer)},
    {"Reservation", "scheduling.koordinator.sh", "v1alpha1", "reservations", Reader::Counts, Change::Reservation,
     read<model::read_reservation>, put<model::Reservation>,
     [](Ledger& ledger, const model::Meta& meta) { ledger.remove_reservation(meta.uid); }, typeid(model::Reservation)},
    {"Pod", "", "v1", "pods", Reader::Counts, Change::PodBound, read<model::read_pod>, put_value<model::Pod>,
     [](Ledger& ledger, const model::Meta& meta) { ledger.remove_pod(meta.uid); }, typeid(model::Pod)},
};

}  // namespace

std::string Kind::path() const {
    std::string out(group.empty() ? "/api/" : "/apis/");
    if (!group.empty()) out.append(group).append("/");
    return out.append(version);
}

std::string Kind::stored() const {
    std::string out(group);
    if (!out.empty()) out += '/';
    return out.append(plural);
}

std::span<const Kind> kinds() {
    return kKinds;
}

const Kind* kind_named(std::string_view kind) {
    const auto found =
        std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& row) { return row.kind == kind; });
    return found == std::end(kKinds) ? nullptr : &*found;
}

const Kind& kind_of(std::type_index type) {
    const auto found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                    [&](const Kind& row) { return type == std::type_index(row.type); });
    CHECK(found != std::end(kKinds));
    return *found;
}

model::Meta uid_alone(std::string_view uid) {
    model::Meta gone;
    gone.uid = uid;
    return gone;
}

std::vector<std::shared_ptr<const model::PersistentVolumeClaim>> given_default_class(const View& ledger) {
    std::vector<std::shared_ptr<const model::PersistentVolumeClaim>> given;
    std::shared_ptr<const model::StorageClass> chosen;
    for (const auto& found : ledger.volumes().classes().sorted()) {
        if (found->is_default && (!chosen || found->meta.created > chosen->meta.created)) chosen = found;
    }
    if (!chosen) return given;
    for (const auto& claim : ledger.volumes().claims().sorted()) {
        if (claim->storage_class || !claim->volume.empty()) continue;
        auto changed = std::make_shared<model::PersistentVolumeClaim>(*claim);
        changed->storage_class = chosen->meta.name;
        given.push_back(std::move(changed));
    }
    return given;
}

}  // namespace berth::ledger
