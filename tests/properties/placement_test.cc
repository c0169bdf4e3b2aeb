// Three evaluations of the same question must agree: the fast way, the plain whole-table way, and a third one written
// for this test alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "plain.h"
#include "random_objects.h"
#include "sched/decide.h"
#include "sched/fast/decider.h"

namespace berth::properties {
namespace {

using base::Random;

class World {
public:
    enum class Pods { Alone, Near };  // near: places of other pods matter; the third evaluation does not know them

    World(uint64_t seed, size_t nodes, Pods pods) : random_(seed), size_(nodes), pods_(pods) {
        for (size_t i = 0; i < nodes; ++i) put_node(i);
        for (size_t i = 0; i < 12; ++i) specs_.push_back(ledger_.intern(new_spec()));
    }

    void step() {
        const uint64_t what = random_.below(100);
        if (what < 4) change_node();
        if (what < 30) remove_pod();
        decide_one();
    }

private:
    void put_node(size_t number) {
        model::Node node = random_node(random_, node_name(number));
        plain_.nodes[node.meta.name] = node;
        ledger_.put(std::make_shared<const model::Node>(std::move(node)));
    }

    std::shared_ptr<const model::PodSpec> new_spec() {
        return pods_ == Pods::Near ? random_near_spec(random_, size_) : random_spec(random_, size_);
    }

    // A node is replaced, comes back, or goes with its pods.
    void change_node() {
        const size_t number = random_.below(size_);
        const std::string name = node_name(number);
        if (random_.chance(2, 3) || !plain_.nodes.contains(name)) return put_node(number);
        for (auto pod = plain_.pods.begin(); pod != plain_.pods.end();) {
            const bool here = pod->second.node == name;
            if (here) ledger_.remove_pod(pod->first);
            pod = here ? plain_.pods.erase(pod) : std::next(pod);
        }
        plain_.nodes.erase(name);
        ledger_.remove_node(name);
    }

    void remove_pod() {
        if (plain_.pods.empty()) return;
        auto pod = plain_.pods.lower_bound(uid(random_.below(next_)));
        if (pod == plain_.pods.end()) pod = plain_.pods.begin();
        ledger_.remove_pod(pod->first);
        plain_.pods.erase(pod);
    }

    void decide_one() {
        model::Pod pod;
        pod.meta.name = "pod";
        pod.meta.uid = uid(next_++);
        pod.spec = random_.chance(5, 6) ? specs_[random_.below(specs_.size())] : new_spec();
        const sched::Ask ask = sched::ask_for(pod, ledger_);
        const sched::Verdict verdict = sched::decide(ask, ledger_, sched::default_profile());
        if (pods_ == Pods::Alone) expect_same(plain_.evaluate(*pod.spec), verdict);
        ASSERT_EQ(often_.choose(pod, ledger_), verdict.chosen) << pod.meta.uid;
        if (random_.chance(1, 20)) {
            ASSERT_EQ(seldom_.choose(pod, ledger_), verdict.chosen) << pod.meta.uid;
        }
        if (verdict.chosen == ledger::kNoRow || random_.chance(1, 5)) return;
        // Mostly where it belongs; sometimes anywhere, as somebody else might place it.
        ledger::Row row = verdict.chosen;
        if (random_.chance(1, 20)) row = verdict.feasible[random_.below(verdict.feasible.size())];
        plain_.pods[pod.meta.uid] = {pod.spec, std::string(ledger_.name(row))};
        ledger_.assume(pod, row, {});
    }

    void expect_same(const PlainCluster::Answer& plain, const sched::Verdict& verdict) {
        ASSERT_EQ(plain.feasible.size(), verdict.feasible.size());
        for (size_t i = 0; i < verdict.feasible.size(); ++i) {
            const std::string name(ledger_.name(verdict.feasible[i]));
            ASSERT_TRUE(plain.feasible.contains(name)) << name;
            ASSERT_EQ(plain.feasible.at(name), verdict.scores[i]) << name;
        }
        ASSERT_EQ(plain.chosen, verdict.chosen == ledger::kNoRow ? "" : ledger_.name(verdict.chosen));
    }

    static std::string uid(uint64_t number) { return fmt::format("{:08x}-0000-4000-8000-{:012x}", number, number); }

    Random random_;
    size_t size_;
    Pods pods_;
    PlainCluster plain_;
    ledger::Ledger ledger_;
    sched::fast::Decider often_{sched::default_profile()};
    sched::fast::Decider seldom_{sched::default_profile()};
    std::vector<std::shared_ptr<const model::PodSpec>> specs_;
    uint64_t next_ = 0;
};

uint64_t seed_of_run() {
    const char* given = std::getenv("BERTH_SEED");
    return given ? std::strtoull(given, nullptr, 10) : base::seed_from_system();
}

void run(uint64_t seed, size_t nodes, size_t steps, World::Pods pods = World::Pods::Alone) {
    SCOPED_TRACE(fmt::format("BERTH_SEED={} with {} nodes", seed, nodes));
    World world(seed, nodes, pods);
    for (size_t i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
        SCOPED_TRACE(fmt::format("step {}", i));
        world.step();
    }
}

TEST(Placement, ThreeEvaluationsAgreeOnManySmallClusters) {
    const uint64_t seed = seed_of_run();
    fmt::print("BERTH_SEED={}\n", seed);
    Random random(seed);
    for (int cluster = 0; cluster < 500 && !HasFailure(); ++cluster) run(random.next(), 1 + random.below(24), 200);
}

TEST(Placement, ThreeEvaluationsAgreeOnLargerClusters) {
    const uint64_t seed = seed_of_run();
    fmt::print("BERTH_SEED={}\n", seed);
    Random random(seed);
    for (int cluster = 0; cluster < 4 && !HasFailure(); ++cluster) run(random.next(), 50 + random.below(200), 500);
    run(random.next(), 5000, 20);
}

TEST(Placement, TheFastWayAgreesWhenOtherPodsMatter) {
    const uint64_t seed = seed_of_run();
    fmt::print("BERTH_SEED={}\n", seed);
    Random random(seed);
    for (int cluster = 0; cluster < 100 && !HasFailure(); ++cluster) {
        run(random.next(), 1 + random.below(100), 200, World::Pods::Near);
    }
}

}  // namespace
}  // namespace berth::properties
