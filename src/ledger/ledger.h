#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ledger/view.h"

namespace berth::ledger {

// Who holds what. For every row and resource
//   used = sum over pods of (request - what is charged to reservations)
//        + sum over reservations that hold room of max(allocatable, charged)
// and every sum can be recomputed from its members (see recomputed()). Owned by one thread.
class Ledger final : public View {
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
    void put(std::shared_ptr<const model::NodeTopology> topology);
    void remove_topology(std::string_view node, std::string_view uid);
    void put(std::shared_ptr<const model::Device> devices);
    void remove_devices(std::string_view node, std::string_view uid);
    void remove_workload(model::WorkloadKind kind, std::string_view ns, std::string_view name);

    // Time passes, by both clocks: the reservations that have ended since it was last told so (see ends.h). A ledger
    // that is never told ends nothing but what had ended before it was made.
    std::vector<ReservationIndex> pass_time(base::Time wall, base::Instant now);

    // --- holds made by decisions
    // Places a pod now, with charges that the ledger as it is allows; it stays until put() sees it bound, or until it
    // is given back.
    PodIndex assume(const model::Pod& pod, Row row, const Charges& charges, WhichPtr which = nullptr);
    // It is bound as it was assumed; put() says the same of a pod in which nothing else is new.
    void see_bound(PodIndex pod);
    void assume_reservation(ReservationIndex reservation, Row row, bool waiting, WhichPtr which = nullptr);
    // Which ones it is to have from now on.
    void record(ReservationIndex reservation, WhichPtr which);
    // Takes that back: its status could not be written.
    void unassume_reservation(ReservationIndex reservation);
    // Takes a pod out of its row and puts it back: preemption's what-if.
    void lift(PodIndex pod);
    void put_back(PodIndex pod);
    // The one spec that stands for all equal ones here. A pod that asks with it is recognised without being compared.
    std::shared_ptr<const model::PodSpec> intern(const std::shared_ptr<const model::PodSpec>& spec);

    // From now on it is counted what namespaces have and ask for; before anything else happens here.
    void count_spaces();

    // --- parts that take their objects themselves
    // nullptr: they are not counted.
    Spaces* spaces() { return spaces_.get(); }
    using View::budgets;
    using View::priority_classes;
    using View::volumes;
    Budgets& budgets() { return budgets_; }
    PriorityClasses& priority_classes() { return priority_classes_; }
    Volumes& volumes() { return volumes_; }

private:
    PodIndex new_pod();
    void place(PodIndex index);
    void unplace(PodIndex index);
    void leave_row(PodIndex index);
    void free_pod(PodIndex index);
    void vacate(PodIndex index);
    void orphan(PodIndex index, std::string_view node_name);
    void attach_orphans(std::string_view node_name, Row row);
    void set_allocatable(Row row, const Resources& amounts);
    // What the Node says, and of devices what its Device has, unless the Node says that, too.
    Resources allocatable_of(Row row) const;
    void show_devices(std::string_view node);
    void see_devices(Row row);
    // What somebody adds to (1) or takes off (-1) the sums of a row; mend_sums() ends the change.
    void change_sum(Row row, ResourceId id, int64_t by);
    void change_scoring(Row row, int64_t cpu, int64_t memory);
    // Brings the reservation's part in the scores up to date.
    void score(ReservationEntry& reservation, int64_t cpu, int64_t memory);
    void rescore(ReservationEntry& reservation);
    void change_sums(const PodEntry& pod, int sign);
    void change_sums(ReservationEntry& reservation, int sign);
    void mend_sums(Row row);
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
    Charges resolve(PodIndex index) const;
    void recharge(PodIndex index);
    void relink(const std::string& uid);
    void see_links(PodIndex index, const model::Pod& pod);
    void spend(PodIndex index);
    void put_ended(const model::Pod& pod);
    bool was_used(ReservationIndex index) const;
    // Which ones: see which.cc
    void enter_parts(PodIndex index);
    void leave_parts(PodIndex index);
    void enter_parts_of(ReservationIndex index);
    void leave_parts_of(ReservationIndex index);
    void see_which(PodIndex index, const model::Pod& pod);
    // Terms: see near.cc
    void count_near(PodIndex index);
    void uncount_near(PodIndex index);
    void show_near(ReservationIndex index);
    void set_terminating(PodIndex index, bool terminating);
    void set_near(Row row);
    void count_held(ReservationIndex index);
    Row new_row();
    Column& column_for(ResourceId id);
    void drop_column(ResourceId id);

    absl::flat_hash_set<uint16_t> uncounted_;  // resources that somebody on a node may have, and that have no column
};

}  // namespace berth::ledger
