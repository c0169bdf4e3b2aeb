#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "control/ages.h"
#include "control/writes.h"
#include "ledger/intake.h"
#include "ledger/ledger.h"
#include "model/pod.h"
#include "model/reservation.h"
#include "sched/cycle.h"
#include "sched/preempt.h"
#include "sched/scheduler.h"

namespace berth::cli {

// What happened to one pending object.
struct Placement {
    bool is_reservation = false;
    std::string ns;
    std::string name;
    std::string node;         // empty: not placed
    std::string reservation;  // the one it draws from
    std::map<std::string, model::Resources> charges;
    std::vector<std::string> feasible;  // by name
    std::map<std::string, int64_t> scores;
    std::map<std::string, int64_t> reservation_scores;
    std::map<std::string, std::vector<std::string>> rejected;
    std::vector<std::string> victims;
    std::string message;  // "0/3 nodes are available: ...", when it is not placed
    std::string error;    // why it was not even tried
};

// Where a reservation stands.
struct Holding {
    std::string name;
    model::ReservationPhase phase = model::ReservationPhase::Pending;
    std::string node;
    model::Resources allocatable;
    model::Resources allocated;
    std::vector<model::PodRef> owners;
};

// A cluster in memory, for whatif and for the scenarios: objects go in, settle() schedules what is pending in the
// queue's order, each decision visible to the next.
class World {
public:
    explicit World(base::Time now) : now_(now) {}

    // Takes an object over, new or changed. False: the kind means nothing here. An Error harms that object alone.
    Result<bool> put(const Json& object);
    void remove(std::string_view kind, std::string_view ns, std::string_view name);
    void advance_to(base::Time now);
    // Nobody is evicted for another pod.
    void forbid_preemption() { preempts_ = false; }
    // In place of the default one; a pod whose schedulerName none of them has goes by the first.
    void use(sched::Scheduler::Profiles profiles) { profiles_ = std::move(profiles); }

    std::vector<Placement> settle();

    // What of the objects is not taken as it is written, one sentence each.
    const std::vector<std::string>& warnings() const { return warnings_; }

    // What the controllers would have written by now; settle() begins with it.
    void prepare();
    // Where the pod would go: to the node that it is nominated for, if that is open, else to the best. It yields to
    // pods that are nominated and no less important. Nothing changes.
    sched::Decision decide(const model::Pod& pod);
    // Whom the ask would evict. Nothing changes.
    sched::Preemption would_preempt(const sched::Ask& ask, const sched::Strikes& strikes);

    std::vector<Holding> holdings() const;
    // Where a pod is, and which reservation it draws from; nullptr: unknown or pending.
    const ledger::PodEntry* find_pod(std::string_view ns, std::string_view name) const;
    const ledger::Ledger& ledger() const { return ledger_; }
    // As they were put in, or placed since; nullptr: there is none.
    const model::Pod* pod(std::string_view ns, std::string_view name) const;
    std::shared_ptr<const model::Reservation> reservation(std::string_view name) const;
    const std::map<std::string, model::Pod, std::less<>>& pods() const { return pods_; }
    // What went wrong when a scheduler tried to place the pod, as its condition says; empty: nothing. That no node fits
    // is nothing wrong.
    std::string failure_of(const model::Pod& pod) const;
    // What cannot be read of an object; empty: nothing.
    std::string fault_of(bool is_reservation, std::string_view ns, std::string_view name) const;

private:
    struct Broken {
        bool is_reservation;
        std::string ns, name, error;
        bool told;  // settle() has said so
    };
    using ReservationPtr = std::shared_ptr<const model::Reservation>;
    struct Entrant;

    Status put_pod(model::Pod pod);
    Status put_reservation(model::Reservation reservation);
    std::vector<Entrant> entrants() const;
    void see_nominations();
    void resolve_classes();
    void forget_broken(std::string_view reservation);
    void warn(std::string_view kind, std::string_view name, std::string_view what);
    const sched::Profile& profile_for(const model::PodSpec& spec) const;
    Placement place_pod(const model::Pod& pod);
    void place(const model::Pod& pod, const sched::Decision& decision, Placement& outcome);
    void make_room(const model::Pod& pod, const sched::Verdict& verdict, Placement& outcome);
    Placement place_reservation(const model::Reservation& reservation);
    void store(model::Reservation reservation);
    void store(control::Writes writes);
    void use_up(const ledger::Charges& charges, ledger::Row row);
    void reconcile();

    base::Time now_;
    bool preempts_ = true;
    sched::Scheduler::Profiles profiles_;  // empty: the default one
    sched::CostMemory costs_;
    sched::Nominated nominated_;  // pending pods that wait for a node of theirs
    uint64_t arrivals_ = 0;
    ledger::Ledger ledger_;
    std::map<std::string, model::Pod, std::less<>> pods_;  // by namespace/name
    std::map<std::string, std::string> failures_;          // the same
    std::map<std::string, uint64_t, std::less<>> order_;   // of arrival, by kind/namespace/name
    std::map<std::string, ReservationPtr, std::less<>> reservations_;
    control::Ages ages_;
    std::vector<Broken> broken_;
    std::vector<std::string> warnings_;
};

}  // namespace berth::cli
