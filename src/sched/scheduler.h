#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <typeindex>
#include <vector>

#include "base/clock.h"
#include "base/string_map.h"
#include "ledger/ledger.h"
#include "sched/attempt.h"
#include "sched/costs.h"
#include "sched/cycle.h"
#include "sched/preemption_holds.h"
#include "sched/queue.h"
#include "share/scene.h"

namespace berth::ledger {
class Object;
struct Kind;
}  // namespace berth::ledger

namespace berth::sched {

namespace fast {
class Decider;
}

class Shares;

struct Preemption;

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
    // A pod starts only where its namespace deserves that; absent: as if there were no shares.
    std::optional<share::Settings> shares = {};
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

    // --- events, in any order: objects of all kinds that decisions read (ledger/intake.h)
    void put(const ledger::Object& object, base::Instant now);
    // Of a pod or a reservation its uid is enough, of others their name.
    void remove(const ledger::Kind& kind, const model::Meta& gone, base::Instant now);

    // A reservation that may not be placed yet, since its class is not there: its end is seen all the same.
    void put_unclassed(std::shared_ptr<const model::Reservation> reservation) { ledger_.put(std::move(reservation)); }

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

    // --- questions, by any profile; nothing is held. Where the pod would go if it were its turn: to the node that it
    // is nominated for, if that is open, else to the best.
    Decision would_decide(const model::Pod& pod, const Profile& profile);
    Decision would_decide(const model::Reservation& reservation, const Profile& profile);
    Preemption would_preempt(const Ask& ask, const Profile& profile, const Strikes& strikes, CostMemory& costs);

    const ledger::View& ledger() const { return ledger_; }
    const Queue& queue() const { return queue_; }
    const SchedulerCounts& counts() const { return counts_; }
    const model::Pod* pending_pod(std::string_view uid) const;
    const Nominated& nominated() const { return nominated_; }
    // nullptr: nobody asked for shares.
    const Shares* shares() const { return shares_.get(); }

private:
    static constexpr base::Duration kReadAgain = std::chrono::seconds(1);

    struct PendingReservation {
        std::shared_ptr<const model::Reservation> object;
        std::string refusal;  // that was last written
    };

    // Whether a waiting reservation is being said to have its room.
    struct Opening {
        std::optional<uint64_t> tried;  // the revision that was last written about
        bool under_way = false;         // until it is seen, or known not to have happened
    };

