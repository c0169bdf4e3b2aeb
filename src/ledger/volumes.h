#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"
#include "ledger/ids.h"
#include "ledger/objects.h"
#include "model/pod.h"
#include "model/storage.h"

namespace berth::ledger {

// What has to be written before a pod with unbound claims can be bound to its node: first the prebindings, then the
// provisionings, then wait until every claim in it is bound.
struct VolumeSteps {
    struct Prebinding {
        std::string volume;
        model::ClaimRef claim;
        bool operator==(const Prebinding&) const = default;
    };
    std::string node;
    std::vector<Prebinding> prebindings;         // set the volume's claimRef
    std::vector<model::ClaimRef> provisionings;  // annotate the claim with the selected node
    bool empty() const { return prebindings.empty() && provisionings.empty(); }
    bool operator==(const VolumeSteps&) const = default;
};

// Volumes, claims and their kin, and who uses which claim where. Events come in any order.
class Volumes {
public:
    // A placed pod or a reservation that holds room.
    struct User {
        bool reservation = false;
        uint32_t index = 0;  // PodIndex or ReservationIndex
        bool operator==(const User&) const = default;
    };
    struct Placed {
        User user;
        std::shared_ptr<const model::PodSpec> spec;
    };
    // One attachment to a node: the driver, and "driver/handle".
    struct Attachable {
        std::string driver;
        std::string unique;
        auto operator<=>(const Attachable&) const = default;
    };

    void put(std::shared_ptr<const model::PersistentVolume> volume);
    void put(std::shared_ptr<const model::PersistentVolumeClaim> claim) { claims_.put(std::move(claim)); }
    void put(std::shared_ptr<const model::StorageClass> object) { classes_.put(std::move(object)); }
    void put(std::shared_ptr<const model::CsiNode> object) { csi_nodes_.put(std::move(object)); }
    void put(std::shared_ptr<const model::CsiDriver> object) { csi_drivers_.put(std::move(object)); }
    void put(std::shared_ptr<const model::CsiStorageCapacity> object);
    void put(std::shared_ptr<const model::VolumeAttachment> object);
    void remove_volume(std::string_view name, std::string_view uid);
    void remove_claim(std::string_view full_name, std::string_view uid) { claims_.remove(full_name, uid); }
    void remove_class(std::string_view name, std::string_view uid) { classes_.remove(name, uid); }
    void remove_csi_node(std::string_view name, std::string_view uid) { csi_nodes_.remove(name, uid); }
    void remove_csi_driver(std::string_view name, std::string_view uid) { csi_drivers_.remove(name, uid); }
    void remove_capacity(std::string_view full_name, std::string_view uid);
    void remove_attachment(std::string_view name, std::string_view uid);

    // Counts the steps of a decision as done; they stand until the server's objects say so, or until given back.
    void assume(const VolumeSteps& steps);
    void give_back(const VolumeSteps& steps);

    // The ledger's pods and reservations come and go. Where the row is kNoRow their node is not known, and they hold
    // their claims all the same.
    void enter(User user, uint32_t row, const std::shared_ptr<const model::PodSpec>& spec);
    void leave(User user, uint32_t row);

    const Objects<model::PersistentVolume>& volumes() const { return volumes_; }
    const Objects<model::PersistentVolumeClaim>& claims() const { return claims_; }
    const Objects<model::StorageClass>& classes() const { return classes_; }
    const Objects<model::CsiNode>& csi_nodes() const { return csi_nodes_; }
    const Objects<model::CsiDriver>& csi_drivers() const { return csi_drivers_; }
    // Volumes of a storage class: smallest first, then by name.
    std::vector<std::shared_ptr<const model::PersistentVolume>> volumes_of_class(std::string_view name) const;
    std::vector<std::shared_ptr<const model::CsiStorageCapacity>> capacities_of_class(std::string_view name) const;

    // Who uses the claim through a persistentVolumeClaim volume.
    const std::vector<User>& users(std::string_view claim_full_name) const;
    // Everybody on the row that has volumes at all.
    const std::vector<Placed>& placed(uint32_t row) const;

    // What a pod attaches, as far as its claims are known; each volume once, sorted. A reservation has no claims made
    // for its ephemeral volumes, so each stands for one volume of its class.
    std::vector<Attachable> attachables(const model::PodSpec& spec, bool reservation) const;
    // What VolumeAttachment objects say is attached to the node.
    std::vector<Attachable> attached(std::string_view node) const;

private:
    struct BySize {
        model::Quantity size;
        std::string name;
        bool operator<(const BySize& other) const { return size != other.size ? size < other.size : name < other.name; }
    };
    void index(const std::string& name);
    void unindex(const std::string& name);
    void use(User user, const model::PodSpec& spec);
    void unuse(User user, const model::PodSpec& spec);
    std::optional<Attachable> of_volume(const model::PodSpec& spec, const model::Volume& volume) const;
    std::optional<Attachable> of_claim(const model::PersistentVolumeClaim& claim) const;
    std::optional<Attachable> of_class(std::string_view name, const std::string& claim) const;

    Objects<model::PersistentVolume> volumes_;
    Objects<model::PersistentVolumeClaim> claims_;
    Objects<model::StorageClass> classes_;
    Objects<model::CsiNode> csi_nodes_;
    Objects<model::CsiDriver> csi_drivers_;
    Objects<model::CsiStorageCapacity> capacities_;
    Objects<model::VolumeAttachment> attachments_;
    base::StringMap<std::set<BySize>> by_class_;
    base::StringMap<std::set<std::string>> capacities_by_class_;
    base::StringMap<std::set<std::string>> attachments_by_node_;
    base::StringMap<std::vector<User>> users_;                                           // by the claim's full name
    std::vector<std::vector<Placed>> placed_;                                            // by row
    std::map<std::pair<bool, uint32_t>, std::shared_ptr<const model::PodSpec>> adrift_;  // by user, without a row
};

}  // namespace berth::ledger
