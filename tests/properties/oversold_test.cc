// Nothing is oversold, and nothing is refused that would fit: small nodes with few slots, reservations of every kind on
// them, whole or half used, pods that draw from several, evictions, those that wait, binds that fail and statuses that
// come late; a judge that knows the node equation alone looks at every placement.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "node_judge.h"
#include "random_objects.h"
#include "run/bind_rules.h"
#include "sched/cycle.h"
#include "sched/draw.h"
#include "sched/fast/decider.h"
#include "sched/preempt.h"

namespace berth::properties {
namespace {

using base::Random;
using model::ReservationPhase;

NodeJudge::Amounts plain(const model::Resources& resources) {
    NodeJudge::Amounts out;
    resources.for_each(
        [&](model::ResourceId id, int64_t amount) { out[std::string(model::resource_name(id))] = amount; });
    return out;
}

class World {
public:
    // In some clusters others place pods too, and nodes shrink: there a node may be too full before anything is placed.
    explicit World(uint64_t seed)
        : random_(seed), size_(1 + random_.below(2)), alone_(random_.chance(2, 3)), joint_world_(random_.chance(2, 3)) {
        for (size_t i = 0; i < size_; ++i) put_node(i);
        for (size_t i = 0; i < 6; ++i) specs_.push_back(ledger_.intern(tight_spec(random_, joint_world_)));
    }

    void step() {
        const uint64_t what = random_.below(100);
        if (what < 3 && !alone_) put_node(random_.below(size_));
        if (what >= 3 && what < 6 && !alone_) place_as_others_do();
        if (what < 30) remove_pod();
        if (what >= 30 && what < 38) end_reservation();
        if (what >= 38 && what < 42) bind_as_others_do();
        if (what >= 42 && what < 88) place_reservation();
        end_used_up(random_.chance(1, 3) ? 0 : used_up_.size());
        promote_waiting();
        if (what < 20 || what >= 70) decide_one();
        if (alone_) expect_sound(judge_.faults());
    }
    uint64_t placements() const { return placements_; }
    uint64_t joint() const { return joint_; }
    uint64_t refused() const { return refused_; }

private:
    // ---- what changes

    void put_node(size_t number) {
        model::Node node = tight_node(random_, node_name(number));
        judge_.nodes[node.meta.name] = plain(node.allocatable);
        ledger_.put(std::make_shared<const model::Node>(std::move(node)));
    }

    void forget(const std::string& uid) {
        ledger_.remove_pod(uid);
        judge_.pods.erase(uid);
    }

    void remove_pod() {
        if (judge_.pods.empty()) return;
        auto pod = judge_.pods.begin();
        std::advance(pod, static_cast<long>(random_.below(judge_.pods.size())));
        end_used_up(0);
        forget(std::string(pod->first));
    }

    void tell(model::Reservation object) {
        object.meta.revision = ++revision_;
        auto& known = judge_.reservations[object.meta.uid];
        known.live = model::holds_room(object);
        known.waiting = object.phase == ReservationPhase::Waiting;
        known.open = !object.unschedulable;
        objects_[object.meta.uid] = object;
        ledger_.put(std::make_shared<const model::Reservation>(std::move(object)));
    }

    // It fails, is deleted, or is closed.
    void end_reservation() {
        if (objects_.empty()) return;
        auto chosen = objects_.begin();
        std::advance(chosen, static_cast<long>(random_.below(objects_.size())));
        model::Reservation object = chosen->second;
        const uint64_t how = random_.below(3);
        if (how == 0) object.phase = ReservationPhase::Failed;
        if (how == 1) object.unschedulable = !object.unschedulable;
        tell(object);
        if (how == 1) return;
        if (how == 2) {
            ledger_.remove_reservation(object.meta.uid);
            judge_.reservations[object.meta.uid].live = false;
        }
        objects_.erase(object.meta.uid);
        std::erase(used_up_, object.meta.uid);
    }

