#pragma once

#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"
#include "ledger/budgets.h"
#include "ledger/changes.h"
#include "ledger/ended_owners.h"
#include "ledger/ends.h"
#include "ledger/ids.h"
#include "ledger/images.h"
#include "ledger/owner_index.h"
#include "ledger/ports.h"
#include "ledger/priorities.h"
#include "ledger/priority_classes.h"
#include "ledger/slab.h"
#include "ledger/spec_pool.h"
#include "ledger/terms.h"
#include "ledger/uid.h"
#include "ledger/volumes.h"
#include "ledger/workloads.h"
#include "model/allocated.h"
#include "model/node.h"
#include "model/pod.h"
#include "model/reservation_rules.h"

namespace berth::ledger {

using model::ResourceId;
using model::Resources;

// One resource over all rows, in the resource's unit. used may exceed allocatable (the node shrank, somebody else
// placed a pod): then nothing is placed there.
struct Column {
    std::vector<int64_t> allocatable;
    std::vector<int64_t> used;
};

// A part of a pod's request that is drawn from a reservation.
struct Charge {
    ReservationIndex reservation = kNone;
    Resources amount;
    bool operator==(const Charge&) const = default;
};

using Charges = absl::InlinedVector<Charge, 1>;

// What a pod that draws from reservations carries, whether or not they are known here.
struct Linked {
    model::Links links;
    std::vector<model::OwnerRef> owners;  // of the pod
    std::string fault;                    // the links cannot be read: nobody knows what the pod draws from
};

// A pod without a start time: it began after all that have one.
inline constexpr base::Time kNotStarted{std::numeric_limits<int64_t>::max()};

// There may be a million: names are packed, the namespace is the spec's, and equal specs are one.
struct PodEntry {
    Uid uid;
    Text name;
    std::shared_ptr<const model::PodSpec> spec;
    std::vector<Charge> parts;  // charged to reservations that hold room on its row; the first is the nominated one
    std::unique_ptr<Linked> linked;  // nullptr for almost every pod
    Row row = kNoRow;                // kNoRow: bound to a node that is not known (yet)
    uint32_t place = 0;              // among its row's pods
    int32_t priority = 0;
    bool assumed = false;            // placed by us, not yet seen bound
    bool terminating = false;        // has a deletionTimestamp
    bool preempted = false;          // terminating because a scheduler evicted it for another pod
    bool lifted = false;             // taken out of its row for a while
    bool implied = false;            // its links are what its charges say, and not written out yet
    GroupId group = kNone;           // among the terms, while it is counted there
    ReservationIndex payer = kNone;  // it is charged the whole request; then there are no parts
    base::Time created;
    base::Time started;  // kNotStarted before that

    std::string_view ns() const { return spec->ns; }
    bool charged() const { return payer != kNone || !parts.empty(); }
    // Calls f(reservation, amount) for each reservation of its row that it is charged to, the nominated one first.
    template <class F>
    void each_charge(F f) const {
        if (payer != kNone) return f(payer, spec->requests);
        for (const Charge& part : parts) f(part.reservation, part.amount);
    }
    Charges charges() const;
    void set_charges(const Charges& charges);
};

// What of its room a reservation has, as far as this ledger has decided or seen.
enum class Holding : uint8_t { None, Waiting, Available };

struct ReservationEntry {
    std::shared_ptr<const model::Reservation> object;
    Row row = kNoRow;  // where it holds; kNoRow while it holds nothing, or its node is not known
    Holding holding = Holding::None;
    model::Closed closed = model::Closed::NotAvailable;
    bool assumed = false;  // placed by us, not yet seen in its status
    bool used_up = false;  // allocateOnce, and an owner was bound: it ends with the next status written
    bool ended = false;    // its time is over: it holds its room until that is stored, and nobody draws from it
    // Said by the object, and kept at hand: whoever places an owner need not read the object.
    bool once = true;
    bool holds_back = false;
    model::Closed closed_by_object = model::Closed::No;
    model::AllocatePolicy policy = model::AllocatePolicy::Default;
    std::shared_ptr<const model::PodSpec> spec;
    int64_t scoring_cpu = 0;  // the spec's
    int64_t scoring_memory = 0;

