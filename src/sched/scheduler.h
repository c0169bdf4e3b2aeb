#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/string_map.h"
#include "ledger/ledger.h"
#include "sched/costs.h"
#include "sched/cycle.h"
#include "sched/evictions.h"
#include "sched/extender.h"
#include "sched/plan.h"
#include "sched/preemption_holds.h"
#include "sched/queue.h"
#include "sched/volume_binds.h"

namespace berth::ledger {
class Object;
struct Kind;
}  // namespace berth::ledger

namespace berth::sched {

namespace fast {
class Decider;
}

struct SchedulerCounts {
    std::map<std::string, uint64_t, std::less<>> unschedulable;  // decisions that found no node, by profile
    std::map<std::string, uint64_t, std::less<>> errors;         // decisions that could not be made, by profile
    uint64_t preemptions = 0;                                    // searches for pods that might go
};

struct SchedulerOptions {
    // Whoever preempts has its room held by a Reservation; without it a nomination must do.
    bool holds_rooms = true;
    // An allocateOnce reservation is claimed before its owner is bound: for servers that do not end it with the bind.
    bool claims_first = false;
    base::Duration first_backoff = std::chrono::seconds(1);
    base::Duration longest_backoff = std::chrono::seconds(10);
    std::vector<Extender> extenders = {};
    // Those whose attempts cost much let others go first (queue.h). Not where time stands still.
    bool counts_costs = true;
    // Told of each decision before it is held: whoever asks gets a place, or none and why. Not of the rooms that we
    // made.
    std::function<void(const Ask& ask, const Strikes* refused)> witness = {};
};

// The scheduler without its doors: typed events in, plans out. It owns the ledger and the queue; one thread calls it.
class Scheduler {
public:
    // By spec.schedulerName; a reservation whose template names none of them goes by the first.
    using Profiles = std::map<std::string, Profile, std::less<>>;
    explicit Scheduler(Profiles profiles, SchedulerOptions options = {});
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    // --- events, in any order
    void put(std::shared_ptr<const model::Node> node, base::Instant now);
    void remove_node(std::string_view name, base::Instant now);
    void put(model::Pod pod, base::Instant now);
    void remove_pod(std::string_view uid, base::Instant now);
    void put(std::shared_ptr<const model::Reservation> reservation, base::Instant now);
    void remove_reservation(std::string_view uid, base::Instant now);
    // These and all other kinds that decisions read, by their rows.
    void put(const ledger::Kind& kind, const ledger::Object& object, base::Instant now);
    void remove(const ledger::Kind& kind, const model::Meta& gone, base::Instant now);

    // --- decisions
    // Decides for at most `most` of those whose turn it is, or for fewer when those cost much. Each decision is held in
    // the ledger, so the next one sees it.
    // `wall` is for the times that conditions carry.
    std::vector<Plan> step(base::Instant now, base::Time wall, size_t most);
    // The same for this pod or reservation alone, whoever waits before it: where those who make room go at once,
    // whoever they went for is placed before anybody else.
    std::vector<Plan> step_for(const std::string& uid, base::Instant now, base::Time wall);
    // When step() will have something to do that it does not have now.
    std::optional<base::Instant> next_wake() const;
    // The pod's or reservation's plan was carried out, refused, or nobody knows; why not, in the server's words.
    std::vector<Plan> outcome(const Plan& plan, Outcome outcome, base::Instant now, std::string_view why = {});
    // What an extender said: the body of its reply, or why there is none.
    std::vector<Plan> answered(const AskExtender& question, const Result<std::string>& body, base::Instant now);

    const ledger::Ledger& ledger() const { return ledger_; }
    // For the kinds that only the ledger cares about (volumes, namespaces, budgets...).
    ledger::Ledger& ledger() { return ledger_; }
    void notify(Change change, base::Instant now);
    Queue::Sizes queue_sizes() const { return queue_.sizes(); }
    const SchedulerCounts& counts() const { return counts_; }
    // How often a pending pod was tried.
    int attempts(std::string_view uid) const { return queue_.attempts(uid); }
    std::optional<base::Instant> ready_since(std::string_view uid) const { return queue_.ready_since(uid); }
    const model::Pod* pending_pod(std::string_view uid) const;
    const Nominated& nominated() const { return nominated_; }

private:
    struct PendingPod {
        model::Pod pod;
        std::string told;      // the refusal that was last written
        uint32_t telling = 0;  // writes to its status that are under way: until they are answered nothing is decided
        bool turned = false;   // its turn came meanwhile
    };
    struct PendingReservation {
        std::shared_ptr<const model::Reservation> object;
        std::string told;
    };

