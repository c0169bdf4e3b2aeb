#include "judge.h"

// The numbered cases, in virtual time.
namespace berth::fleet_test {
namespace {

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

TEST(FleetCases, Case12APoolIsAskedNoMoreWhenItsPoolletIsSilent) {
    Tree tree({"root", 0, {leaf("a", 2), leaf("b", 2)}}, 12);
    const Judge judge(tree);
    const auto ready = [&](const std::string& name) {
        for (const auto& record : tree.server(0).list("compute.ironcore.dev/machinepools")) {
            if (record->key.name == name) return fleet::read_pool(crash::SmallServer::document(*record))->ready;
        }
        return false;
    };
    tree.run(minutes(2));
    EXPECT_TRUE(ready("a") && ready("b"));
    tree.stop("poollet a");
    tree.clock.jump_wall(std::chrono::hours(3));
    ASSERT_TRUE(until(tree, seconds(70), [&] { return !ready("a"); }));
    EXPECT_TRUE(ready("b"));
    tree.machine("m", 2);
    // The silent one would have been waited for.
    EXPECT_TRUE(until(tree, milliseconds(200), [&] { return running(tree) == 1; }));
    for (size_t i = 0; i < tree.actors.size(); ++i) {
        if (tree.actors[i].name == "poollet a") tree.kill(i);
    }
    EXPECT_TRUE(until(tree, seconds(5), [&] { return ready("a"); }));
}

TEST(FleetCases, Case12HowLongTheLayersBelowMayTake) {
    Tree tree({"root", 0, {{"z", 0, {{"y", 0, {leaf("a", 2)}}}}}}, 12);
    const Judge judge(tree);
    tree.run(seconds(1));
    tree.leaves[0]->far.cut = true;
    tree.machine("m", 2);
    std::set<std::string> told;
    const auto top = [&] {
        for (size_t i = 0; i < 3; ++i) {
            for (const auto& record : tree.server(i).list("core.ironcore.dev/reservations")) {
                const auto read = fleet::read_reservation(crash::SmallServer::document(*record));
                const auto within = read->asked.within.value_or(base::Duration::zero());
                told.insert(fmt::format("{}: {}s", i, std::chrono::duration_cast<seconds>(within).count()));
            }
        }
        const auto machines = tree.machines();
        return !machines.empty() && tree.reservations() > 0 && told.size() == 3;
    };
    EXPECT_TRUE(until(tree, seconds(2), top));
    EXPECT_EQ(told, (std::set<std::string>{"0: 6s", "1: 4s", "2: 2s"}));
    tree.leaves[0]->far.cut = false;
    EXPECT_TRUE(until(tree, minutes(2), [&] { return running(tree) == 1; }));
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

// What a Machine runs at its first start lies in a secret beside it, in each layer, and with the provider in the end.
TEST(FleetCases, AnIgnitionGoesDown) {
    Tree tree({"root", 0, {{"z", 0, {leaf("a", 2)}}}}, 22);
    const Judge judge(tree);
    const auto machine = [](const char* name, const char* secret) {
        return JsonObject{
            {"apiVersion", "compute.ironcore.dev/v1alpha1"},
            {"kind", "Machine"},
            {"metadata", JsonObject{{"name", name},
                                    {"namespace", "default"},
                                    {"annotations", JsonObject{{model::kResourcesAnnotation, R"({"cpu":"1"})"}}}}},
            {"spec", JsonObject{{"machineClassRef", JsonObject{{"name", "any"}}},
                                {"ignitionRef", JsonObject{{"name", secret}, {"key", "first"}}}}}};
    };
    tree.server(0).create("compute.ironcore.dev/machines", machine("m", "start"));
    tree.run(seconds(20));
    EXPECT_EQ(running(tree), 0u) << "it waits for its secret";
    tree.server(0).create("secrets", JsonObject{{"apiVersion", "v1"},
                                                {"kind", "Secret"},
                                                {"metadata", JsonObject{{"name", "start"}, {"namespace", "default"}}},
                                                {"data", JsonObject{{"first", "aGVsbG8="}}}});
    ASSERT_TRUE(until(tree, seconds(20), [&] { return running(tree) == 1; }));
    const auto& rows = tree.leaves[0]->rows->rows;
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_NE(rows.begin()->second.machine.find(R"("ignition":"aGVsbG8=")"), std::string::npos);
    EXPECT_EQ(tree.server(1).list("secrets").size(), 1u);
    tree.remove_machine("m");
    EXPECT_TRUE(until(tree, seconds(10), [&] { return tree.machines().empty(); }));
    EXPECT_TRUE(until(tree, seconds(10), [&] { return tree.server(1).list("secrets").empty(); }));
}

// Who answers for another is not believed, and loses nothing of what it holds.
TEST(FleetCases, AnAnswerAboutAnotherReservationIsNone) {
    Tree tree({"root", 0, {leaf("a", 2)}}, 25);
    const Judge judge(tree);
    tree.reserve("kept", 1);
    ASSERT_TRUE(until(tree, seconds(5), [&] { return tree.entries("kept") == 1; }));
    auto& lie = tree.leaves[0]->far.lie;
    lie = [](model::IriReservation& said) { said.meta.id = "somebody.1"; };
    tree.run(seconds(25));
    lie = [](model::IriReservation& said) {
        said.ask.lineage = "somebody";
        said.answer = {model::HoldState::Lost};
        said.sequence += 10;
    };
    tree.run(seconds(25));
    EXPECT_EQ(live_holds(tree), 1u);
    tree.machine("m", 1);
    tree.run(seconds(25));
    EXPECT_EQ(running(tree), 0u) << "nobody has answered for it";
    lie = {};
    EXPECT_TRUE(until(tree, minutes(2), [&] { return running(tree) == 1; }));
    EXPECT_EQ(live_holds(tree), 1u);
}

// Whoever may edit a Machine may write nonsense into what it needs: it stays where it is, and no other one is
// concerned.
TEST(FleetCases, WhatAMachineNeedsBecomesUnreadable) {
    Tree tree({"root", 0, {{"z", 0, {leaf("a", 2)}}}}, 24);
    const Judge judge(tree);
    const auto note = [&](const std::string& name, const char* words) {
        const JsonObject notes{{model::kResourcesAnnotation, words}};
        const Json body = JsonObject{{"metadata", JsonObject{{"annotations", notes}}}};
        tree.server(0).perform({"PATCH", "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/machines/" + name,
                                base::to_text(body), "application/merge-patch+json"});
    };
    tree.machine("m", 1);
    ASSERT_TRUE(until(tree, seconds(20), [&] { return running(tree) == 1; }));
    for (const char* words : {R"({"cpu":"-1"})", "nonsense", "[]", R"({"cpu":[]})", "{}", ""}) {
        note("m", words);
        tree.run(minutes(1));
        EXPECT_EQ(running(tree), 1u) << words;
        EXPECT_EQ(used(tree, "a"), 1) << words;
    }
    tree.machine("never", 1);
    note("never", R"({"cpu":"-1"})");
    tree.machine("next", 1);
    EXPECT_TRUE(until(tree, seconds(20), [&] { return running(tree) == 2; }));
    tree.remove_machine("m");
    tree.remove_machine("never");
    EXPECT_TRUE(until(tree, seconds(20), [&] { return tree.machines().size() == 1 && used(tree, "a") == 1; }));
}

// Whose poollet died before it took what was sent to it goes elsewhere, when what was promised there has passed; who
// comes back then takes nothing.
void died_before_it_was_taken(const Spec& root, const std::string& poollet, size_t layer) {
    Tree tree(root, 23);
    const Judge judge(tree);
    tree.run(seconds(1));
    tree.machine("m", 2);
    std::string pool;
    ASSERT_TRUE(until(tree, seconds(20), [&] {
        for (const auto& record : tree.server(layer).list("core.ironcore.dev/reservations")) {
            const auto asked = fleet::read_reservation(crash::SmallServer::document(*record))->asked;
            for (const auto& entry : asked.entries) {
                if (entry.answer.committed) pool = entry.name;
            }
        }
        return !pool.empty();
    }));
    tree.stop(poollet + pool);
    EXPECT_TRUE(until(tree, minutes(6), [&] { return running(tree) == 1; }));
    EXPECT_EQ(used(tree, pool), 0);
    for (size_t i = 0; i < tree.actors.size(); ++i) {
        if (tree.actors[i].name == poollet + pool) tree.kill(i);
    }
    tree.run(minutes(2));
    EXPECT_EQ(running(tree), 1u);
    EXPECT_EQ(live_holds(tree), 0u);
    EXPECT_EQ(tree.reservations(), 0u);
    size_t placed = 0;
    for (const auto& each : tree.leaves) placed += each->provider->table().machines().size();
    EXPECT_EQ(placed, 1u);
}

TEST(FleetCases, APoolletThatDiedBeforeItTookAMachine) {
    died_before_it_was_taken({"root", 0, {leaf("a", 2), leaf("b", 2)}}, "poollet ", 0);
}

TEST(FleetCases, APoolletBelowThatDiedBeforeItTookAMachine) {
    died_before_it_was_taken({"root", 0, {{"z1", 0, {leaf("a", 2), leaf("b", 2)}}, {"z2", 0, {leaf("c", 1)}}}},
                             "poollet ", 1);
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

// I6 is the judge's: what a poollet has written is not taken back, whatever the provider says later.
TEST(FleetCases, AnAnswerThatGoesBackIsNotWritten) {
    Tree tree({"root", 0, {leaf("a", 2)}}, 6);
    const Judge judge(tree);
    const auto said = [&] {
        for (const auto& record : tree.server(0).list("core.ironcore.dev/reservations")) {
            const auto read = fleet::read_reservation(crash::SmallServer::document(*record));
            if (!read->asked.entries.empty()) return read->asked.entries.front().answer.state;
        }
        return model::HoldState::NoReply;
    };
    const auto lie = [&](model::HoldState state) {
        tree.leaves[0]->far.lie = [state](model::IriReservation& reservation) {
            reservation.answer = {state, model::HoldReason::None, 1, {}, true};
            reservation.sequence += 1000;
        };
    };
    tree.reserve("kept", 1);
    ASSERT_TRUE(until(tree, seconds(5), [&] { return said() == model::HoldState::Accepted; }));
    lie(model::HoldState::Pending);
    tree.run(minutes(1));
    EXPECT_EQ(said(), model::HoldState::Accepted);
    lie(model::HoldState::Bound);
    ASSERT_TRUE(until(tree, minutes(1), [&] { return said() == model::HoldState::Bound; }));
    // It is asked again by one that remembers nothing.
    lie(model::HoldState::Accepted);
    for (size_t i = 0; i < tree.actors.size(); ++i) {
        if (tree.actors[i].name == "poollet a") tree.kill(i);
    }
    tree.run(minutes(1));
    EXPECT_EQ(said(), model::HoldState::Bound);
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

}  // namespace
}  // namespace berth::fleet_test