    // A kind of which it does more than to keep it; nullptr: it only keeps that.
    struct Followed;
    static const Followed* followed(std::type_index type);
    void put_node(std::shared_ptr<const model::Node> node, base::Instant now);
    void remove_node(std::string_view name, base::Instant now);
    void put_pod(model::Pod pod, base::Instant now);
    void put_bound(model::Pod pod, base::Instant now);
    void remove_pod(std::string_view uid, base::Instant now);
    void put_reservation(std::shared_ptr<const model::Reservation> reservation, base::Instant now);
    void remove_reservation(std::string_view uid, base::Instant now);
    void notify(Change change, base::Instant now);
    Attempt* find(std::string_view pod);
    void follow_nomination(Attempt& attempt, const std::string& before, base::Instant now);
    void end_nomination(Attempt& attempt, base::Instant now);
    void tell_freed(base::Instant now);
    void activate_owners();
    // Ends: a reservation whose time is over takes no place, and nobody is bound to it.
    void pass_time(base::Instant now, base::Time wall);
    bool draws_from_ended(std::string_view pod) const;
    void queue_again(const model::Pod& pod, base::Instant now);
    // Shares: see scheduler_shares.cc
    void await(const model::Pod& pod);
    void forget_waiting(std::string_view uid);
    std::optional<bool> begin_passing(const model::Pod& pod);
    void end_passing(std::string_view uid, std::optional<bool> before);
    bool may_stand_anywhere(const Ask& ask, const Profile& profile);
    void follow_shares(base::Time wall);
    const Shares* shares_for(const Attempt& attempt);
    void refuse_share(Attempt& attempt, const Strikes& strikes, base::Instant now);
    // Decisions: see scheduler_decide.cc
    void decide_one(const std::string& key, base::Instant now, base::Time wall, std::vector<Plan>& plans);
    void decide_for(Attempt& attempt, base::Instant now, std::vector<Plan>& plans);
    void decide_for(PendingReservation& pending, base::Instant now, base::Time wall, std::vector<Plan>& plans);
    const std::string& profile_of(const model::Reservation& object) const;
    Decision decide(const model::Reservation& object);
    Row choose_fast(const model::Pod& pod, const Profile& profile);
    bool lost_parts(const Ask& ask, const Decision& decision, const Profile& profile);
    // Where, and with what, is the decision's.
    void bind(Attempt& attempt, const Ask& ask, const Decision& decision, base::Instant now, std::vector<Plan>& plans);
    void fail(Attempt& attempt, std::string message, base::Instant now, std::vector<Plan>& plans);
    static void tell(Attempt& attempt, std::string message, std::string reason, std::optional<std::string> nominated,
                     std::vector<Plan>& plans);
    void refuse(Attempt& attempt, const Ask& ask, const Strikes& strikes, base::Instant now, std::vector<Plan>& plans);
    bool draws_from_assumed(const Ask& ask, Row row) const;
    std::vector<Plan> make_room(Attempt& attempt, const Ask& ask, const Strikes& strikes, base::Instant now,
                                RefusePod& refusal);
    std::vector<Plan> take_room(Attempt& attempt, const Ask& ask, const std::string& node,
                                std::vector<EvictPod> evictions, base::Instant now);
    void lift(const std::vector<EvictPod>& evictions, Row row, Lifted& gone) const;
    PromisedPtr promise(const Ask& ask, Row row, const std::vector<EvictPod>& evictions);
    void promise_again();
    std::vector<EvictPod> evictions_for(const Ask& ask, const Victims& victims) const;
    std::vector<Plan> evict(Attempt& by, std::vector<EvictPod> evictions);
    // PreemptionHolds: see scheduler_rooms.cc
    std::string_view our_room(const model::Reservation& reservation) const;
    bool room_stands(std::string_view pod) const;
    bool may_hold_room(const Ask& ask, Row row) const;
    Decision decide_room(const model::Reservation& room);
    bool waits_for_room(Attempt& attempt, base::Instant now, std::vector<Plan>& plans);
    bool room_on_the_way(ReservationIndex index, int32_t priority) const;
    std::vector<EvictPod> rest_of_victims(const Attempt& attempt, ReservationIndex index);
    void judge_rooms(base::Instant now, std::vector<Plan>& plans);
    void open_waiting(base::Time wall, std::vector<Plan>& plans);
    bool name_parts(ReservationIndex index, model::ReservationStatus& status);
    void see_room(const model::Reservation& reservation, base::Instant now);
    void give_up_room(const model::Reservation& reservation, std::vector<Plan>& plans);
    std::vector<Plan> asked(const HoldRoom& hold, Outcome outcome, base::Instant now);
    std::vector<Plan> placed_room(std::string_view reservation);
    // Extenders: see scheduler_extenders.cc
    bool consults(const model::PodSpec& spec) const;
    void consult(Attempt& attempt, const Ask& ask, const Profile& profile, base::Instant now, std::vector<Plan>& plans);
    void ask_next(Attempt& attempt, base::Instant now, std::vector<Plan>& plans);
    static Status narrow(Consultation& open, const Result<std::string>& body);
    void fail(Attempt& attempt, const AskExtender& question, const Error& error, base::Instant now,
              std::vector<Plan>& plans);
    void conclude(Attempt& attempt, base::Instant now, std::vector<Plan>& plans);
    std::optional<size_t> binder_for(const model::PodSpec& spec, bool charged) const;
    bool ask_about_victims(Attempt& attempt, VictimsAsked asked, std::vector<Plan>& plans);
    std::vector<Plan> preemption_answered(const AskExtender& question, const Result<std::string>& body,
                                          base::Instant now);
    // Claims: see scheduler_claiming.cc
    void bind_or_claim(Attempt& attempt, BindPod bind, std::vector<Plan>& plans);
    bool still_holds(const Attempt& attempt, const BindPod& bind) const;
    void go_on(Attempt& attempt, BindPod bind, base::Instant now, std::vector<Plan>& plans);
    void resume_claiming(base::Instant now, std::vector<Plan>& plans);
    std::vector<Plan> claimed(const ClaimReservation& claim, Outcome outcome, base::Instant now);
    void release_claims(base::Time wall, std::vector<Plan>& plans);
    // Volumes: see scheduler_volumes.cc
    bool bind_volumes_first(Attempt& attempt, const Ask& ask, Row row, const BindPod& bind, base::Instant now,
                            std::vector<Plan>& plans);
    void resume_volumes(base::Instant now, std::vector<Plan>& plans);
    std::optional<base::Instant> next_volume_wake() const;
    void volume_written(std::string_view pod, uint64_t serial, Outcome outcome, base::Instant now);
    // What came of plans
    std::vector<Plan> on_evicted(const EvictPod& evict, Outcome outcome, base::Instant now);
    std::vector<Plan> read_back(const ReadBack& read, Outcome outcome, base::Instant now);
    std::vector<Plan> on_written(const WriteReservation& write, Outcome outcome, base::Instant now);
    std::vector<Plan> opened(const OpenReservation& open, Outcome outcome, base::Instant now);
    void was_told(std::string_view uid, bool done, base::Instant now);
    std::vector<Plan> nominated(const RefusePod& refuse, Outcome outcome, base::Instant now);
    void retry(const Attempt& attempt, base::Instant now);
    void forget(Attempt& attempt, base::Instant now);
    void forget_reservation(std::string_view uid, base::Instant now);

