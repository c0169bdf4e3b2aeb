#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fleet/objects.h"
#include "tree.h"

// Whole trees of pools in virtual time. What is counted here is counted from what each provider shows of its rows, in
// plain integers.
namespace berth::fleet_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

int64_t cpu_of(const model::Amounts& amounts) {
    const auto found = amounts.find("cpu");
    return found == amounts.end() ? 0 : found->second.value();
}

// What must hold at every moment, whoever has died and whatever was lost.
class Judge {
public:
    explicit Judge(Tree& tree) : tree_(tree) {
        tree.check = [this] { look(); };
        for (size_t i = 0; i < tree.layers(); ++i) tree.server(i).written = [this, i] { written_.insert(i); };
    }
    void may_exceed(const std::string& leaf) { shrunk_.insert(leaf); }
    void may_vanish(const std::string& pool) { vanishing_.insert(pool); }

private:
    struct Known {
        uint64_t revision = 0;
        std::map<std::string, int> ranks;
        bool committed = false;
    };
    void look() {
        if (testing::Test::HasFailure()) return;  // what went wrong first is what counts
        std::map<std::string, std::string> homes;
        for (const auto& leaf : tree_.leaves) {
            if (!leaf->provider) continue;
            const auto& table = leaf->provider->table();
            int64_t used = 0;
            for (const auto& [lineage, machine] : table.machines()) {
                used += cpu_of(machine.amounts);
                const auto [home, fresh] = homes.emplace(lineage, leaf->name);
                EXPECT_TRUE(fresh) << "I2: " << lineage << " is on " << home->second << " and on " << leaf->name;
            }
            for (const auto& [lineage, hold] : table.holds()) {
                if (hold.state != model::HoldState::Accepted) continue;
                used += cpu_of(hold.ask.resources);
                EXPECT_FALSE(table.machines().contains(lineage)) << "I3: " << lineage << " has a hold and a machine";
                if (hold.ask.keeps()) continue;
                EXPECT_TRUE(hold.until && *hold.until - tree_.clock.now() <= minutes(2)) << "I5: " << lineage;
            }
            if (!shrunk_.contains(leaf->name)) {
                EXPECT_LE(used, cpu_of(table.capacity())) << "I1: " << leaf->name;
            }
            forward(leaf->name, table);
        }
        for (const size_t i : std::exchange(written_, {})) {
            for (const auto& record : tree_.server(i).list("core.ironcore.dev/reservations"))
                look(*record, known_[{i, record->uid}]);
            if (i == 0) look_at_machines(tree_.server(i));
        }
    }
    // I6, I7, I10 and I11 of one object, whenever it has changed.
    void look(const store::Record& record, Known& known) {
        if (std::exchange(known.revision, record.revision) == record.revision) return;
        const Json object = crash::SmallServer::document(record);
        const auto read = fleet::read_reservation(object);
        ASSERT_TRUE(read);
        std::set<std::string> names;
        for (const auto& entry : read->asked.entries) {
            EXPECT_TRUE(names.insert(entry.name).second)
                << "I7: " << record.key.name << " has " << entry.name << " twice";
            int& rank = known.ranks[entry.name];
            EXPECT_GE(rank_of(entry.answer.state), rank)
                << "I6: " << record.key.name << " at " << entry.name << " is " << model::name_of(entry.answer.state);
            rank = rank_of(entry.answer.state);
        }
        for (const auto& [name, rank] : known.ranks)
            EXPECT_TRUE(names.contains(name) || vanishing_.contains(name))
                << "I7: " << record.key.name << " has lost the answer of " << name;
        if (!read->asked.commit.empty()) {
            EXPECT_EQ(read->asked.pools, std::vector<std::string>{read->asked.commit}) << "I10: " << record.key.name;
            known.committed |= waits_for(*read, read->asked.commit);
            if (known.committed) committed_.insert(read->ask.lineage + " " + read->asked.commit);
        }
        static const std::set<std::string> kAllowed{"pools", "name", "state", "reason", "score", "lease", "committed"};
        const Json* status = base::find(object, {"status"});
        if (status == nullptr) return;
        for (const auto& member : status->get_object())
            EXPECT_TRUE(kAllowed.contains(std::string(member.key()))) << "I11: " << member.key();
    }
    static bool waits_for(const fleet::Reservation& reservation, const std::string& pool) {
        for (const auto& entry : reservation.asked.entries) {
            if (entry.name == pool && (entry.answer.committed || entry.answer.state == model::HoldState::Bound))
                return true;
        }
        return false;
    }
    // I8: whose pool was set by the scheduler had a hold there that waited for it.
    void look_at_machines(const crash::SmallServer& server) {
        for (const auto& record : server.list("compute.ironcore.dev/machines")) {
            if (std::exchange(seen_[record->uid], record->revision) == record->revision) continue;
            const auto machine = fleet::read_machine(crash::SmallServer::document(*record));
            ASSERT_TRUE(machine);
            if (machine->pool.empty() || machine->meta.name.starts_with("hand")) continue;
            EXPECT_TRUE(committed_.contains(machine->lineage + " " + machine->pool)) << "I8: " << machine->meta.name;
        }
    }
    static int rank_of(model::HoldState state) {
        return state == model::HoldState::Pending ? 0 : state <= model::HoldState::NoReply ? 1 : 2;
    }
    // I6: within an attempt a hold never goes back.
    void forward(const std::string& leaf, const fleet::HoldTable& table) {
        for (const auto& [lineage, hold] : table.holds()) {
            int& rank = ranks_[fmt::format("{}/{}.{}", leaf, lineage, hold.ask.attempt)];
            const int now = rank_of(hold.state);
            EXPECT_GE(now, rank) << "I6: " << leaf << " " << lineage;
            rank = std::max(rank, now);
        }
    }

