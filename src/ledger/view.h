#pragma once

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"
#include "ledger/budgets.h"
#include "ledger/changes.h"
#include "ledger/cores.h"
#include "ledger/devices.h"
#include "ledger/ended_owners.h"
#include "ledger/ends.h"
#include "ledger/entries.h"
#include "ledger/images.h"
#include "ledger/owner_index.h"
#include "ledger/priorities.h"
#include "ledger/priority_classes.h"
#include "ledger/slab.h"
#include "ledger/spec_pool.h"
#include "ledger/terms.h"
#include "ledger/volumes.h"
#include "ledger/workloads.h"

namespace berth::ledger {

class Spaces;

// What whoever decides sees of a ledger, and all of it: the table of nodes, who holds what there, and its parts (who is
// near whom, volumes, budgets, ...). Nothing here writes; that is Ledger's, which only its owner has.
class View {
public:
    View(const View&) = delete;
    View& operator=(const View&) = delete;

    size_t rows() const { return nodes_.size(); }
    bool alive(Row row) const { return nodes_[row].node != nullptr; }
    size_t node_count() const { return by_name_.size(); }
    size_t pod_count() const { return pod_by_uid_.size(); }
    Row row_of(std::string_view node_name) const;
    const NodeEntry& at(Row row) const { return nodes_[row]; }
    const model::Node& node(Row row) const { return *nodes_[row].node; }
    std::string_view name(Row row) const { return nodes_[row].node->meta.name; }
    // nullptr when no node has the resource.
    const Column* column(ResourceId id) const {
        return id.index < columns_.size() ? columns_[id.index].get() : nullptr;
    }
    // Ids below this may have one.
    size_t columns() const { return columns_.size(); }
    int64_t free(Row row, ResourceId id) const {
        const Column* found = column(id);
        return found ? found->allocatable[row] - found->used[row] : 0;
    }
    const std::vector<int64_t>& scoring_cpu() const { return scoring_cpu_; }
    const std::vector<int64_t>& scoring_memory() const { return scoring_memory_; }
    const Images& images() const { return images_; }
    const Volumes& volumes() const { return volumes_; }
    const Cores& cores() const { return cores_; }
    const Devices& devices() const { return devices_; }
    const Budgets& budgets() const { return budgets_; }
    const PriorityClasses& priority_classes() const { return priority_classes_; }
    const Changes& changes() const { return changes_; }
    // Who is near whom.
    const Terms& near() const { return *terms_; }
    const Workloads& workloads() const { return workloads_; }
    const Priorities& priorities() const { return priorities_; }
    // What namespaces have and ask for; nullptr: nobody counts that.
    const Spaces* spaces() const { return spaces_.get(); }

    const PodEntry& pod(PodIndex index) const { return pods_[index]; }
    PodIndex find_pod(std::string_view uid) const;
    // Where the pod is bound, known or not.
    std::string_view node_of(PodIndex index) const;
    const ReservationEntry& reservation(ReservationIndex index) const { return reservations_[index]; }
    ReservationIndex find_reservation(std::string_view uid) const;
    const base::StringMap<ReservationIndex>& reservations() const { return reservation_by_uid_; }
    // What the reservation still has for new owners: max(0, allocatable - held back - charged).
    Resources remaining(ReservationIndex index) const;
    int64_t remaining(ReservationIndex index, ResourceId id) const {
        const ReservationEntry& entry = reservations_[index];
        const int64_t held_back = entry.holds_back ? entry.object->held_back.get(id) : 0;
        const int64_t most = entry.allocatable.get(id) - held_back;
        return most <= 0 ? 0 : std::max<int64_t>(0, most - entry.charged.get(id));
    }
    // What of a row's lack is only the waiting ones': whoever draws from another reservation need not mind it.
    int64_t waived(Row row, ResourceId id) const { return free(row, id) >= 0 ? 0 : waived_of_lack(row, id); }
    // Those that somebody may draw from, and allocateOnce ones that may yet be given back.
    const OwnerIndex& owner_index() const { return owner_index_; }
    // Whether the pod, whose links are known, is one of the reservation's owners.
    bool is_owner(PodIndex pod, const model::Reservation& reservation) const;
    // Pods whose link names it, on its node, and which are its owners; also when it is final. By uid.
    std::vector<PodIndex> owners_of(ReservationIndex index) const;
    // What the pod's links say it takes from it, whether or not it holds room.
    Resources drawn(PodIndex pod, ReservationIndex from) const;
    // The waiting ones of a row, first in the queue first.
    std::vector<ReservationIndex> waiting(Row row) const;
    // What the row lacks for a waiting one and those before it; empty: it may become available.
    Resources shortage(ReservationIndex index) const;
    // Whether a waiting one may become available: its row lacks nothing for it, and no pod has a port that it names.
    bool has_its_room(ReservationIndex index) const;
    // What links would charge for a pod on the row: those of the named ones that hold room there.
    Charges charges_of(const Resources& requests, const model::Links& links, Row row) const;
    // What the row lacks for a pod that is charged so, and gets the rest from the node: the one rule by which a pod
    // fits, for whoever decides and whoever judges. Empty: it fits.
    Resources lacking(const Resources& requests, const Charges& charges, Row row) const;