    Profiles profiles_;
    SchedulerOptions options_;
    std::map<std::string, std::unique_ptr<fast::Decider>, std::less<>> deciders_;  // by the profile's name
    ledger::Ledger ledger_;
    std::unique_ptr<Shares> shares_;  // nullptr: nobody asked for them
    base::Time shares_wall_;
    Queue queue_;
    Nominated nominated_;  // pending pods of ours, none of them assumed
    Evictions evictions_;
    PreemptionHolds preemption_holds_;
    std::set<std::string> unpromised_;  // uids of pods that others nominated, or a scheduler before this one
    Sources sources_{ledger_, nominated_, evictions_};
    base::StringMap<Attempt> attempts_;  // by the pod's uid; pending and ours, also while a bind is under way
    base::StringMap<PendingReservation> reservations_;
    uint64_t looks_ = 0;    // what all asks have cost so far
    uint64_t serials_ = 0;  // of tries and questions: an answer to an earlier one is known by it
    // Uids of pods that began to wait so; those that have gone on since are passed over.
    std::set<std::string> volumes_first_;
    std::set<std::string> claiming_;
    bool resume_volumes_ = false;             // something about volumes changed, or may have
    bool resume_claiming_ = false;            // a reservation changed: who waits to claim it is looked at
    std::map<std::string, Opening> waiting_;  // stored reservations that wait for room
    uint64_t looked_at_ = 0;                  // the ledger's changes when they were last looked at
    // Since the last step: those that owners may draw from now, or differently...
    std::set<ReservationIndex> opened_;
    std::vector<std::shared_ptr<const model::Reservation>> left_;  // ... and what edited ones were before
    std::vector<std::pair<base::Instant, ReadBack>> reads_;        // that failed, and when to try again
    CostMemory costs_;
    SchedulerCounts counts_;
};

}  // namespace berth::sched