    Tree& tree_;
    std::set<size_t> written_;  // layers
    std::set<std::string> shrunk_;
    std::set<std::string> vanishing_;
    std::map<std::string, int> ranks_;
    std::map<std::pair<size_t, std::string>, Known> known_;  // by layer and uid
    std::map<std::string, uint64_t> seen_;
    std::set<std::string> committed_;  // lineage and pool
};

Spec leaf(const std::string& name, int64_t cpu) {
    return {name, cpu, {}};
}

bool until(Tree& tree, base::Duration most, const std::function<bool()>& done) {
    const auto end = tree.clock.now() + most;
    while (tree.clock.now() < end) {
        if (done()) return true;
        tree.step();
    }
    return done();
}

size_t running(const Tree& tree) {
    size_t out = 0;
    for (const auto& [name, machine] : tree.machines()) out += machine.state == "Running" ? 1 : 0;
    return out;
}

int64_t used(const Tree& tree, const std::string& name) {
    int64_t out = 0;
    for (const auto& each : tree.leaves) {
        if (each->name != name) continue;
        for (const auto& [lineage, machine] : each->provider->table().machines()) out += cpu_of(machine.amounts);
    }
    return out;
}

size_t live_holds(const Tree& tree) {
    size_t out = 0;
    for (const auto& each : tree.leaves) {
        for (const auto& [lineage, hold] : each->provider->table().holds())
            out += hold.state == model::HoldState::Accepted ? 1 : 0;
    }
    return out;
}

TEST(FleetCases, Case1OneLayer) {
    Tree tree({"root", 0, {leaf("v", 4)}}, 1);
    const Judge judge(tree);
    tree.machine("m", 2);
    ASSERT_TRUE(until(tree, seconds(5), [&] { return running(tree) == 1; }));
    ASSERT_TRUE(until(tree, seconds(5), [&] { return tree.reservations() == 0; }));
    tree.run(seconds(1));
    EXPECT_EQ(used(tree, "v"), 2);
    EXPECT_EQ(live_holds(tree), 0u);
}

TEST(FleetCases, Case2ThreeLayers) {
    Tree tree({"root", 0, {{"z1", 0, {leaf("a", 2), leaf("b", 0)}}, {"z2", 0, {leaf("c", 0)}}}}, 2);
    const Judge judge(tree);
    tree.machine("m", 2);
    ASSERT_TRUE(until(tree, seconds(10), [&] { return running(tree) == 1; }));
    EXPECT_EQ(used(tree, "a"), 2);
    ASSERT_TRUE(until(tree, seconds(5), [&] { return tree.reservations() == 0 && live_holds(tree) == 0; }));
}

