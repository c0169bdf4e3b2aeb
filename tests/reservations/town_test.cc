// Random histories of a live scheduler before a server that judges: preemptors
// of all sorts among reservations that wait, edits of what waits, ends that
// pass between a decision and its bind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "base/json.h"
#include "base/json_view.h"
#include "base/random.h"
#include "control/reservations.h"
#include "model/allocated.h"
#include "model/preemption_hold.h"
#include "model/reservation_status.h"
#include "run/bind_rules.h"
#include "sched/scheduler.h"

namespace berth::reservations {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr const char* kApps[] = {"a", "b", "low"};
constexpr int64_t kNodeCpu = 8;

// Stored objects, the scheduler and the controllers that follow them, and what
// the scheduler has planned and not yet sent. Calm: no reservation ends, is
// edited or is deleted.
class Town {
public:
    Town(uint64_t seed, bool calm) : random_(seed), calm_(calm), scheduler_(new_scheduler()) {
        clock_.advance(std::chrono::hours(1));
        for (int i = 0; i < 3; ++i) add_node(fmt::format("n{}", i));
    }

    // With restarts: now and then another scheduler goes on, which knows what is stored and nothing else.
    void run(int steps, bool restarts) {
        for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
            if (restarts && random_.chance(somebody_is_nominated() ? 4 : 1, 8)) restart();
            SCOPED_TRACE(fmt::format("step {}: {}", i, step()));
            check_nodes();
            if (i % 20 == 19) settle();
        }
    }

private:
    // ---- what is stored, and those who are told of it

    static std::unique_ptr<sched::Scheduler> new_scheduler() {
        return std::make_unique<sched::Scheduler>(sched::Scheduler::Profiles{{"berth", sched::default_profile()}});
    }
    bool somebody_is_nominated() const {
        return std::any_of(pods_.begin(), pods_.end(), [](const auto& entry) {
            return entry.second.node.empty() && !entry.second.nominated_node.empty();
        });
    }
    // When nothing is under way: nobody knows for whom the rest of somebody's victims was to go.
    void restart() {
        send(1000);
        scheduler_ = new_scheduler();
        for (const auto& node : nodes_) scheduler_->put(node, clock_.now());
        for (const auto& [name, object] : reservations_) scheduler_->put(object, clock_.now());
        for (const auto& [name, pod] : pods_) scheduler_->put(pod, clock_.now());
    }
    void add_node(const std::string& name) {
        auto node = std::make_shared<model::Node>();
        node->meta.name = name;
        node->meta.labels.set("kubernetes.io/hostname", name);
        node->allocatable = model::Resources{{model::kCpu, kNodeCpu * 1000}, {model::kPods, 20}};
        nodes_.push_back(node);
        server_.put(nodes_.back());
        scheduler_->put(nodes_.back(), clock_.now());
    }
    void store(model::Pod pod) {
        pod.meta.revision = ++revision_;
        if (!pod.node.empty()) server_.put(pod);
        scheduler_->put(pod, clock_.now());
        pods_.insert_or_assign(pod.meta.name, std::move(pod));
    }
    void store(model::Reservation object) {
        object.meta.revision = ++revision_;
        auto shared = std::make_shared<const model::Reservation>(std::move(object));
        reservations_[shared->meta.name] = shared;
        server_.put(shared);
        scheduler_->put(shared, clock_.now());
    }
    void erase_pod(const std::string& name) {
        const std::string uid = pods_.at(name).meta.uid;
        pods_.erase(name);
        server_.remove_pod(uid);
        scheduler_->remove_pod(uid, clock_.now());
    }
    void erase_reservation(const std::string& name) {
        const std::string uid = reservations_.at(name)->meta.uid;
        reservations_.erase(name);
        server_.remove_reservation(uid);
        scheduler_->remove_reservation(uid, clock_.now());
    }
    std::string new_uid() { return fmt::format("{:08x}-0000-4000-8000-000000000000", ++uids_); }
    bool has_ended(const model::Reservation& object) const {
        return model::end_of(object) && *model::end_of(object) <= clock_.wall();
    }