    // Why nobody is given cores on the row; empty: they are.
    std::string core_fault(Row row) const;
    // Why nobody is given devices of the type there; empty: they are.
    std::string device_fault(Row row, model::DeviceType type) const;

    // The same sums, from members alone; a test compares them with the columns after every step.
    Resources recomputed_use(Row row) const;
    Spaces recomputed_spaces() const;
    // When the next one ends.
    std::optional<base::Instant> next_end() const { return ends_.next(); }

protected:
    View();
    ~View();
    View(View&&) noexcept;
    View& operator=(View&&) noexcept;

    struct ByName {
        using is_transparent = void;
        Slab<NodeEntry>::View nodes;
        std::string_view key(Row row) const { return nodes[row].node->meta.name; }
        std::string_view key(std::string_view name) const { return name; }
        size_t operator()(const auto& row) const { return std::hash<std::string_view>()(key(row)); }
        bool operator()(const auto& a, const auto& b) const { return key(a) == key(b); }
    };
    struct ByUid {
        using is_transparent = void;
        Slab<PodEntry>::View pods;
        size_t operator()(PodIndex index) const { return pods[index].uid.hash(); }
        size_t operator()(const Uid& uid) const { return uid.hash(); }
        bool operator()(PodIndex a, PodIndex b) const { return a == b; }
        bool operator()(PodIndex a, const Uid& b) const { return pods[a].uid == b; }
    };

    static std::vector<std::pair<std::string_view, Resources>> split(Resources requests, const model::Links& links);

    Slab<NodeEntry> nodes_;
    std::vector<Row> free_rows_;
    absl::flat_hash_set<Row, ByName, ByName> by_name_{0, ByName{nodes_.view()}, ByName{nodes_.view()}};
    std::vector<std::unique_ptr<Column>> columns_;  // by ResourceId
    std::vector<int64_t> scoring_cpu_;
    std::vector<int64_t> scoring_memory_;
    Images images_;
    Volumes volumes_;
    Cores cores_;
    Devices devices_;
    Budgets budgets_;
    Changes changes_;
    std::unique_ptr<Terms> terms_;
    Workloads workloads_;
    std::unique_ptr<Spaces> spaces_;
    Priorities priorities_;
    PriorityClasses priority_classes_;

    SpecPool specs_;
    Slab<PodEntry> pods_;
    std::vector<PodIndex> free_pods_;
    absl::flat_hash_set<PodIndex, ByUid, ByUid> pod_by_uid_{0, ByUid{pods_.view()}, ByUid{pods_.view()}};
    base::StringMap<std::vector<PodIndex>> orphans_;  // by the unknown node's name
    absl::flat_hash_map<PodIndex, std::string> orphan_node_;

    uint64_t reservations_epochs_ = 0;
    std::vector<ReservationEntry> reservations_;
    std::vector<ReservationIndex> free_reservations_;
    base::StringMap<ReservationIndex> reservation_by_uid_;
    OwnerIndex owner_index_;
    base::StringMap<absl::InlinedVector<PodIndex, 2>> linked_;  // by the uid of a reservation they name, written out
    EndedOwners ended_;
    Ends ends_;
    base::StringMap<std::vector<ReservationIndex>> stranded_;  // that hold room, by the name of their unknown node

private:
    int64_t waived_of_lack(Row row, ResourceId id) const;
};

}  // namespace berth::ledger
