// With reservations, their owners and volumes: the fast way must choose as the whole-table way does, and charge the
// same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "random_objects.h"
#include "sched/credit.h"
#include "sched/cycle.h"
#include "sched/draw.h"
#include "sched/fast/decider.h"

namespace berth::properties {
namespace {

using base::Random;

class World {
public:
    World(uint64_t seed, size_t nodes) : random_(seed), size_(nodes) {
        for (size_t i = 0; i < nodes; ++i) put_node(i);
        put_volumes(random_, nodes, ledger_);
        for (size_t i = 0; i < 8; ++i) specs_.push_back(ledger_.intern(random_holding_spec(random_, nodes)));
    }

    void step() {
        const uint64_t what = random_.below(100);
        if (what < 3) put_node(random_.below(size_));
        if (what == 3) ledger_.remove_node(node_name(random_.below(size_)));
        if (what < 25) remove_pod();
        if (what >= 60) change_reservation();
        if (what >= 90) place_reservation();
        decide_one();
    }
    const sched::fast::Decider::Counts& counts() const { return often_.counts(); }

private:
    void put_node(size_t number) {
        ledger_.put(std::make_shared<const model::Node>(random_node(random_, node_name(number))));
    }

    void remove_pod() {
        if (pods_.empty()) return;
        const size_t at = random_.below(pods_.size());
        ledger_.remove_pod(pods_[at].meta.uid);
        pods_[at] = pods_.back();
        pods_.pop_back();
    }

    // A new one, one with another status or spec, or one that goes.
    void change_reservation() {
        const size_t number = random_.below(6 + size_);
        model::Reservation made = random_reservation(random_, number, size_);
        const auto known = ledger_.find_reservation(made.meta.uid);
        const uint64_t how = known == ledger::kNone ? 0 : random_.below(6);
        if (how == 1) return ledger_.remove_reservation(made.meta.uid);
        if (how == 2) made.phase = model::ReservationPhase::Failed;
        if (how == 3 && !pods_.empty()) {
            const auto& owner = pods_[random_.below(pods_.size())].meta;
            made.current_owners.push_back({owner.ns, owner.name, random_.chance(1, 2) ? owner.uid : uid(next_)});
        }
        made.meta.revision = ++revision_;
        ledger_.put(std::make_shared<const model::Reservation>(std::move(made)));
    }

    void place_reservation() {
        auto made = std::make_shared<model::Reservation>(random_reservation(random_, 1000 + next_, size_));
        made->phase = model::ReservationPhase::Pending;
        made->node.clear();
        const ledger::Row chosen = sched::decide(sched::ask_for(*made), ledger_, sched::default_profile()).chosen;
        ASSERT_EQ(often_.choose(*made, ledger_), chosen) << made->meta.name;
        if (chosen == ledger::kNoRow || random_.chance(1, 3)) return;
        ledger_.put(made);
        ledger_.assume_reservation(ledger_.find_reservation(made->meta.uid), chosen, false);
    }

    void decide_one() {
        model::Pod pod;
        pod.spec = random_.chance(7, 8) ? specs_[random_.below(specs_.size())] : random_holding_spec(random_, size_);
        add_identity(random_, pod);
        pod.meta.uid = uid(next_++);
        const sched::Decision decision = sched::decide_pod(pod, ledger_, sched::default_profile());
        const ledger::Row chosen = decision.verdict.chosen;
        ASSERT_EQ(often_.choose(pod, ledger_), chosen) << pod.meta.uid;
        if (random_.chance(1, 20)) {
            ASSERT_EQ(seldom_.choose(pod, ledger_), chosen) << pod.meta.uid;
        }
        if (chosen == ledger::kNoRow) return;
        const auto charges = often_.charges(pod, ledger_, chosen);
        ASSERT_EQ(charges, decision.charges) << pod.meta.uid;
        if (random_.chance(1, 6)) return;
        ledger_.assume(pod, chosen, charges);
        if (random_.chance(1, 3)) bind(pod, decision, chosen);
        pods_.push_back(std::move(pod));
    }

    // The server's word: an allocateOnce reservation is used up by it. Sometimes somebody wrote nonsense.
    void bind(model::Pod& pod, const sched::Decision& decision, ledger::Row row) {
        pod.node = std::string(ledger_.name(row));
        for (const auto& [key, value] : decision.annotations) pod.meta.annotations.set(key, value);
        if (random_.chance(1, 30)) pod.meta.annotations.set(std::string(model::kReservationAllocated), "nonsense");
        ledger_.put(pod);
    }

    static std::string uid(uint64_t number) { return fmt::format("{:08x}-0000-4000-8000-{:012x}", number, number); }

    Random random_;
    size_t size_;
    ledger::Ledger ledger_;
    sched::fast::Decider often_{sched::default_profile()};
    sched::fast::Decider seldom_{sched::default_profile()};
    std::vector<std::shared_ptr<const model::PodSpec>> specs_;
    std::vector<model::Pod> pods_;
    uint64_t next_ = 0;
    uint64_t revision_ = 0;
};

TEST(Holds, TheFastWayAgreesWithReservationsAndVolumes) {
    const char* given = std::getenv("BERTH_SEED");
    const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : base::seed_from_system();
    fmt::print("BERTH_SEED={}\n", seed);
    Random random(seed);
    uint64_t drawn = 0;
    uint64_t far = 0;
    for (int cluster = 0; cluster < 150 && !HasFailure(); ++cluster) {
        const uint64_t of_cluster = random.next();
        const size_t nodes = 1 + random.below(cluster % 10 == 0 ? 200 : 30);
        SCOPED_TRACE(fmt::format("BERTH_SEED={} cluster {} of {} nodes", seed, cluster, nodes));
        World world(of_cluster, nodes);
        for (size_t i = 0; i < 250 && !HasFailure(); ++i) {
            SCOPED_TRACE(fmt::format("step {}", i));
            world.step();
        }
        drawn += world.counts().drawn;
        far += world.counts().far;
    }
    // The ways that are compared were gone.
    EXPECT_GT(drawn, 100u);
    EXPECT_GT(far, 100u);
}

}  // namespace
}  // namespace berth::properties