    // ---- what users do

    std::string step() {
        const uint64_t which = random_.below(16);
        if (which < 3) return make_pod(1);
        if (which < 5) return make_pod(random_.chance(1, 3) ? 1000 : 100);
        if (which < 7) return make_reservation();
        if (which < 8) return edit();
        if (which < 9) return delete_something();
        if (which < 10) return end_pods();
        if (which < 11) return reconcile();
        if (which < 12) {
            clock_.advance(calm_ ? seconds(random_.below(20)) : seconds(random_.below(120)));
            return "time";
        }
        decide();
        send(random_.below(6));
        return "schedule";
    }

    std::string make_pod(int32_t priority) {
        model::Pod pod;
        pod.meta.ns = "default";
        pod.meta.name = fmt::format("p{}", ++names_);
        pod.meta.uid = new_uid();
        pod.meta.created = clock_.wall();
        const std::string app = kApps[random_.below(3)];
        pod.meta.labels.set("app", app);
        auto spec = std::make_shared<model::PodSpec>();
        spec->ns = "default";
        spec->labels = pod.meta.labels;
        spec->scheduler_name = "berth";
        spec->priority = priority;
        spec->requests =
            model::Resources{{model::kCpu, 1000 * random_.between(1, priority > 1 ? 6 : 3)}, {model::kPods, 1}};
        spec->scoring_cpu_milli = spec->requests.get(model::kCpu);
        if (random_.chance(1, 3)) spec->ports.push_back({8080, model::Protocol::TCP, "0.0.0.0"});
        if (priority > 1 && random_.chance(1, 3)) {
            spec->anti_affinity.push_back(
                {Selector::parse("app=low").value(), {"default"}, std::nullopt, "kubernetes.io/hostname"});
        }
        if (random_.chance(1, 6)) pod.meta.annotations.set(model::kReservationAffinity, "{}");
        pod.spec = std::move(spec);
        const std::string what = fmt::format("{} of {} ({}m)", pod.meta.name, app, pod.spec->requests.get(model::kCpu));
        store(std::move(pod));
        return what;
    }

    std::string make_reservation() {
        model::Reservation made;
        made.meta.name = fmt::format("r{}", ++names_);
        made.meta.uid = new_uid();
        made.meta.created = clock_.wall();
        auto spec = std::make_shared<model::PodSpec>();
        spec->ns = "default";
        spec->priority = INT32_MAX;
        spec->never_preempts = true;
        spec->requests = model::Resources{{model::kCpu, 1000 * random_.between(1, 5)}, {model::kPods, 1}};
        if (random_.chance(1, 4)) spec->ports.push_back({8080, model::Protocol::TCP, "0.0.0.0"});
        made.spec = std::move(spec);
        made.owners.emplace_back().labels = Selector::parse(fmt::format("app={}", kApps[random_.below(3)])).value();
        made.allocate_once = random_.chance(1, 2);
        made.pre_allocation = random_.chance(1, 4);
        made.policy = static_cast<model::AllocatePolicy>(random_.below(3));
        made.ttl = calm_ ? std::chrono::hours(900) : std::chrono::hours(1);
        if (!calm_ && random_.chance(1, 2)) made.ttl = seconds(random_.between(1, 300));
        if (!calm_ && random_.chance(1, 6)) made.expires = clock_.wall() + seconds(random_.between(-60, 200));
        const std::string name = made.meta.name;
        store(std::move(made));
        return name;
    }

