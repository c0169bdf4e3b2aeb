#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "model/meta.h"
#include "model/node_selector.h"
#include "model/quantity.h"
#include "model/selector.h"

// The kinds behind a pod's volumes, as far as placement and binding read them.
namespace berth::model {

enum class AccessMode : uint8_t { ReadWriteOnce = 1, ReadOnlyMany = 2, ReadWriteMany = 4, ReadWriteOncePod = 8 };

// A set of access modes.
struct AccessModes {
    uint8_t bits = 0;
    bool has(AccessMode mode) const { return (bits & static_cast<uint8_t>(mode)) != 0; }
    bool contains(AccessModes others) const { return (bits & others.bits) == others.bits; }
    bool operator==(const AccessModes&) const = default;
};

struct ClaimRef {
    std::string ns;
    std::string name;
    std::string uid;  // empty: whoever made the volume named the claim before it existed
    bool operator==(const ClaimRef&) const = default;
};

// Which CSI driver serves a volume, and as what. In-tree disks that have a CSI driver today are served by it.
struct VolumeSource {
    std::string driver;
    std::string handle;
    bool csi = false;  // written as csi; else an in-tree disk in its driver's words
    bool operator==(const VolumeSource&) const = default;
};

enum class VolumePhase : uint8_t { Pending, Available, Bound, Released, Failed };
enum class ClaimPhase : uint8_t { Pending, Bound, Lost };
enum class ReclaimPolicy : uint8_t { Retain, Recycle, Delete };

struct PersistentVolume {
    Meta meta;
    Quantity capacity;
    std::string storage_class;
    std::string attributes_class;
    AccessModes modes;
    bool block = false;  // volumeMode
    ReclaimPolicy reclaim = ReclaimPolicy::Retain;
    std::optional<NodeSelector> affinity;
    std::optional<ClaimRef> claim;
    std::optional<VolumeSource> source;
    VolumePhase phase = VolumePhase::Pending;

    // Whether this volume is kept for, or bound to, the claim.
    bool is_for(const Meta& claim_meta) const;
};

struct PersistentVolumeClaim {
    Meta meta;
    std::optional<std::string> storage_class;  // absent: not said; "": none wanted
    std::string attributes_class;
    std::optional<Selector> selector;
    std::optional<Quantity> request;
    AccessModes modes;
    bool block = false;
    std::string volume;
    ClaimPhase phase = ClaimPhase::Pending;
    std::optional<std::string> selected_node;  // the node for which a volume is being made
    bool bind_completed = false;

    std::string_view class_name() const { return storage_class ? std::string_view(*storage_class) : ""; }
    bool fully_bound() const { return !volume.empty() && bind_completed; }
};

struct StorageClass {
    Meta meta;
    std::string provisioner;
    bool wait_for_consumer = false;  // volumeBindingMode
    bool is_default = false;
    ReclaimPolicy reclaim = ReclaimPolicy::Delete;
    std::optional<std::vector<Selector>> topologies;  // ORed; absent: everywhere

    bool provisions() const { return !provisioner.empty() && provisioner != "kubernetes.io/no-provisioner"; }
    bool reaches(const Labels& node) const;
};

struct CsiNode {
    struct Driver {
        std::string name;
        std::optional<int64_t> limit;
    };
    Meta meta;
    std::vector<Driver> drivers;
};

struct CsiDriver {
    Meta meta;
    bool storage_capacity = false;
};

struct CsiStorageCapacity {
    Meta meta;
    std::string storage_class;
    std::optional<Selector> topology;  // absent: no node
    std::optional<Quantity> largest;   // maximumVolumeSize, else capacity
};

struct VolumeAttachment {
    Meta meta;
    std::string attacher;
    std::string node;
    std::string volume;  // of the PersistentVolume; empty for an inline one
};

Result<PersistentVolume> read_persistent_volume(JsonView object);
Result<PersistentVolumeClaim> read_persistent_volume_claim(JsonView object);
Result<StorageClass> read_storage_class(JsonView object);
Result<CsiNode> read_csi_node(JsonView object);
Result<CsiDriver> read_csi_driver(JsonView object);
Result<CsiStorageCapacity> read_csi_storage_capacity(JsonView object);
Result<VolumeAttachment> read_volume_attachment(JsonView object);

// The CSI driver that took over an in-tree provisioner or plugin ("kubernetes.io/aws-ebs"), or the name itself.
std::string_view driver_of_provisioner(std::string_view provisioner);

inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
inline constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
inline constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";
inline constexpr std::string_view kBetaStorageClass = "volume.beta.kubernetes.io/storage-class";

}  // namespace berth::model