    // What the extenders that were asked about a pod have said so far.
    struct Consultation {
        uint64_t serial = 0;
        std::vector<std::string> nodes;  // that all so far let pass, by name
        std::map<std::string, ExtenderRefusal> refused;
        std::map<std::string, int64_t> scores;
        size_t filtered = 0;  // extenders up to here were asked to filter
        bool prioritized = false;
        size_t unanswered = 0;
    };
    struct VictimsAsked {
        uint64_t serial = 0;
        size_t next = 0;  // extender
        std::string node;
        int64_t violations = 0;
        std::vector<EvictPod> evictions;
    };

    // A bind that waits: until what the pod draws from is stored, then for claims.
    struct Claiming {
        BindPod bind;
        size_t unanswered = 0;
        uint64_t serial = 0;  // 0: nothing is claimed yet
    };

    // Whether a waiting reservation is being said to have its room.
    struct Opening {
        std::optional<uint64_t> tried;  // the revision that was last written about
        bool under_way = false;         // until it is seen, or known not to have happened
    };

    void put_bound(model::Pod pod, base::Instant now);
    void follow_nomination(const PendingPod& pending, const std::string& before, base::Instant now);
    void stop_asking(std::string_view uid);
    void end_nomination(std::string_view uid, base::Instant now);
    void hurry_owners();
    // Ends: a reservation whose time is over takes no place, and nobody is bound to it.
    void pass_time(base::Instant now, base::Time wall);
    bool draws_from_ended(std::string_view pod) const;
    // Decisions: see scheduler_decide.cc
    void decide_one(const std::string& key, base::Instant now, base::Time wall, std::vector<Plan>& plans);
    void decide_for(PendingPod& pending, base::Instant now, std::vector<Plan>& plans);
    void decide_for(PendingReservation& pending, base::Instant now, base::Time wall, std::vector<Plan>& plans);
    const std::string& profile_of(const model::Reservation& object) const;
    Decision decide(const model::Reservation& object);
    Row choose_fast(const model::Pod& pod, const Profile& profile);
    void bind(const Ask& ask, Row row, const ledger::Charges& charges, const model::Labels& annotations,
              base::Instant now, std::vector<Plan>& plans);
    void fail(PendingPod& pending, std::string message, base::Instant now, std::vector<Plan>& plans);
    static void tell(PendingPod& pending, std::string message, std::string reason, std::optional<std::string> nominated,
                     std::vector<Plan>& plans);
    void refuse(PendingPod& pending, const Ask& ask, const Strikes& strikes, base::Instant now,
                std::vector<Plan>& plans);
    std::vector<Plan> make_room(const Ask& ask, const Strikes& strikes, base::Instant now, RefusePod& refusal);
    std::vector<Plan> take_room(const Ask& ask, const std::string& node, std::vector<EvictPod> evictions,
                                base::Instant now);
    std::shared_ptr<const ledger::Charges> promise(const Ask& ask, Row row, const std::vector<EvictPod>& evictions);
    std::vector<EvictPod> evictions_for(const Ask& ask, const Victims& victims) const;
    std::vector<Plan> evict(std::vector<EvictPod> evictions);
    // PreemptionHolds: see scheduler_rooms.cc
    std::string_view our_room(const model::Reservation& reservation) const;
    bool room_stands(std::string_view pod) const;
    bool may_hold_room(const Ask& ask, Row row) const;
    Decision decide_room(const model::Reservation& room);
    bool waits_for_room(const Ask& ask, base::Instant now, std::vector<Plan>& plans);
    bool room_on_the_way(ReservationIndex index, int32_t priority) const;
    void judge_rooms(base::Instant now, std::vector<Plan>& plans);
    void open_waiting(base::Time wall, std::vector<Plan>& plans);
    void see_room(const model::Reservation& reservation, base::Instant now);
    void give_up_room(const model::Reservation& reservation, std::vector<Plan>& plans);
    std::vector<Plan> asked(const HoldRoom& hold, Outcome outcome, base::Instant now);
    std::vector<Plan> placed_room(std::string_view reservation);
    // Extenders: see scheduler_extenders.cc
    bool consults(const model::PodSpec& spec) const;
    void consult(PendingPod& pending, const Ask& ask, const Profile& profile, base::Instant now,
                 std::vector<Plan>& plans);
    void ask_next(PendingPod& pending, base::Instant now, std::vector<Plan>& plans);
    static Status narrow(Consultation& open, const Result<std::string>& body);
    void fail(PendingPod& pending, const AskExtender& question, const Error& error, base::Instant now,
              std::vector<Plan>& plans);
    void conclude(PendingPod& pending, base::Instant now, std::vector<Plan>& plans);
    std::optional<size_t> binder_for(const model::PodSpec& spec, bool charged) const;
    bool ask_about_victims(const Ask& ask, VictimsAsked asked, std::vector<Plan>& plans);
    std::vector<Plan> preemption_answered(const AskExtender& question, const Result<std::string>& body,
                                          base::Instant now);
    // Claims: see scheduler_claiming.cc
    void bind_or_claim(BindPod bind, std::vector<Plan>& plans);
    bool still_holds(const BindPod& bind) const;
    void go_on(BindPod bind, base::Instant now, std::vector<Plan>& plans);
    void settle_claims(base::Instant now, std::vector<Plan>& plans);
    std::vector<Plan> claimed(const ClaimReservation& claim, Outcome outcome, base::Instant now);
    void give_back_claims(std::string_view pod);
    void release_claims(std::vector<Plan>& plans);
    // Volumes: see scheduler_volumes.cc
    bool bind_volumes_first(const Ask& ask, Row row, const BindPod& bind, base::Instant now, std::vector<Plan>& plans);
    void settle_volumes(base::Instant now, std::vector<Plan>& plans);
    void give_back_volumes(std::string_view pod);
    void volume_written(std::string_view pod, uint64_t serial, Outcome outcome, base::Instant now);
    // What came of plans
    std::vector<Plan> on_evicted(const EvictPod& evict, Outcome outcome, base::Instant now);
    std::vector<Plan> read_back(const ReadBack& read, Outcome outcome, base::Instant now);
    std::vector<Plan> on_written(const WriteReservation& write, Outcome outcome, base::Instant now);
    std::vector<Plan> opened(const OpenReservation& open, Outcome outcome);
    void was_told(std::string_view uid, bool done, base::Instant now);
    void retry(std::string_view uid, base::Instant now);
    void forget(std::string_view uid, base::Instant now);

