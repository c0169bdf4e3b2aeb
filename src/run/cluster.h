#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/json_fwd.h"
#include "control/ages.h"
#include "control/reservations.h"
#include "ledger/intake.h"
#include "run/placement.h"
#include "sched/preempt.h"
#include "sched/scheduler.h"

namespace berth::run {

// The default profile under the names that manifests use.
sched::Scheduler::Profiles usual_profiles();

// A pod as whoever made it would make it again: pending, on no node.
model::Pod made_again(model::Pod pod);

struct ClusterOptions {
    sched::Scheduler::Profiles profiles = usual_profiles();
    bool preempts = true;
    // Room for preemptors is held by Reservations while their victims go: for those who go step by step. In settle()
    // victims go at once, and whoever they went for is placed before anybody else.
    bool holds_rooms = false;
    // The server ends an allocateOnce reservation with the bind; else it is claimed before.
    bool ends_with_bind = true;
    // Pods start where their namespaces deserve it; absent: as if there were no shares.
    std::optional<share::Settings> shares = {};
    std::optional<base::Duration> gc = {};  // how long final reservations are kept; absent: for ever
};

// A cluster in memory, around the real scheduler: objects go in, and what the scheduler plans is done at once, as the
// server, the kubelets and the controllers would do it. Time is the caller's; while it stands still, backoff lasts a
// nanosecond. A pod whose schedulerName no profile has is placed by the first one.
class Cluster {
public:
    explicit Cluster(base::Time now, ClusterOptions options = {});
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    // ---- what others write. Whatever an API server would fill in (uid, creation, priority of a class) may be missing.
    void put(model::Node node);
    void put(model::Pod pod);
    void put(model::Reservation reservation);
    // Any kind that decisions read.
    Status put(const ledger::Kind& kind, JsonView document);
    void remove(std::string_view kind, std::string_view ns, std::string_view name);
    // The pod loses its node, and whoever made it makes it again: pending, as if it had just been created.
    void displace(const std::string& ns, const std::string& name);
    void advance_to(base::Time wall);

    // ---- what happens
    // Decides, and does what was decided, until nobody has anything more to do. One answer for each object that was
    // pending and was decided about, or cannot be: in the order of the queue, but whoever got a place only when others
    // had made room comes when that was. Who was refused again keeps the first answer.
    std::vector<Placement> settle();
    // Begins as settle() would, and stops before this turn; nothing happens of itself from then on. Equal objects in
    // equal order go the same way.
    void settle_before(size_t turn);
    // What the API server and the controllers would have done by now; settle() begins with it.
    void prepare();
    // The same step by step, for those who want to come between a plan and what comes of it.
    std::vector<sched::Plan> step(size_t most) { return scheduler_.step(now_, wall_, most); }
    // As the server would, or not, when the object has moved on; gives what is planned next.
    std::vector<sched::Plan> carry_out(const sched::Plan& plan);
    std::vector<sched::Plan> answer(const sched::Plan& plan, sched::Outcome outcome, std::string_view why = {}) {
        return scheduler_.outcome(plan, outcome, now_, why);
    }
    // Owners, success, expiry, lost nodes: what the reservations' controller writes. False: nothing.
    bool reconcile();

    // ---- questions; nothing changes
    // Where the pod would go if it were its turn: to the node that it is nominated for, if that is open, else to the
    // best. It yields to pods that are nominated and no less important.
    sched::Decision decide(const model::Pod& pod);
    sched::Decision decide(const model::Reservation& reservation);
    // Whom the ask would evict.
    sched::Preemption would_preempt(const sched::Ask& ask, const sched::Strikes& strikes);

