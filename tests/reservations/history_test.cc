// Random histories: after every step the promises of reservations hold.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "promises.h"
#include "run/bind_rules.h"
#include "stage.h"

namespace berth::reservations {
namespace {

constexpr const char* kApps[] = {"a", "b", "c"};
constexpr int32_t kPorts[] = {7001, 7002, 7003};
constexpr const char* kOnePod[] = {"one0", "one1", "one2"};
constexpr const char* kShared[] = {"data0", "data1", "data2", "data3"};

class History {
public:
    explicit History(uint64_t seed) : random_(seed), one_transaction_(seed % 2 == 0) {
        for (int i = 0; i < 3; ++i) {
            stage_.add_node(fmt::format("n{}", i), 16, 32, random_.between(3, 12));
            stage_.limit_volumes(fmt::format("n{}", i), random_.between(1, 3));
        }
        for (const auto* name : kOnePod) {
            stage_.add_claim(name, {model::AccessMode::ReadWriteOncePod, random_.chance(1, 2)});
        }
        for (const auto* name : kShared) {
            stage_.add_claim(name, {model::AccessMode::ReadWriteOnce, random_.chance(1, 2)});
        }
        stage_.on_bind = [this](const model::Pod& pod) { check_let_in(rules_.judge_bind(pod, stage_.ledger)); };
        stage_.on_place = [this](const auto& object) { check_let_in(rules_.judge_place(object, stage_.ledger)); };
    }

    void run(int steps) {
        for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
            const std::string what = step();
            SCOPED_TRACE(fmt::format("step {}: {}", i, what));
            check();
        }
    }

private:
    std::string step() {
        switch (random_.below(14)) {
            case 0:
            case 1:
                return make_reservation();
            case 2:
            case 3:
                return make_pod();
            case 4:
            case 5:
                return place();
            case 6:
            case 7:
                return assume();
            case 8:
                return bind();
            case 9:
                return give_back();
            case 10:
                return delete_something();
            case 11:
                return pass_time();
            case 12:
                return lose_node();
            default:
                return random_.chance(1, 3) ? restart() : reconcile();
        }
    }

    std::string make_reservation() {
        ReservationWish wish;
        wish.owner = kApps[random_.below(3)];
        wish.cpu = random_.between(0, 8);
        wish.memory = random_.between(wish.cpu == 0 ? 1 : 0, 12);
        if (random_.chance(1, 3)) wish.ports = {kPorts[random_.below(3)]};
        wish.claims = any_claims();
        wish.once = random_.chance(1, 2);
        wish.pre_allocation = random_.chance(1, 3);
        wish.policy = static_cast<model::AllocatePolicy>(random_.below(3));
        wish.ttl = std::chrono::minutes(random_.between(1, 60));
        if (random_.chance(1, 5)) wish.node = fmt::format("n{}", random_.below(3));
        const std::string name = fmt::format("r{}", random_.below(12));  // old names come back as new objects
        if (stage_.reservations.contains(name)) stage_.delete_reservation(name);
        stage_.create(name, wish);
        return "create " + name;
    }

    std::string make_pod() {
        PodWish wish;
        wish.app = kApps[random_.below(3)];
        wish.cpu = random_.between(0, 6);
        wish.memory = random_.between(0, 8);
        if (random_.chance(1, 3)) wish.ports = {kPorts[random_.below(3)]};
        wish.claims = any_claims();
        wish.must_draw = random_.chance(1, 4);
        const std::string name = fmt::format("p{}", random_.below(20));
        if (stage_.pods.contains(name)) return "nothing";
        stage_.create(name, wish);
        return "create " + name;
    }

    std::vector<std::string> any_claims() {
        std::vector<std::string> out;
        if (random_.chance(1, 3)) out.emplace_back(kOnePod[random_.below(3)]);
        if (random_.chance(1, 3)) out.emplace_back(kShared[random_.below(4)]);
        return out;
    }

    template <class Map, class Good>
    std::string any(const Map& objects, Good good) {
        std::vector<std::string> names;
        for (const auto& [name, object] : objects) {
            if (good(name, object)) names.push_back(name);
        }
        return names.empty() ? "" : names[random_.below(names.size())];
    }