    // Succeeded is stored with the binding or later.
    void end_used_up(size_t left) {
        while (used_up_.size() > left) {
            model::Reservation object = objects_.at(used_up_.back());
            used_up_.pop_back();
            object.phase = ReservationPhase::Succeeded;
            tell(object);
            objects_.erase(object.meta.uid);
        }
    }

    void promote_waiting() {
        for (const auto& [uid, known] : objects_) {
            if (known.phase != ReservationPhase::Waiting) continue;
            if (!ledger_.shortage(ledger_.find_reservation(uid)).empty()) continue;
            model::Reservation object = known;
            object.phase = ReservationPhase::Available;
            return tell(object);
        }
    }

    void place_as_others_do() {
        model::Pod pod = new_pod();
        pod.node = node_name(random_.below(size_));
        put_bound(pod);
    }

    // ---- reservations

    void place_reservation() {
        model::Reservation object = tight_reservation(random_, next_reservation_++, joint_world_);
        const auto decision = sched::decide_reservation(object, ledger_, sched::default_profile());
        const ledger::Row row = decision.verdict.chosen;
        if (!decision.waiting) {
            ASSERT_EQ(fast_.choose(object, ledger_), row) << object.meta.name;
        }
        if (row == ledger::kNoRow) return;
        ++placements_;
        const std::string node(ledger_.name(row));
        NodeJudge::Reservation known;
        known.node = node;
        known.owner = object.owners.front().labels->requirements().front().values.front();
        known.reserved = plain(object.spec->requests);
        known.held_back = plain(object.held_back);
        for (const auto id : object.restricted) known.restricted.insert(std::string(model::resource_name(id)));
        known.policy = static_cast<NodeJudge::Reservation::Policy>(object.policy);
        known.once = object.allocate_once;
        judge_.reservations[object.meta.uid] = std::move(known);
        object.phase = decision.waiting ? ReservationPhase::Waiting : ReservationPhase::Available;
        object.node = node;
        object.allocatable = object.spec->requests;
        const auto reserved = plain(object.spec->requests);
        tell(std::move(object));
        if (decision.waiting) return;
        // It takes nothing from those that wait.
        const auto used = judge_.use_of(node).with_waiting;
        for (const auto& [name, amount] : reserved) {
            EXPECT_TRUE(amount == 0 || used.at(name) <= judge_.nodes[node][name]) << node << " " << name;
        }
    }

    // ---- pods

    model::Pod new_pod() {
        model::Pod pod;
        pod.spec = random_.chance(3, 4) ? specs_[random_.below(specs_.size())] : tight_spec(random_, joint_world_);
        pod.meta.ns = pod.spec->ns;
        pod.meta.labels = pod.spec->labels;
        pod.meta.uid = fmt::format("{:08x}-0000-4000-8000-{:012x}", next_, next_);
        pod.meta.name = fmt::format("pod-{}", next_++);
        return pod;
    }

    static NodeJudge::Pod as_written(const model::Pod& pod) {
        return {pod.node, std::string(pod.meta.labels.get("app")), plain(pod.spec->requests),
                std::string(pod.meta.annotations.get(model::kReservationAllocated)),
                std::string(pod.meta.annotations.get(model::kReservationDraws))};
    }

    void decide_one() {
        model::Pod pod = new_pod();
        const bool must_draw = random_.chance(1, 12);
        if (must_draw) pod.meta.annotations.set(std::string(model::kReservationAffinity), "{}");
        const sched::Decision decision = sched::decide_pod(pod, ledger_, sched::default_profile());
        const ledger::Row row = decision.verdict.chosen;
        ASSERT_EQ(fast_.choose(pod, ledger_), row) << pod.meta.name;
        if (row != ledger::kNoRow) {
            ASSERT_EQ(fast_.charges(pod, ledger_, row), decision.charges) << pod.meta.name;
            return place(pod, row, decision);
        }
        ++refused_;
        if (!must_draw && pod.spec->ports.empty() && !anything_held_back()) expect_fits_nowhere(pod);
        preempt(pod, decision.verdict.strikes);
    }