    const sched::Scheduler& scheduler() const { return scheduler_; }
    bool shares() const { return options_.shares.has_value(); }
    // By what it is placed.
    const sched::Profile& profile_for(const model::PodSpec& spec) const;
    const ledger::View& ledger() const { return scheduler_.ledger(); }
    base::Time wall() const { return wall_; }
    // As they are stored now; nullptr: there is none.
    const model::Pod* pod(std::string_view ns, std::string_view name) const;
    std::shared_ptr<const model::Reservation> reservation(std::string_view name) const;
    void each_pod(const std::function<void(const model::Pod&)>& use) const;
    void each_reservation(const std::function<void(const model::Reservation&)>& use) const;
    // Pending pods whose schedulerName no profile has: how many, by that name.
    std::map<std::string, size_t> foreign() const;
    // What serves them.
    const std::string& first_profile() const { return options_.profiles.begin()->first; }

private:
    using ReservationPtr = std::shared_ptr<const model::Reservation>;
    struct StoredPod {
        model::Pod pod;
        uint64_t arrival = 0;
        bool unclassed = false;  // the class that it names is not there
    };
    struct StoredReservation {
        ReservationPtr object;
        uint64_t arrival = 0;
        bool unclassed = false;  // the class that it names is not there
    };
    struct Said {
        Placement answer;
        uint64_t decision = 0;  // which one since settle() began
        bool late = false;      // an earlier one had refused it
    };
    struct Turn {
        int64_t minus_priority;
        base::Time created;
        uint64_t arrival;
        bool is_reservation;
        std::string key;  // name, or namespace/name
        std::string uid;
        auto rank() const { return std::tuple(minus_priority, created, arrival); }
    };

    void feed(const model::Pod& pod);
    void store(model::Reservation reservation);
    void store(control::ReservationChange change);
    StoredPod* stored(const std::string& ns, const std::string& name, const std::string& uid);
    void erase_pod(const std::string& key);
    void erase_reservation(const std::string& name);
    void feed_fresh();
    bool find_class(StoredReservation& stored);
    static bool is_pending(const model::Pod& pod);
    bool serves(const model::Pod& pod) const { return options_.profiles.contains(pod.spec->scheduler_name); }

    void rest();
    void drain();
    void make_way(const std::string& uid);
    void carry_out_all(std::vector<sched::Plan> plans);
    // What came of whom: see cluster_answers.cc
    std::vector<Turn> turns() const;
    std::vector<Placement> answers_for(const std::vector<Turn>& order);
    void see(const sched::Ask& ask, const sched::Strikes* refused);
    void tell_again(const std::string& uid);
    Said* said(const std::string& uid);
    std::optional<Placement> answer_for(const Turn& turn);

    // What the server does: see cluster_writes.cc
    sched::Outcome write(const sched::BindPod& bind);
    sched::Outcome write(const sched::RefusePod& refuse);
    sched::Outcome write(const sched::EvictPod& plan);
    void evict(const sched::EvictPod& plan);
    sched::Outcome write(const sched::HoldRoom& hold);
    sched::Outcome write(const sched::DropRoom& drop);
    sched::Outcome write(const sched::ClearNomination& clear);
    sched::Outcome write(const sched::WriteReservation& write);
    sched::Outcome write(const sched::ClaimReservation& claim);
    sched::Outcome write(const sched::OpenReservation& open);
    sched::Outcome write(const sched::KeepVolume& keep);
    sched::Outcome write(const sched::SelectNode& select);
    sched::Outcome write(const sched::AskExtender& question);
    sched::Outcome write(const sched::ReadBack& read);
    sched::Outcome write_status(const std::string& name, const std::string& uid, uint64_t revision,
                                const model::ReservationStatus& status);
    void tell_draws(const model::Pod& pod, Placement& answer) const;
    void end_used(const model::Pod& pod);
    void bind_claim(const model::ClaimRef& ref, const std::string& volume);

    ClusterOptions options_;
    base::Time wall_;
    base::Instant now_;
    sched::Scheduler scheduler_;
    control::Ages ages_;
    sched::CostMemory costs_;
    std::map<std::string, StoredPod, std::less<>> pods_;  // by namespace/name
    std::map<std::string, StoredReservation, std::less<>> reservations_;
    // Pending and not yet told to the scheduler, in the order in which they came: is it a reservation, and its key.
    std::map<uint64_t, std::pair<bool, std::string>> fresh_;
    uint64_t arrivals_ = 0;
    uint64_t revision_ = 0;
    bool progress_ = false;                       // somebody got a place, or gave one up, since this was last asked
    std::unordered_map<std::string, Said> said_;  // by uid, since settle() began
    std::unordered_map<std::string, std::string> refusals_;  // by uid: what a pod was last told
    RowsByName rows_by_name_;
    uint64_t decisions_ = 0;
    size_t steps_ = 0;            // since settle() began: decisions with what followed, and rests between them
    std::optional<size_t> stop_;  // before this step
    std::optional<std::pair<std::string, sched::Strikes>> again_;  // the last that was refused once more, and why
};

}  // namespace berth::run