    // One that is placed keeps its owners and its policy, as a server that judges
    // would have it.
    std::string edit() {
        const std::string name = any(reservations_, [](const auto& entry) {
            return !model::is_final(entry.second->phase) && model::preemption_hold_owner(*entry.second).empty();
        });
        if (calm_ || name.empty()) return "nothing";
        model::Reservation next = *reservations_.at(name);
        const bool waits = next.phase == model::ReservationPhase::Pending;
        switch (random_.below(waits ? 8 : 4)) {
            case 0:
                next.unschedulable = !next.unschedulable;
                break;
            case 1:
                next.expires = std::nullopt;
                next.ttl = seconds(random_.between(1, 2000));
                break;
            case 2:
                next.expires = clock_.wall() + seconds(random_.between(-10, 200));
                break;
            case 3:
                next.taints.empty() ? next.taints.push_back({"k", "", "NoSchedule"}) : next.taints.clear();
                break;
            case 4:
                next.pre_allocation = !next.pre_allocation;
                break;
            case 5:
                next.policy = static_cast<model::AllocatePolicy>(random_.below(3));
                break;
            case 6:
                next.allocate_once = !next.allocate_once;
                break;
            default:
                next.owners.front().labels = Selector::parse(fmt::format("app={}", kApps[random_.below(3)])).value();
        }
        store(std::move(next));
        return "edit " + name;
    }

    std::string delete_something() {
        if (!calm_ && random_.chance(1, 3)) {
            const std::string name = any(reservations_, [](const auto&) { return true; });
            if (!name.empty()) erase_reservation(name);
            return "delete " + name;
        }
        const std::string name = any(pods_, [](const auto& entry) { return !entry.second.meta.deleted; });
        if (name.empty()) return "nothing";
        evict(name, false);
        return "delete " + name;
    }

    template <class Map, class Good>
    std::string any(const Map& objects, Good good) {
        std::vector<std::string> names;
        for (const auto& entry : objects) {
            if (good(entry)) names.push_back(entry.first);
        }
        return names.empty() ? "" : names[random_.below(names.size())];
    }

    void evict(const std::string& name, bool preempted) {
        if (pods_.at(name).node.empty()) return erase_pod(name);
        model::Pod next = pods_.at(name);
        next.meta.deleted = clock_.wall();
        next.preempted = preempted;
        store(std::move(next));
    }
    std::string end_pods() {
        for (const auto& [name, pod] : std::map(pods_)) {
            if (pod.meta.deleted) erase_pod(name);
        }
        return "pods end";
    }

    std::string reconcile() {
        server_.pass_time(clock_.wall(), clock_.now());
        const auto changes =
            control::reconcile_reservations({.opens = false}, server_, final_ones_, clock_.wall(), clock_.now());
        for (const auto& change : changes) {
            if (change.over) {
                erase_reservation(change.name);
                continue;
            }
            model::Reservation next = *reservations_.at(change.name);
            static_cast<model::ReservationStatus&>(next) = *change.status;
            store(std::move(next));
        }
        return "reconcile";
    }

    // ---- the scheduler and its server

    void decide(size_t most = 4) {
        for (auto& plan : scheduler_->step(clock_.now(), clock_.wall(), most)) outbox_.push_back(std::move(plan));
    }
    void send(uint64_t most) {
        for (uint64_t i = 0; i < most && !outbox_.empty(); ++i) {
            const sched::Plan plan = std::move(outbox_.front());
            outbox_.pop_front();
            server_.pass_time(clock_.wall(), clock_.now());
            const bool done = std::visit([this](const auto& p) { return carry_out(p); }, plan);
            const auto outcome = done ? sched::Outcome::Done : sched::Outcome::Refused;
            for (auto& next : scheduler_->outcome(plan, outcome, clock_.now())) outbox_.push_back(std::move(next));
        }
    }