TEST(FleetCases, Case3ASumIsNoRoom) {
    Tree tree({"root", 0, {{"z1", 0, {leaf("a", 1), leaf("b", 1)}}, {"z2", 0, {leaf("c", 2)}}}}, 2);
    const Judge judge(tree);
    tree.machine("m", 2);
    ASSERT_TRUE(until(tree, seconds(10), [&] { return running(tree) == 1; }));
    EXPECT_EQ(tree.machines().at("m").pool, "z2");
    ASSERT_TRUE(until(tree, seconds(5), [&] { return tree.reservations() == 0; }));
}

TEST(FleetCases, Case4OneThatHasRoomIsEnough) {
    Tree tree({"root", 0, {{"z1", 0, {leaf("a", 0), leaf("b", 4)}}}}, 4);
    const Judge judge(tree);
    tree.machine("m", 2);
    ASSERT_TRUE(until(tree, seconds(10), [&] { return running(tree) == 1; }));
    EXPECT_EQ(used(tree, "b"), 2);
}

TEST(FleetCases, Case9AllAnswerInTheSameInstant) {
    Spec root{"root", 0, {}};
    for (int i = 0; i < 10; ++i) root.below.push_back(leaf(fmt::format("p{}", i), 100));
    Tree tree(root, 9);
    tree.network.weather.slowest = {};
    for (int i = 0; i < 100; ++i) {
        const auto name = fmt::format("k{}", i);
        tree.reserve(name, 1);
        ASSERT_TRUE(until(tree, seconds(2), [&] { return tree.entries(name) == 10; })) << tree.entries(name);
    }
    EXPECT_EQ(live_holds(tree), 1000u);
}

TEST(FleetCases, Case10AnAnswerLostTwiceIsOneHold) {
    Tree tree({"root", 0, {leaf("a", 2)}}, 10);
    const Judge judge(tree);
    tree.leaves[0]->far.swallow = 2;
    tree.machine("m", 2);
    ASSERT_TRUE(until(tree, seconds(60), [&] { return running(tree) == 1; }));
    EXPECT_EQ(tree.leaves[0]->far.swallow, 0);
    EXPECT_EQ(used(tree, "a"), 2);
}

TEST(FleetCases, Case12APoolletIsDead) {
    Tree tree({"root", 0, {leaf("a", 2), leaf("b", 2)}}, 12);
    const Judge judge(tree);
    tree.run(seconds(1));
    tree.stop("poollet b");
    tree.machine("m", 2);
    ASSERT_TRUE(until(tree, seconds(3), [&] { return running(tree) == 1; }));
    EXPECT_EQ(tree.machines().at("m").pool, "a");
}

TEST(FleetCases, Case14DeletedWhereverItIs) {
    for (int steps = 0; steps < 40; ++steps) {
        Tree tree({"root", 0, {{"z1", 0, {leaf("a", 2)}}}}, 14 + static_cast<uint64_t>(steps));
        const Judge judge(tree);
        tree.run(seconds(1));
        tree.machine("m", 2);
        for (int i = 0; i < steps; ++i) tree.step();
        tree.remove_machine("m");
        EXPECT_TRUE(until(tree, minutes(3),
                          [&] {
                              return tree.machines().empty() && tree.reservations() == 0 && live_holds(tree) == 0 &&
                                     used(tree, "a") == 0;
                          }))
            << "deleted after " << steps << " steps";
    }
}

TEST(FleetCases, Case15TwoSchedulersOneReservationEach) {
    Tree tree({"root", 0, {leaf("a", 10), leaf("b", 10)}}, 15);
    const Judge judge(tree);
    tree.add_scheduler();
    tree.run(seconds(1));
    for (int i = 0; i < 20; ++i) tree.machine(fmt::format("m{}", i), 1);
    size_t most = 0;
    ASSERT_TRUE(until(tree, minutes(2), [&] {
        most = std::max(most, tree.reservations());
        return running(tree) == 20;
    }));
    EXPECT_LE(most, 20u);
    EXPECT_TRUE(until(tree, seconds(10), [&] { return tree.reservations() == 0 && live_holds(tree) == 0; }));
}

