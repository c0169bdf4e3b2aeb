#include <array>

#include "judge.h"

// Histories in which whatever may happen does, in virtual time.
namespace berth::fleet_test {
namespace {

Spec random_tree(base::Random& random, int depth, const std::string& name) {
    Spec out{name, random.between(0, 4), {}};
    const auto below = depth == 0 ? random.between(1, 3) : depth < 2 ? random.between(0, 2) : 0;
    for (int64_t i = 0; i < below; ++i)
        out.below.push_back(random_tree(random, depth + 1, fmt::format("{}{}", name, i)));
    return out;
}

// Who lies denies what it holds, and speaks of others. One that promises what it has not keeps the Machines that were
// sent to it waiting (FailedCreate), and nobody above can tell.
void lie_at(Tree& tree, Tree::Leaf& leaf) {
    using model::HoldState;
    leaf.far.lie = [&tree](model::IriReservation& reservation) {
        static constexpr std::array kDenials{HoldState::Pending, HoldState::Rejected, HoldState::NoReply,
                                             HoldState::Released, HoldState::Lost};
        if (tree.random.chance(1, 2)) return;
        // That it could never have room is believed until a pool changes: I9 is about those who do not say so in vain.
        auto reason = static_cast<model::HoldReason>(tree.random.below(8));
        if (reason == model::HoldReason::Unsatisfiable) reason = model::HoldReason::Insufficient;
        reservation.answer = {kDenials[tree.random.below(kDenials.size())], reason};
        reservation.sequence += tree.random.below(3);
        if (tree.random.chance(1, 8)) reservation.meta.id += "x";
    };
}

void taint(Tree& tree, const std::string& pool, bool there) {
    const JsonArray taints{JsonObject{{"key", "closed"}, {"effect", "NoSchedule"}}};
    tree.edit_pool(pool, JsonObject{{"spec", JsonObject{{"taints", there ? Json(taints) : Json()}}}});
}

// One thing that may happen to a tree.
void something(Tree& tree, Judge& judge, base::Random& random, int& made, const Spec& root) {
    auto& any = *tree.leaves[random.below(tree.leaves.size())];
    switch (random.below(10)) {
        case 0:
        case 1:
        case 2:
            tree.machine(fmt::format("m{}", made++), random.between(1, 4));
            break;
        case 3:
            if (made > 0) tree.remove_machine(fmt::format("m{}", random.between(0, made - 1)));
            break;
        case 4:
            tree.kill(random.below(tree.actors.size()));
            break;
        case 5:
            any.far.cut = !any.far.cut;
            break;
        case 6:
            tree.clock.jump_wall(seconds(random.between(-100'000, 100'000)));
            break;
        case 7:
            taint(tree, root.below[random.below(root.below.size())].name, random.chance(1, 2));
            break;
        case 8:
            if (random.chance(1, 3) && std::getenv("BERTH_LIES") != nullptr) {
                lie_at(tree, any);
            } else {
                any.far.lie = {};
            }
            break;
        default: {
            const int64_t cpu = std::max<int64_t>(0, any.cpu + random.between(-2, 2));
            if (cpu < any.cpu) judge.may_exceed(any.name);
            tree.resize(any, cpu);
        }
    }
}

void one_history(uint64_t seed) {
    SCOPED_TRACE(testing::Message() << "BERTH_SEED=" << seed);
    base::Random random(seed);
    const Spec root = random_tree(random, 0, "p");
    Tree tree(root, seed);
    Judge judge(tree);
    // Mostly what a network does; in one of five what it should not: longer than any lease lasts.
    const bool slow = random.chance(1, 5);
    tree.network.weather = {static_cast<int>(random.between(0, 15)), static_cast<int>(random.between(0, 15)),
                            milliseconds(random.between(1, slow ? 150'000 : 3000))};
    if (random.chance(1, 4)) tree.add_scheduler();
    int made = 0;
    for (int i = 0; i < 40 && !testing::Test::HasFailure(); ++i) {
        something(tree, judge, random, made, root);
        tree.run(milliseconds(random.between(1, 4000)));
    }
    // The weather clears: what fits lands, and nothing is left over.
    tree.network.weather = {};
    for (auto& each : tree.leaves) {
        each->far.cut = false;
        each->far.lie = {};
    }
    for (const auto& pool : root.below) taint(tree, pool.name, false);
    tree.run(minutes(slow ? 12 : 6));
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

}  // namespace
}  // namespace berth::fleet_test