    void expect_fits_nowhere(const model::Pod& pod) {
        const auto nodes = judge_.could_go(as_written(pod));
        EXPECT_TRUE(nodes.empty()) << pod.meta.name << " was refused, and fits on " << fmt::format("{}", nodes)
                                   << describe(pod);
    }

    // Then less may be drawn than the equation has.
    bool anything_held_back() const {
        return std::any_of(objects_.begin(), objects_.end(),
                           [](const auto& entry) { return !entry.second.held_back.empty(); });
    }

    void preempt(model::Pod& pod, const sched::Strikes& strikes) {
        if (pod.spec->priority == 0) return;
        const sched::Ask ask = sched::ask_for(pod, ledger_);
        const auto found = sched::preempt(ask, ledger_, sched::default_profile(), strikes, {}, costs_);
        if (!found.victims) return;
        std::vector<std::string> victims;
        for (const auto index : found.victims->pods) victims.push_back(ledger_.pod(index).uid.text());
        for (const auto& uid : victims) forget(uid);
        pod.nominated_node = std::string(ledger_.name(found.victims->row));
        const auto decision =
            sched::decide_pod(sched::ask_for(pod, ledger_), ledger_, sched::default_profile(), sched::Nominated());
        ASSERT_EQ(decision.verdict.chosen, found.victims->row) << pod.meta.name << " evicted in vain";
        place(pod, decision.verdict.chosen, decision);
    }

    void place(model::Pod pod, ledger::Row row, const sched::Decision& decision) {
        const std::string uid = pod.meta.uid;
        model::Pod bound = pod;
        bound.node = std::string(ledger_.name(row));
        for (const auto& [key, value] : decision.annotations) bound.meta.annotations.set(key, value);
        const auto admitted = rules_.judge_bind(bound, ledger_);
        EXPECT_TRUE(admitted.ok()) << pod.meta.name << ": " << admitted.error().message;
        const auto before = judge_.use_of(bound.node);
        if (random_.chance(1, 2)) ledger_.assume(pod, row, decision.charges);
        ++placements_;
        joint_ += decision.charges.size() > 1;
        judge_.pods[uid] = as_written(bound);
        expect_sound(judge_.faults_of(uid, before), bound);
        if (ledger_.find_pod(uid) != ledger::kNone && random_.chance(1, 8)) return forget(uid);  // the bind failed
        put_bound(bound);
        for (const auto& charge : decision.charges) {
            const auto& object = *ledger_.reservation(charge.reservation).object;
            if (object.allocate_once) used_up_.push_back(object.meta.uid);
        }
    }

    void put_bound(const model::Pod& pod) {
        judge_.pods[pod.meta.uid] = as_written(pod);
        ledger_.put(pod);
    }

    // A bind with links that somebody else thought of; the embedded server asks the rules.
    void bind_as_others_do() {
        model::Pod pod = new_pod();
        pod.node = node_name(random_.below(size_));
        std::vector<model::Draw> draws;
        for (const auto& [uid, object] : objects_) {
            if (object.node != pod.node || random_.chance(1, 3)) continue;
            model::Resources part;
            pod.spec->requests.for_each([&](model::ResourceId id, int64_t amount) {
                if (id != model::kPods && amount > 0) part.set(id, random_.chance(1, 2) ? amount : amount / 2);
            });
            draws.push_back({object.meta.name, uid, part});
        }
        if (draws.empty()) return;
        std::swap(draws.front(), draws[random_.below(draws.size())]);
        const model::Allocated first{draws.front().name, draws.front().uid};
        pod.meta.annotations.set(std::string(model::kReservationAllocated), model::allocated_text(first));
        draws.erase(draws.begin());
        if (!draws.empty()) {
            pod.meta.annotations.set(std::string(model::kReservationDraws), model::draws_text(draws));
        }
        if (!rules_.judge_bind(pod, ledger_)) return;
        ++placements_;
        const auto before = judge_.use_of(pod.node);
        put_bound(pod);
        expect_sound(judge_.faults_of(pod.meta.uid, before), pod);
        draws.push_back({first.name, first.uid, {}});
        for (const auto& draw : draws) {
            if (objects_.at(draw.uid).allocate_once) used_up_.push_back(draw.uid);
        }
    }