    absl::InlinedVector<PodIndex, 2> owners;  // pods charged to it
    Resources allocatable;                    // what it holds on its row
    Resources charged;                        // whole requests of its owners (for joint draws: the drawn parts)
    int64_t scored_cpu = 0;                   // what it adds to the sums that scores read
    int64_t scored_memory = 0;
    std::vector<model::HostPort> ports;  // of those it names, the ones that no pod has taken

    Resources reserved;  // what it was placed with; pods = 1
    std::string node;    // where it was placed

    bool holds_room() const { return holding != Holding::None; }
    bool waiting() const { return holding == Holding::Waiting; }
    bool open() const { return closed == model::Closed::No; }
};

struct NodeEntry {
    std::shared_ptr<const model::Node> node;  // nullptr: the row is free
    std::vector<PodIndex> pods;
    std::vector<ReservationIndex> reservations;  // that hold room here
    uint64_t reservations_epoch = 0;             // another one whenever they, or their objects, are others
    Ports ports;
    uint32_t unreadable = 0;  // pods whose links cannot be read: no reservation of the row may be drawn from
    bool saturated = false;   // a sum met the end of int64: this row is recomputed, not adjusted
};

// Who holds what. For every row and resource
//   used = sum over pods of (request - what is charged to reservations)
//        + sum over reservations that hold room of max(allocatable, charged)
// and every sum can be recomputed from its members (see recomputed()). Owned by one thread.
class Ledger {
public:
    Ledger();
    ~Ledger();
    Ledger(Ledger&&) noexcept;
    Ledger& operator=(Ledger&&) noexcept;

    // --- events, in any order, repeated or late; keyed by uid, so a new object with an old name is a new object
    void put(std::shared_ptr<const model::Node> node);
    void remove_node(std::string_view name);
    // A pod that is bound (node set) or gone over to a terminal phase. Pending pods are the queue's, not the ledger's.
    void put(const model::Pod& pod);
    void remove_pod(std::string_view uid);
    void put(std::shared_ptr<const model::Reservation> reservation);
    void remove_reservation(std::string_view uid);
    void put(model::Namespace space);
    void remove_namespace(std::string_view name);
    void put(model::Workload workload);
    void remove_workload(model::WorkloadKind kind, std::string_view ns, std::string_view name);

    // Time passes, by both clocks: the reservations that have ended since it was last told so (see ends.h). A ledger
    // that is never told ends nothing but what had ended before it was made.
    std::vector<ReservationIndex> pass_time(base::Time wall, base::Instant now);
    // When the next one ends.
    std::optional<base::Instant> next_end() const { return ends_.next(); }

    // --- holds made by decisions
    // Places a pod now, with charges that the ledger as it is allows; it stays until put() sees it bound, or until it
    // is given back.
    PodIndex assume(const model::Pod& pod, Row row, const Charges& charges);
    void assume_reservation(ReservationIndex reservation, Row row, bool waiting);
    // Takes that back: its status could not be written.
    void unassume_reservation(ReservationIndex reservation);
    // Takes a pod out of its row and puts it back: preemption's what-if.
    void lift(PodIndex pod);
    void settle(PodIndex pod);

    // --- the table
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
    int64_t free(Row row, ResourceId id) const {
        const Column* found = column(id);
        return found ? found->allocatable[row] - found->used[row] : 0;
    }
    const std::vector<int64_t>& scoring_cpu() const { return scoring_cpu_; }
    const std::vector<int64_t>& scoring_memory() const { return scoring_memory_; }
    const Images& images() const { return images_; }
    const Volumes& volumes() const { return volumes_; }
    Volumes& volumes() { return volumes_; }
    const Budgets& budgets() const { return budgets_; }
    Budgets& budgets() { return budgets_; }
    const PriorityClasses& priority_classes() const { return priority_classes_; }
    PriorityClasses& priority_classes() { return priority_classes_; }
    const Changes& changes() const { return changes_; }
    // Who is near whom.
    const Terms& near() const { return *terms_; }

    // What questions cost: looks at one term on one row. A count, so that it is the same on every machine.
    void count_looks(uint64_t looks) const { looks_ += looks; }
    uint64_t looks() const { return looks_ + terms_->looks(); }
    const Workloads& workloads() const { return workloads_; }
    const Priorities& priorities() const { return priorities_; }

