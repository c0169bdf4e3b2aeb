#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/string_map.h"
#include "ledger/ledger.h"
#include "sched/cycle.h"
#include "sched/fast/decider.h"
#include "sched/plan.h"
#include "sched/queue.h"

namespace berth::sched {

struct SchedulerCounts {
    uint64_t scheduled = 0;
    uint64_t unschedulable = 0;
    uint64_t errors = 0;
};

// The scheduler without its doors: typed events in, plans out. It owns the ledger and the queue; one thread calls it.
class Scheduler {
public:
    // By spec.schedulerName; reservations go by "", the first profile.
    using Profiles = std::map<std::string, Profile, std::less<>>;
    explicit Scheduler(Profiles profiles);

    // --- events, in any order
    void put(std::shared_ptr<const model::Node> node, base::Instant now);
    void remove_node(std::string_view name, base::Instant now);
    void put(model::Pod pod, base::Instant now);
    void remove_pod(std::string_view uid, base::Instant now);
    void put(std::shared_ptr<const model::Reservation> reservation, base::Instant now);
    void remove_reservation(std::string_view uid, base::Instant now);

    // --- decisions
    // Decides for at most `most` of those whose turn it is. Each decision is held in the ledger, so the next one sees
    // it.
    // `wall` is for the times that conditions carry.
    std::vector<Plan> step(base::Instant now, base::Time wall, size_t most);
    // When step() will have something to do that it does not have now.
    std::optional<base::Instant> next_wake() const { return queue_.next_wake(); }
    // The pod's or reservation's plan was carried out, refused, or nobody knows.
    std::vector<Plan> outcome(const Plan& plan, Outcome outcome, base::Instant now);

    const ledger::Ledger& ledger() const { return ledger_; }
    // For the kinds that only the ledger cares about (volumes, namespaces, budgets...).
    ledger::Ledger& ledger() { return ledger_; }
    void happened(Change change, base::Instant now) { queue_.happened(change, now); }
    Queue::Sizes queue_sizes() const { return queue_.sizes(); }
    const SchedulerCounts& counts() const { return counts_; }
    const model::Pod* pending_pod(std::string_view uid) const;

private:
    struct PendingPod {
        model::Pod pod;
        std::string told;  // the refusal that was last written
    };
    struct PendingReservation {
        std::shared_ptr<const model::Reservation> object;
        std::string told;
    };

    void decide_one(const std::string& key, base::Instant now, base::Time wall, std::vector<Plan>& plans);
    void decide_for(PendingPod& pending, base::Instant now, base::Time wall, std::vector<Plan>& plans);
    void decide_for(PendingReservation& pending, base::Instant now, base::Time wall, std::vector<Plan>& plans);
    void bind(const model::Pod& pod, Row row, std::vector<ledger::Charge> charges, const model::Labels& annotations,
              std::vector<Plan>& plans);
    void forget(std::string_view uid, base::Instant now);

    Profiles profiles_;
    std::map<std::string, fast::Decider, std::less<>> deciders_;  // by the profile's name
    ledger::Ledger ledger_;
    Queue queue_;
    base::StringMap<PendingPod> pods_;  // by uid; pending and ours, also while a bind is under way
    base::StringMap<PendingReservation> reservations_;
    SchedulerCounts counts_;
};

}  // namespace berth::sched