    std::string place() {
        const auto name = any(stage_.reservations, [](const auto&, const auto& object) {
            return object->phase == model::ReservationPhase::Pending;
        });
        if (!name.empty()) stage_.place(name);
        return "place " + name;
    }
    std::string assume() {
        const auto name = any(stage_.pods, [&](const std::string& key, const model::Pod& pod) {
            return pod.node.empty() && !stage_.in_flight.contains(key);
        });
        if (!name.empty()) stage_.assume(name);
        return "assume " + name;
    }
    std::string any_in_flight() {
        return any(stage_.pods, [&](const std::string& key, const auto&) { return stage_.in_flight.contains(key); });
    }
    std::string bind() {
        const auto name = any_in_flight();
        if (!name.empty()) {
            stage_.bind(name, one_transaction_);
            unsynced_.insert(name);
        }
        return "bind " + name;
    }
    std::string give_back() {
        const auto name = any_in_flight();
        if (!name.empty()) stage_.give_back(name);
        return "give back " + name;
    }
    std::string delete_something() {
        if (random_.chance(1, 4)) {
            const auto name = any(stage_.reservations, [](const auto&, const auto&) { return true; });
            if (!name.empty()) stage_.delete_reservation(name);
            return "delete " + name;
        }
        const auto name = any(stage_.pods, [](const auto&, const auto&) { return true; });
        if (name.empty()) return "nothing";
        // Without one transaction a bound pod that vanishes before its reservation succeeded leaves a claim like that
        // of a pod that never was; the controllers are quicker than that here.
        if (!one_transaction_ && unsynced_.contains(name)) reconcile();
        stage_.delete_pod(name);
        return "delete " + name;
    }
    std::string pass_time() {
        stage_.clock.advance(std::chrono::minutes(random_.between(0, 20)));
        if (random_.chance(1, 4)) stage_.clock.jump_wall(std::chrono::hours(random_.between(-50, 50)));
        return "time";
    }
    std::string lose_node() {
        const std::string name = fmt::format("n{}", random_.below(3));
        if (!stage_.nodes.contains(name)) {
            stage_.add_node(name, 16, 32, 12);
            return "node " + name + " comes";
        }
        if (!random_.chance(1, 4)) return "nothing";
        const bool busy = std::any_of(stage_.in_flight.begin(), stage_.in_flight.end(),
                                      [&](const auto& flight) { return flight.second.node == name; });
        if (busy) return "nothing";
        stage_.delete_node(name);
        if (random_.chance(1, 2)) reconcile();
        return "node " + name + " goes";
    }
    std::string reconcile() {
        stage_.reconcile();
        unsynced_.clear();
        return "reconcile";
    }
    std::string restart() {
        stage_.restart(random_);
        return "restart";
    }

    // ---- what must hold

    // The guard of the server knows what we know: it refuses nothing that was decided so.
    static void check_let_in(const Status& verdict) {
        EXPECT_TRUE(verdict.ok()) << (verdict.ok() ? "" : verdict.error().message);
    }

    void check() {
        for (const auto& [name, node] : stage_.nodes) check_node(name, *node);
        for (const auto& [uid, pods] : stage_.ever_bound) {
            const auto index = stage_.ledger.find_reservation(uid);
            if (index == ledger::kNone || !stage_.ledger.reservation(index).object->allocate_once) continue;
            EXPECT_LE(pods.size(), 1u) << "allocateOnce has had two owners";
        }
        for (const auto& broken : broken_promises(stage_)) ADD_FAILURE() << broken;
        check_statuses();
        if (stage_.in_flight.empty()) check_replay();
    }

    void check_node(const std::string& name, const model::Node& node) {
        const auto& ledger = stage_.ledger;
        const auto row = ledger.row_of(name);
        const model::Resources members = ledger.recomputed_use(row);
        model::Resources without_waiting = members;
        for (const auto index : ledger.waiting(row)) without_waiting.subtract(ledger.reservation(index).allocatable);
        for (const auto id : {model::kCpu, model::kMemory, model::kPods}) {
            EXPECT_EQ(ledger.column(id)->used[row], members.get(id)) << name << " " << model::resource_name(id);
            EXPECT_LE(without_waiting.get(id), node.allocatable.get(id)) << name << " " << model::resource_name(id);
        }
        EXPECT_EQ(equation(name), members) << name;
        const std::vector<model::HostPort> ports = ports_of(ledger, name);
        EXPECT_EQ(std::adjacent_find(ports.begin(), ports.end()), ports.end()) << "a port has two holders on " << name;
    }