    const PodEntry& pod(PodIndex index) const { return pods_[index]; }
    PodIndex find_pod(std::string_view uid) const;
    // Where the pod is bound, known or not.
    std::string_view node_of(PodIndex index) const;
    // The one spec that stands for all equal ones here. A pod that asks with it is recognised without being compared.
    std::shared_ptr<const model::PodSpec> intern(const std::shared_ptr<const model::PodSpec>& spec);
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

    // The same sums, from members alone; a test compares them with the columns after every step.
    Resources recomputed_use(Row row) const;

private:
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

    int64_t waived_of_lack(Row row, ResourceId id) const;
    PodIndex new_pod();
    void place(PodIndex index);
    void unplace(PodIndex index);
    void leave_row(PodIndex index);
    void free_pod(PodIndex index);
    void orphan(PodIndex index, std::string_view node_name);
    void attach_orphans(std::string_view node_name, Row row);
    void set_allocatable(Row row, const Resources& amounts);
    // What somebody adds to (1) or takes off (-1) the sums of a row; settle() ends the change.
    void change_sum(Row row, ResourceId id, int64_t by);
    void change_scoring(Row row, int64_t cpu, int64_t memory);
    // Brings the reservation's part in the scores up to date.
    void score(ReservationEntry& reservation, int64_t cpu, int64_t memory);
    void rescore(ReservationEntry& reservation);
    void change_sums(const PodEntry& pod, int sign);
    void change_sums(ReservationEntry& reservation, int sign);
    void settle_sums(Row row);
    // The pod becomes, or ceases to be, an owner of the reservation.
    void join(PodIndex index, ReservationIndex to, const Resources& amount);
    void part(PodIndex index, ReservationIndex from);
    template <class F>
    void recount(ReservationEntry& reservation, const PodEntry& pod, F change);
    void recompute_row(Row row);
    // A new entry, which is not placed yet.
    PodIndex enter(const model::Pod& pod, Row row, std::unique_ptr<Linked> linked, bool assumed);
    // Reservations: see reservations.cc
    ReservationIndex new_reservation();
    void recompute_charged(ReservationIndex index);
    void reshape(ReservationIndex index, std::shared_ptr<const model::Reservation> next);
    void recompute_ports(Row row);
    bool reserves_ports(Row row) const;
    void hold(ReservationIndex index);
    void release(ReservationIndex index);
    void refresh(ReservationIndex index, Holding next);
    void refresh(ReservationIndex index) { refresh(index, reservations_[index].holding); }
    void await_node(ReservationIndex index, bool waits);
    void index_owners(ReservationIndex index);
    void unindex_owners(ReservationIndex index);
    void touch_reservations(Row row);
    static std::unique_ptr<Linked> read_linked(const model::Pod& pod);
    void write_links(PodIndex index);
    void set_links(PodIndex index, std::unique_ptr<Linked> linked);
    static std::vector<std::pair<std::string_view, Resources>> split(Resources requests, const model::Links& links);
    Charges resolve(PodIndex index) const;
    void recharge(PodIndex index);
    void relink(const std::string& uid);
    void see_links(PodIndex index, const model::Pod& pod);
    void spend(PodIndex index);
    void put_ended(const model::Pod& pod);
    bool was_used(ReservationIndex index) const;
    // Terms: see near.cc
    void count_near(PodIndex index);
    void uncount_near(PodIndex index);
    void show_near(ReservationIndex index);
    void set_terminating(PodIndex index, bool terminating);
    void set_near(Row row);
    Row new_row();
    Column& column_for(ResourceId id);

    Slab<NodeEntry> nodes_;
    std::vector<Row> free_rows_;
    absl::flat_hash_set<Row, ByName, ByName> by_name_{0, ByName{nodes_.view()}, ByName{nodes_.view()}};
    std::vector<std::unique_ptr<Column>> columns_;  // by ResourceId
    std::vector<int64_t> scoring_cpu_;
    std::vector<int64_t> scoring_memory_;
    Images images_;
    Volumes volumes_;
    Budgets budgets_;
    Changes changes_;
    std::unique_ptr<Terms> terms_;
    Workloads workloads_;
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
    mutable uint64_t looks_ = 0;
};

}  // namespace berth::ledger