    // ---- the judge

    void expect_sound(const std::vector<std::string>& faults) const { EXPECT_EQ(faults, std::vector<std::string>()); }
    void expect_sound(const std::vector<std::string>& faults, const model::Pod& pod) const {
        EXPECT_EQ(faults, std::vector<std::string>()) << describe(pod);
    }
    std::string describe(const model::Pod& pod) const {
        std::string out = fmt::format("\nafter {} placements: {} app={} {} on {} {} {}\n", placements_, pod.meta.name,
                                      pod.meta.labels.get("app"), plain(pod.spec->requests), pod.node,
                                      pod.meta.annotations.get(model::kReservationAllocated),
                                      pod.meta.annotations.get(model::kReservationDraws));
        for (const auto& [name, amounts] : judge_.nodes) out += fmt::format("node {} {}\n", name, amounts);
        for (const auto& [uid, r] : judge_.reservations) {
            if (r.live) {
                out += fmt::format("reservation {} {} app={} {} held back {} policy {} once {} waiting {} open {}\n",
                                   uid, r.node, r.owner, r.reserved, r.held_back, static_cast<int>(r.policy), r.once,
                                   r.waiting, r.open);
            }
        }
        for (const auto& [uid, p] : judge_.pods) {
            out += fmt::format("pod {} {} app={} {} {} {}\n", uid, p.node, p.app, p.requests, p.allocated, p.draws);
        }
        return out;
    }

    Random random_;
    size_t size_;
    bool alone_;        // nobody else places anything, and nodes stay as they are
    bool joint_world_;  // see random_objects.h
    ledger::Ledger ledger_;
    NodeJudge judge_;
    run::BindRules rules_;
    sched::CostMemory costs_;
    sched::fast::Decider fast_{sched::default_profile()};
    std::vector<std::shared_ptr<const model::PodSpec>> specs_;
    std::map<std::string, model::Reservation> objects_;  // those that are not final
    std::vector<std::string> used_up_;                   // by a binding; not yet Succeeded
    uint64_t next_ = 0;
    uint64_t next_reservation_ = 0;
    uint64_t revision_ = 0;
    uint64_t placements_ = 0;
    uint64_t joint_ = 0;
    uint64_t refused_ = 0;
};

uint64_t number_from(const char* variable, uint64_t otherwise) {
    const char* given = std::getenv(variable);
    return given ? std::strtoull(given, nullptr, 10) : otherwise;
}

int failures() {
    return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
}

// BERTH_SEED: the first cluster's seed, the next one's is one more. BERTH_PLACEMENTS: how many at least.
TEST(Oversold, NothingIsByAnyPlacement) {
    const uint64_t first = number_from("BERTH_SEED", base::seed_from_system() >> 1);
    const uint64_t wanted = number_from("BERTH_PLACEMENTS", 10'000);
    uint64_t placements = 0, joint = 0, refused = 0, seed = first;
    int faulty = 0;
    for (; placements < wanted && faulty < 20; ++seed) {
        SCOPED_TRACE(fmt::format("BERTH_SEED={} after {} placements of earlier clusters", seed, placements));
        World world(seed);
        const int faults_before = failures();
        for (size_t i = 0; i < 100 && failures() == faults_before; ++i) world.step();
        faulty += failures() > faults_before;
        placements += world.placements();
        joint += world.joint();
        refused += world.refused();
    }
    fmt::print("seeds {} to {}: {} placements, {} of them joint, {} pods refused\n", first, seed - 1, placements, joint,
               refused);
    // What is judged was there.
    EXPECT_GT(joint, wanted / 1000);
    EXPECT_GT(refused, wanted / 100);
}

}  // namespace
}  // namespace berth::properties