    static bool carry_out(const auto&) { return true; }
    bool carry_out(const sched::BindPod& bind) {
        const auto found = pods_.find(bind.name);
        if (found == pods_.end() || found->second.meta.uid != bind.uid || !found->second.node.empty()) return false;
        model::Pod next = found->second;
        next.node = bind.node;
        for (const auto& [key, value] : bind.annotations) next.meta.annotations.set(key, value);
        if (!rules_.judge_bind(next, server_)) return false;
        const auto links = model::read_links(next.meta.annotations).value();
        store(std::move(next));
        for (const auto& [name, uid] : links.named()) {
            model::Reservation object = *reservations_.at(name);
            EXPECT_FALSE(has_ended(object)) << bind.name << " was bound to " << name << " after its end";
            if (!object.allocate_once) continue;
            static_cast<model::ReservationStatus&>(object) = model::ended_by_bind(object, clock_.wall());
            store(std::move(object));
        }
        return true;
    }
    bool carry_out(const sched::RefusePod& refuse) {
        const auto found = pods_.find(refuse.name);
        if (found == pods_.end()) return false;
        if (!refuse.nominated) return true;
        model::Pod next = found->second;
        next.nominated_node = *refuse.nominated;
        store(std::move(next));
        return true;
    }
    bool carry_out(const sched::ClearNomination& clear) {
        return carry_out(sched::RefusePod{clear.uid, clear.ns, clear.name, "", "", ""});
    }
    bool carry_out(const sched::EvictPod& evicted) {
        const auto found = pods_.find(evicted.name);
        if (found == pods_.end() || evicted.step == sched::EvictPod::Step::Mark) return true;
        evict(evicted.name, true);
        gone_for_.insert(evicted.by);
        return true;
    }
    bool carry_out(const sched::HoldRoom& hold) {
        if (reservations_.contains(model::preemption_hold_name(hold.uid))) return true;
        base::JsonParser parser;
        const std::string text = base::to_text(model::preemption_hold_for(*hold.pod, hold.node));
        auto room = model::read_reservation(*parser.parse(text));
        EXPECT_TRUE(room.ok());
        room->meta.uid = new_uid();
        room->meta.created = clock_.wall();
        store(*std::move(room));
        return true;
    }
    bool carry_out(const sched::DropRoom& drop) {
        const auto found = reservations_.find(drop.name);
        if (found == reservations_.end() || found->second->meta.uid != drop.uid) return false;
        erase_reservation(drop.name);
        return true;
    }
    bool write_status(const auto& plan, bool placed) {
        const auto found = reservations_.find(plan.name);
        if (found == reservations_.end() || found->second->meta.uid != plan.uid) return false;
        if (found->second->meta.revision != plan.revision) return false;
        model::Reservation next = *found->second;
        static_cast<model::ReservationStatus&>(next) = plan.status;
        if (placed && !rules_.judge_place(next, server_)) return false;
        EXPECT_FALSE(placed && has_ended(next)) << plan.name << " was placed after its end";
        store(std::move(next));
        return true;
    }
    bool carry_out(const sched::WriteReservation& write) { return write_status(write, write.placed); }
    bool carry_out(const sched::ClaimReservation& claim) { return write_status(claim, false); }
    bool carry_out(const sched::OpenReservation& open) { return write_status(open, false); }

    // ---- what must hold

    // The node equation, from the stored objects alone; waiting ones are left
    // out.
    void check_nodes() const {
        for (const auto& stored : nodes_) {
            const std::string& node = stored->meta.name;
            std::map<std::string, int64_t> charged;
            int64_t used = 0;
            const auto live = [&](const std::string& uid) {
                return std::any_of(reservations_.begin(), reservations_.end(), [&](const auto& entry) {
                    return entry.second->meta.uid == uid && model::holds_room(*entry.second) &&
                           entry.second->node == node;
                });
            };
            for (const auto& [name, pod] : pods_) {
                if (pod.node != node) continue;
                int64_t rest = pod.spec->requests.get(model::kCpu);
                const auto links = model::read_links(pod.meta.annotations).value();
                for (const auto& draw : links.draws) {
                    const int64_t part = draw.amount.get(model::kCpu);
                    (live(draw.uid) ? charged[draw.uid] : used) += part;
                    rest -= part;
                }
                (links.allocated && live(links.allocated->uid) ? charged[links.allocated->uid] : used) += rest;
            }
            for (const auto& [name, object] : reservations_) {
                if (object->node != node || object->phase != model::ReservationPhase::Available) continue;
                used += std::max(object->allocatable.get(model::kCpu), charged[object->meta.uid]);
            }
            EXPECT_LE(used, kNodeCpu * 1000) << node;
        }
    }