TEST(FleetCases, Case16TheSchedulerIsKilledAtEachStep) {
    for (int steps = 0; steps < 40; ++steps) {
        Tree tree({"root", 0, {leaf("a", 2), leaf("b", 2)}}, 16 + static_cast<uint64_t>(steps));
        const Judge judge(tree);
        tree.run(seconds(1));
        tree.machine("m", 2);
        for (int i = 0; i < steps; ++i) tree.step();
        for (size_t i = 0; i < tree.actors.size(); ++i) {
            if (tree.actors[i].name == "scheduler of root") tree.kill(i);
        }
        EXPECT_TRUE(until(tree, seconds(20),
                          [&] { return running(tree) == 1 && tree.reservations() == 0 && live_holds(tree) == 0; }))
            << "killed after " << steps << " steps";
    }
}

TEST(FleetCases, Case18WhoIsAsked) {
    Tree tree({"root", 0, {leaf("a", 2), leaf("b", 2), {"z", 0, {leaf("d", 2), leaf("e", 2)}, "d"}}}, 18);
    const Judge judge(tree);
    tree.run(seconds(1));
    const JsonArray taints{JsonObject{{"key", "gpu"}, {"effect", "NoSchedule"}}};
    for (const char* pool : {"a", "b"}) tree.edit_pool(pool, JsonObject{{"spec", JsonObject{{"taints", taints}}}});
    tree.stop("poollet z");
    tree.machine("m", 2);
    tree.run(seconds(1));
    tree.add_leaf("c", 2);
    ASSERT_TRUE(until(tree, minutes(1), [&] { return running(tree) == 1; }));
    EXPECT_EQ(tree.machines().at("m").pool, "c");
    for (const auto& each : tree.leaves) EXPECT_EQ(each->rows->rows.empty(), each->name != "c") << each->name;
}

TEST(FleetCases, Case18ABrokerThatIsPinnedAsksOnlyThatPool) {
    Tree tree({"root", 0, {{"z", 0, {leaf("d", 2), leaf("e", 2)}, "d"}}}, 18);
    const Judge judge(tree);
    tree.machine("m", 2);
    ASSERT_TRUE(until(tree, seconds(20), [&] { return running(tree) == 1; }));
    for (const auto& each : tree.leaves) EXPECT_EQ(each->rows->rows.empty(), each->name != "d") << each->name;
}

TEST(FleetCases, Case6TheSwapOnAFullHost) {
    Tree tree({"root", 0, {leaf("v", 2)}}, 6);
    const Judge judge(tree);
    tree.machine("m", 2);
    ASSERT_TRUE(until(tree, seconds(5), [&] { return running(tree) == 1; }));
    EXPECT_EQ(used(tree, "v"), 2);
}

TEST(FleetCases, Case7And8AsManyAsFitAndTheNextWhenOneGoes) {
    Tree tree({"root", 0, {leaf("a", 1), leaf("b", 1)}}, 8);
    const Judge judge(tree);
    for (int i = 0; i < 5; ++i) tree.machine(fmt::format("m{}", i), 1);
    ASSERT_TRUE(until(tree, seconds(10), [&] { return running(tree) == 2; }));
    tree.run(seconds(5));
    EXPECT_EQ(running(tree), 2u);
    for (const auto& [name, machine] : tree.machines()) {
        if (machine.state != "Running") continue;
        tree.remove_machine(name);
        break;
    }
    EXPECT_TRUE(until(tree, seconds(5), [&] { return tree.machines().size() == 4 && running(tree) == 2; }));
}

TEST(FleetCases, Case5TheLosersAreFreeAtSelection) {
    Tree tree({"root", 0, {leaf("a", 2), leaf("b", 2), leaf("c", 2)}}, 5);
    const Judge judge(tree);
    tree.run(seconds(1));
    tree.machine("m", 2);
    ASSERT_TRUE(until(tree, seconds(5), [&] { return live_holds(tree) == 3; }));
    ASSERT_TRUE(until(tree, seconds(2), [&] { return live_holds(tree) <= 1; }));
}