    Profiles profiles_;
    SchedulerOptions options_;
    std::map<std::string, std::unique_ptr<fast::Decider>, std::less<>> deciders_;  // by the profile's name
    ledger::Ledger ledger_;
    Queue queue_;
    Nominated nominated_;  // pending pods of ours, none of them assumed
    Evictions evictions_;
    PreemptionHolds preemption_holds_;
    VolumeBinds volume_binds_;
    std::map<std::string, Claiming> claiming_;  // by the pod's uid
    std::set<std::string> claims_;              // uids of reservations whose claim may have to be released
    uint64_t claim_tries_ = 0;
    bool settle_claims_ = false;              // a reservation changed: who waits to claim it is looked at
    std::map<std::string, Opening> waiting_;  // stored reservations that wait for room
    uint64_t looked_at_ = 0;                  // the ledger's changes when they were last looked at
    // Since the last step: those that owners may draw from now, or differently...
    std::set<ReservationIndex> opened_;
    std::vector<std::shared_ptr<const model::Reservation>> left_;  // ... and what edited ones were before
    std::vector<std::pair<base::Instant, ReadBack>> reads_;        // that failed, and when to try again
    std::map<std::string, Consultation> consultations_;            // by the pod's uid
    std::map<std::string, VictimsAsked> victims_asked_;            // the same
    uint64_t questions_ = 0;
    CostMemory costs_;
    base::StringMap<PendingPod> pods_;  // by uid; pending and ours, also while a bind is under way
    base::StringMap<PendingReservation> reservations_;
    SchedulerCounts counts_;
};

}  // namespace berth::sched