    // Nothing more comes. When nothing has happened for longer than the longest backoff, whoever can be placed is, and
    // who had others evicted has their room.
    void settle() {
        int quiet = 0;
        for (int round = 0; round < 40 && quiet < 3; ++round) {
            const uint64_t before = revision_;
            for (int i = 0; i < 3; ++i) {
                decide(1000);  // everybody has his turn
                send(1000);
                reconcile();
            }
            end_pods();
            quiet = revision_ == before && outbox_.empty() ? quiet + 1 : 0;
            clock_.advance(seconds(5));
        }
        EXPECT_EQ(quiet, 3) << "it does not come to rest";
        check_nodes();
        if (testing::Test::HasFailure()) return;
        bool waits_for_room = false;
        for (const auto& [name, pod] : pods_) {
            if (!pod.node.empty()) continue;
            waits_for_room = waits_for_room || !pod.nominated_node.empty();
            EXPECT_FALSE(calm_ && gone_for_.contains(pod.meta.uid)) << "others went for " << name << " in vain";
        }
        if (waits_for_room) return;
        for (const auto& [name, pod] : pods_) {
            if (!pod.node.empty()) continue;
            const auto row = sched::decide_pod(pod, server_, sched::default_profile()).verdict.chosen;
            EXPECT_EQ(row, ledger::kNoRow) << name << " would fit and waits";
        }
        for (const auto& [name, object] : reservations_) {
            if (object->phase != model::ReservationPhase::Pending || has_ended(*object)) continue;
            const auto row = sched::decide_reservation(*object, server_, sched::default_profile()).verdict.chosen;
            EXPECT_EQ(row, ledger::kNoRow) << name << " would fit and waits";
        }
    }

    base::Random random_;
    const bool calm_;
    base::ManualClock clock_{base::Time{1'800'000'000'000'000'000}};
    control::Ages final_ones_;
    std::unique_ptr<sched::Scheduler> scheduler_;
    ledger::Ledger server_;  // of stored objects: the judge's, and the controllers'
    const run::BindRules rules_;
    std::deque<sched::Plan> outbox_;
    std::vector<std::shared_ptr<const model::Node>> nodes_;
    std::map<std::string, model::Pod> pods_;
    std::map<std::string, std::shared_ptr<const model::Reservation>> reservations_;
    std::set<std::string> gone_for_;  // uids of pods for which others were evicted
    uint64_t revision_ = 0;
    uint64_t uids_ = 0;
    uint64_t names_ = 0;
};

void run_seed(uint64_t seed, bool calm, bool restarts) {
    SCOPED_TRACE(fmt::format("again with BERTH_SEED={} BERTH_SEEDS=1", seed));
    Town(seed, calm).run(160, restarts);
}

// BERTH_SEED and BERTH_SEEDS choose which.
void run_seeds(bool calm, bool restarts) {
    const char* first = std::getenv("BERTH_SEED");
    const char* many = std::getenv("BERTH_SEEDS");
    const uint64_t begin = first ? std::strtoull(first, nullptr, 10) : 1;
    const uint64_t count = many ? std::strtoull(many, nullptr, 10) : 1000;
    for (uint64_t seed = begin; seed < begin + count; ++seed) {
        run_seed(seed, calm, restarts);
        if (testing::Test::HasFailure()) return;
    }
}

TEST(SchedulerHistory, NobodyIsEvictedInVain) {
    run_seeds(true, false);
}

TEST(SchedulerHistory, NorAcrossRestarts) {
    run_seeds(true, true);
}

// Where those above do not come by themselves.
TEST(SchedulerHistory, SeedsThatFailedOnce) {
    run_seed(2703, true, false);  // a port is held by what another, promised a part of it, will use up
    run_seed(1495, true, true);   // what was promised before a restart is drawn by another
    run_seed(1800, true, true);
}

TEST(SchedulerHistory, NothingHappensAfterAnEndAndEveryEditIsSeen) {
    run_seeds(false, false);
}

}  // namespace
}  // namespace berth::reservations