TEST(FleetCases, Case11AProviderThatIsKilledKnowsItsHolds) {
    Tree tree({"root", 0, {leaf("a", 2)}}, 11);
    const Judge judge(tree);
    tree.machine("m", 2);
    ASSERT_TRUE(until(tree, seconds(5), [&] { return live_holds(tree) == 1; }));
    for (size_t i = 0; i < tree.actors.size(); ++i) {
        if (tree.actors[i].name == "provider a") tree.kill(i);
    }
    EXPECT_EQ(live_holds(tree), 1u);
    EXPECT_TRUE(until(tree, seconds(20), [&] { return running(tree) == 1; }));
}

TEST(FleetCases, Case11WhoHasLostItsJournalOversellsNothing) {
    Tree tree({"root", 0, {leaf("a", 2), leaf("b", 2)}}, 11);
    const Judge judge(tree);
    tree.reserve("kept", 2);
    ASSERT_TRUE(until(tree, seconds(5), [&] { return live_holds(tree) == 2; }));
    tree.machine("m", 2);
    tree.run(seconds(3));
    tree.stop("poollet a");
    tree.leaves[0]->rows->rows.clear();
    tree.leaves[0]->rows->epoch = "2";
    for (size_t i = 0; i < tree.actors.size(); ++i) {
        if (tree.actors[i].name == "provider a") tree.kill(i);
    }
    tree.release("kept");
    for (size_t i = 0; i < tree.actors.size(); ++i) {
        if (tree.actors[i].name == "poollet a") tree.kill(i);
    }
    EXPECT_TRUE(until(tree, minutes(2), [&] { return running(tree) == 1 && live_holds(tree) == 0; }));
}

TEST(FleetCases, Case13CutForEverAllIsFreeAfterTheLease) {
    Tree tree({"root", 0, {leaf("a", 2)}}, 13);
    const Judge judge(tree);
    tree.machine("m", 2);
    ASSERT_TRUE(until(tree, seconds(5), [&] { return live_holds(tree) == 1; }));
    tree.leaves[0]->far.cut = true;
    tree.clock.jump_wall(-std::chrono::hours(1000));
    tree.run(seconds(125));
    EXPECT_EQ(live_holds(tree), 0u);
    tree.leaves[0]->far.cut = false;
    EXPECT_TRUE(until(tree, minutes(3), [&] { return running(tree) == 1; }));
}

TEST(FleetCases, Case17WhatFitsNowhereIsNotAskedForAgain) {
    Tree tree({"root", 0, {leaf("a", 4), leaf("b", 4)}}, 17);
    const Judge judge(tree);
    tree.machine("huge", 64);
    tree.run(seconds(5));
    const size_t creates = Wire::creates;
    tree.run(minutes(5));
    EXPECT_EQ(Wire::creates, creates);
    tree.resize(*tree.leaves[0], 64);
    EXPECT_TRUE(until(tree, seconds(5), [&] { return running(tree) == 1; }));
}

TEST(FleetCases, Case17AProviderThatComesBackLargerOrSmaller) {
    Tree tree({"root", 0, {leaf("a", 2)}}, 17);
    Judge judge(tree);
    const auto restart = [&](int64_t cpu) {
        tree.leaves[0]->cpu = cpu;
        for (size_t i = 0; i < tree.actors.size(); ++i) {
            if (tree.actors[i].name == "provider a") tree.kill(i);
        }
    };
    tree.machine("m", 4);
    tree.run(seconds(5));
    EXPECT_EQ(running(tree), 0u);
    restart(6);
    EXPECT_TRUE(until(tree, seconds(30), [&] { return running(tree) == 1; }));
    tree.reserve("kept", 2);
    ASSERT_TRUE(until(tree, seconds(5), [&] { return live_holds(tree) == 1; }));
    judge.may_exceed("a");
    restart(5);
    EXPECT_TRUE(until(tree, seconds(5), [&] { return live_holds(tree) == 0; }));
    EXPECT_EQ(used(tree, "a"), 4);
}

TEST(FleetCases, Case17RoomThatComesWakesLongBeforeTheNextTry) {
    Tree tree({"root", 0, {{"z", 0, {leaf("a", 2)}}}}, 17);
    const Judge judge(tree);
    tree.reserve("kept", 2);
    ASSERT_TRUE(until(tree, seconds(5), [&] { return live_holds(tree) == 1; }));
    tree.machine("m", 2);
    tree.run(minutes(5));
    EXPECT_EQ(running(tree), 0u);
    tree.release("kept");
    EXPECT_TRUE(until(tree, seconds(2), [&] { return running(tree) == 1; }));
}