    // sum of requests of pods charged to no live reservation + sum over live ones of max(allocatable, charged), from
    // the stored objects and what is in flight, told apart from the ledger's own sums.
    model::Resources equation(const std::string& node) {
        const auto& ledger = stage_.ledger;
        const auto row = ledger.row_of(node);
        model::Resources use;
        std::map<ledger::ReservationIndex, model::Resources> charged;
        for (const auto& [name, pod] : stage_.pods) {
            const auto index = ledger.find_pod(pod.meta.uid);
            if (index == ledger::kNone || ledger.pod(index).row != row) continue;
            model::Resources rest = pod.spec->requests;
            for (const auto& charge : ledger.pod(index).charges()) {
                rest.subtract(charge.amount);
                charged[charge.reservation].add(charge.amount);
                EXPECT_TRUE(ledger.reservation(charge.reservation).holds_room());
            }
            use.add(rest);
        }
        for (const auto& [name, object] : stage_.reservations) {
            const auto index = ledger.find_reservation(object->meta.uid);
            const auto& entry = ledger.reservation(index);
            if (!entry.holds_room() || entry.row != row) continue;
            model::Resources held = object->spec->requests;
            held.max(charged[index]);
            use.add(held);
        }
        return use;
    }

    // Once everything is written, `allocated` is the sum over the owners, limited, and owners are those that are bound.
    void check_statuses() {
        Stage& stage = stage_;
        if (!random_.chance(1, 4)) return;
        // What one frees another may have waited for; but it comes to an end.
        int passes = 0;
        for (uint64_t before = 0; before != stage.revision() && passes < 20; ++passes) {
            before = stage.revision();
            reconcile();
        }
        EXPECT_LT(passes, 20) << "writes lead to further writes without end";
        for (const auto& [name, object] : stage.reservations) {
            model::Resources held;
            size_t owners = 0;
            const auto index = stage.ledger.find_reservation(object->meta.uid);
            for (const auto& [pod_name, pod] : stage.pods) {
                const auto links = model::read_links(pod.meta.annotations);
                if (pod.node != object->node || !links->allocated) continue;
                const bool ours = links->allocated->uid == object->meta.uid ||
                                  std::any_of(links->draws.begin(), links->draws.end(),
                                              [&](const auto& draw) { return draw.uid == object->meta.uid; });
                if (!ours) continue;
                ++owners;
                held.add(stage.ledger.drawn(stage.ledger.find_pod(pod.meta.uid), index));
            }
            object->allocatable.for_each([&](model::ResourceId id, int64_t amount) {
                EXPECT_EQ(object->allocated.get(id), std::min(amount, held.get(id))) << name;
            });
            const bool claimed = model::holds_room(*object) && object->allocate_once && !object->current_owners.empty();
            if (!claimed) {
                EXPECT_EQ(object->current_owners.size(), owners) << name;
            }
        }
    }

    static std::vector<model::HostPort> ports_of(const ledger::Ledger& ledger, const std::string& node) {
        std::vector<model::HostPort> ports = ledger.at(ledger.row_of(node)).ports.held();
        std::sort(ports.begin(), ports.end());
        return ports;
    }

    void check_replay() {
        const ledger::Ledger fresh = stage_.replay(random_);
        for (const auto& [name, node] : stage_.nodes) {
            EXPECT_EQ(fresh.recomputed_use(fresh.row_of(name)),
                      stage_.ledger.recomputed_use(stage_.ledger.row_of(name)))
                << "a replay of the stored objects differs on " << name;
            EXPECT_EQ(ports_of(fresh, name), ports_of(stage_.ledger, name))
                << "a replay of the stored objects differs in the ports of " << name;
        }
        for (const auto& [name, claim] : stage_.claims) {
            EXPECT_EQ(fresh.volumes().users("default/" + name).size(),
                      stage_.ledger.volumes().users("default/" + name).size())
                << "a replay of the stored objects differs in " << name;
        }
    }

    base::Random random_;
    bool one_transaction_;
    Stage stage_;
    run::BindRules rules_;
    std::set<std::string> unsynced_;
};

TEST(ReservationHistory, PromisesHoldAfterEveryStep) {
    for (uint64_t seed = 1; seed <= 150; ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        History(seed).run(250);
        if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace berth::reservations