TEST(FleetCases, APoolThatVanishes) {
    Tree tree({"root", 0, {leaf("a", 2), leaf("b", 2)}}, 20);
    Judge judge(tree);
    judge.may_vanish("b");
    tree.reserve("kept", 2);
    ASSERT_TRUE(until(tree, seconds(5), [&] { return tree.entries("kept") == 2; }));
    tree.machine("hand", 1, "b");
    tree.run(seconds(1));
    tree.stop("poollet b");
    tree.remove_pool("b");
    // Its entry goes at once, the finalizer of what it had after the longest lease.
    EXPECT_TRUE(until(tree, seconds(10), [&] { return tree.entries("kept") == 1; }));
    tree.remove_machine("hand");
    tree.run(minutes(1));
    EXPECT_EQ(tree.machines().size(), 1u);
    EXPECT_TRUE(until(tree, minutes(2), [&] { return tree.machines().empty(); }));
}

TEST(FleetCases, Case19FewCreatesForEachMachine) {
    Spec root{"root", 0, {}};
    for (int i = 0; i < 50; ++i) root.below.push_back(leaf(fmt::format("p{}", i), 4));
    Tree tree(root, 19);
    const Judge judge(tree);
    tree.run(seconds(1));
    const size_t before = Wire::creates;
    tree.leaves[0]->far.stall = seconds(10);
    for (int i = 0; i < 100; ++i) tree.machine(fmt::format("m{}", i), 1);
    ASSERT_TRUE(until(tree, seconds(60), [&] { return running(tree) == 100; }));
    EXPECT_LE(Wire::creates - before, 400u);
}

TEST(FleetCases, ARuntimeWithoutReservationsIsTriedAndToldSo) {
    Tree tree({"root", 0, {leaf("a", 2)}}, 21);
    const Judge judge(tree);
    tree.leaves[0]->far.no_reservations = true;
    tree.machine("m", 2);
    bool told = false;
    ASSERT_TRUE(until(tree, minutes(1), [&] {
        for (const auto& record : tree.server(0).list("core.ironcore.dev/reservations"))
            told = told || record->bytes->find("BestEffort") != std::string::npos;
        return running(tree) == 1;
    }));
    EXPECT_TRUE(told);
    ASSERT_TRUE(until(tree, minutes(1), [&] { return tree.reservations() == 0; }));
}

Spec random_tree(base::Random& random, int depth, const std::string& name) {
    Spec out{name, random.between(0, 4), {}};
    const auto below = depth == 0 ? random.between(1, 3) : depth < 2 ? random.between(0, 2) : 0;
    for (int64_t i = 0; i < below; ++i)
        out.below.push_back(random_tree(random, depth + 1, fmt::format("{}{}", name, i)));
    return out;
}

void one_history(uint64_t seed) {
    SCOPED_TRACE(testing::Message() << "BERTH_SEED=" << seed);
    base::Random random(seed);
    Tree tree(random_tree(random, 0, "p"), seed);
    Judge judge(tree);
    tree.network.weather = {static_cast<int>(random.between(0, 15)), static_cast<int>(random.between(0, 15)),
                            milliseconds(random.between(1, 3000))};
    int made = 0;
    for (int i = 0; i < 40 && !testing::Test::HasFailure(); ++i) {
        switch (random.below(7)) {
            case 0:
            case 1:
                tree.machine(fmt::format("m{}", made++), random.between(1, 4));
                break;
            case 2:
                if (made > 0) tree.remove_machine(fmt::format("m{}", random.between(0, made - 1)));
                break;
            case 3:
                tree.kill(random.below(tree.actors.size()));
                break;
            case 4: {
                auto& far = tree.leaves[random.below(tree.leaves.size())]->far;
                far.cut = !far.cut;
                break;
            }
            case 5:
                tree.clock.jump_wall(seconds(random.between(-100'000, 100'000)));
                break;
            default: {
                auto& any = *tree.leaves[random.below(tree.leaves.size())];
                if (random.chance(1, 2)) tree.resize(any, any.cpu + random.between(0, 2));
            }
        }
        tree.run(milliseconds(random.between(1, 4000)));
    }
    // The weather clears: what fits lands, and nothing is left over.
    tree.network.weather = {};
    for (auto& each : tree.leaves) each->far.cut = false;
    tree.run(minutes(6));
    int64_t most = 0;
    for (const auto& each : tree.leaves) most = std::max(most, each->cpu - used(tree, each->name));
    for (const auto& [name, machine] : tree.machines()) {
        EXPECT_FALSE(machine.going) << name << " is still going";
        if (machine.state == "Running") continue;
        EXPECT_TRUE(machine.pool.empty()) << name << " never came to " << machine.pool;
        EXPECT_GT(tree.cpus.at(name), most) << "I9: " << name << " waits, and a leaf has room";
    }
    size_t placed = 0;
    for (const auto& each : tree.leaves) placed += each->provider->table().machines().size();
    EXPECT_EQ(placed, running(tree));
}

TEST(FleetProperty, WhateverHappens) {
    const char* histories = std::getenv("BERTH_HISTORIES");
    const char* given = std::getenv("BERTH_SEED");
    const uint64_t first = given != nullptr ? std::stoull(given) : base::seed_from_system() % 1'000'000;
    const int count = histories != nullptr ? std::stoi(histories) : 40;
    for (int i = 0; i < count && !HasFailure(); ++i) one_history(first + static_cast<uint64_t>(i));
}

size_t number(const char* name, size_t otherwise) {
    const char* given = std::getenv(name);
    return given == nullptr ? otherwise : std::stoull(given);
}

// Figures rather than a verdict: what a machine costs in a tree of that size, in messages, in room that is held for
// nobody and in time. Half of the room is used in the end.
TEST(FleetScale, Figures) {
    const size_t leaves = number("BERTH_LEAVES", 40);
    const size_t machines = number("BERTH_MACHINES", 80);
    const auto zones = static_cast<size_t>(std::sqrt(static_cast<double>(leaves)));
    const auto cpu = static_cast<int64_t>(2 * machines / leaves + 1);
    Spec root{"root", 0, {}};
    for (size_t i = 0; i < leaves; ++i) {
        if (i < zones) root.below.push_back({fmt::format("z{}", i), 0, {}});
        root.below[i % zones].below.push_back(leaf(fmt::format("l{}", i), cpu));
    }
    Tree tree(root, 1);
    tree.run(seconds(1));
    const size_t quiet = tree.network.messages;
    tree.run(seconds(1));
    const size_t background = tree.network.messages - quiet;
    const size_t before = tree.network.messages;
    const auto began = tree.clock.now();
    std::vector<base::Instant> made;
    std::vector<double> waited;
    double blocked = 0;
    std::vector<size_t> seen(tree.leaves.size());
    while (waited.size() < machines && tree.clock.now() - began < minutes(60)) {
        for (int i = 0; i < 2 && made.size() < machines; ++i) {
            tree.machine(fmt::format("m{}", made.size()), 1);
            made.push_back(tree.clock.now());
        }
        tree.run(milliseconds(10));
        for (size_t i = 0; i < tree.leaves.size(); ++i) {
            const auto& table = tree.leaves[i]->provider->table();
            blocked += static_cast<double>(cpu_of(table.held())) * 0.01;
            const size_t there = table.machines().size();
            // Which one came is not asked: in the order in which they were made they come, nearly.
            for (; seen[i] < there; ++seen[i])
                waited.push_back(std::chrono::duration<double>(tree.clock.now() - made[waited.size()]).count());
        }
    }
    ASSERT_EQ(waited.size(), machines);
    std::sort(waited.begin(), waited.end());
    const double took = std::chrono::duration<double>(tree.clock.now() - began).count();
    const double messages =
        static_cast<double>(tree.network.messages - before) - static_cast<double>(background) * took;
    fmt::print(
        "{} leaves, {} machines in {:.1f} s: {:.1f} messages and {:.3f} cpu seconds held in vain for each, "
        "from made to placed {:.0f} ms (median), {:.0f} ms (99 of 100)\n",
        leaves, machines, took, messages / static_cast<double>(machines), blocked / static_cast<double>(machines),
        1000 * waited[machines / 2], 1000 * waited[machines * 99 / 100]);
}

}  // namespace
}  // namespace berth::fleet_test
