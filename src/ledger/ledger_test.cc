#include "ledger/ledger.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace berth::ledger {
namespace {

std::shared_ptr<const model::Node> node_named(const std::string& name, int64_t cpu) {
    auto node = std::make_shared<model::Node>();
    node->meta.name = name;
    node->allocatable = Resources{{model::kCpu, cpu}, {model::kMemory, cpu << 20}, {model::kPods, 110}};
    return node;
}

std::shared_ptr<model::PodSpec> spec_of(int64_t cpu, int64_t memory) {
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = "default";
    spec->requests = Resources{{model::kCpu, cpu}, {model::kMemory, memory}, {model::kPods, 1}};
    spec->scoring_cpu_milli = cpu;
    spec->scoring_memory = memory;
    return spec;
}

model::Pod pod_of(uint64_t number, std::shared_ptr<const model::PodSpec> spec) {
    model::Pod pod;
    pod.meta.ns = "default";
    pod.meta.name = fmt::format("pod-{}", number);
    pod.meta.uid = fmt::format("{:08x}-0000-4000-8000-{:012x}", number, number);
    pod.spec = std::move(spec);
    return pod;
}

// Every sum of every row equals the sum of its members.
void expect_sums(const Ledger& ledger) {
    for (Row row = 0; row < ledger.rows(); ++row) {
        if (!ledger.alive(row)) continue;
        const Resources use = ledger.recomputed_use(row);
        for (const auto id : {model::kCpu, model::kMemory, model::kPods}) {
            ASSERT_EQ(ledger.column(id)->used[row], use.get(id)) << ledger.name(row);
        }
        Resources scoring;
        for (const PodIndex pod : ledger.at(row).pods)
            scoring.add(model::kCpu, ledger.pod(pod).spec->scoring_cpu_milli);
        ASSERT_EQ(ledger.scoring_cpu()[row], scoring.get(model::kCpu)) << ledger.name(row);
    }
}

TEST(Uid, KeepsUuidsAndAnyOtherText) {
    for (const std::string text : {"0f8fad5b-d9cb-469f-a165-70867728950e", "ffffffff-ffff-ffff-ffff-ffffffffffff",
                                   "0F8FAD5B-D9CB-469F-A165-70867728950E", "pod-1", "",
                                   "0f8fad5bd9cb469fa16570867728950e", "0f8fad5b-d9cb-469f-a165-70867728950g"}) {
        EXPECT_EQ(Uid(text).text(), text);
        EXPECT_TRUE(Uid(text) == text);
        EXPECT_EQ(Uid(text).hash(), Uid::hash(text));
    }
    EXPECT_FALSE(Uid("a") == Uid("b"));
    EXPECT_FALSE(Uid("") == Uid("00000000-0000-0000-0000-000000000000"));
}

TEST(Uid, KeepsWhateverCharacterStandsAnywhere) {
    const std::string plain = "0f8fad5b-d9cb-469f-a165-70867728950e";
    for (size_t at = 0; at < plain.size(); ++at) {
        for (int byte = 0; byte < 256; ++byte) {
            std::string text = plain;
            text[at] = static_cast<char>(byte);
            ASSERT_EQ(Uid(text).text(), text) << at << " " << byte;
            ASSERT_EQ(Uid(text) == Uid(plain), text == plain) << at << " " << byte;
        }
    }
}

TEST(SpecPool, KeepsOneOfAllEqualSpecsWhileSomebodyUsesIt) {
    SpecPool pool;
    const SpecPool::Spec first = pool.intern(spec_of(100, 1));
    EXPECT_EQ(pool.intern(spec_of(100, 1)), first);
    for (int64_t i = 0; i < 10'000; ++i) pool.intern(spec_of(i, 2));
    EXPECT_LE(pool.size(), 2048u);
    EXPECT_EQ(pool.intern(spec_of(100, 1)), first);
}

TEST(Ledger, RemembersWhichRowsChanged) {
    Ledger ledger;
    ledger.put(node_named("a", 4000));
    ledger.put(node_named("b", 4000));
    const uint64_t since = ledger.changes().sequence();
    const uint64_t epoch = ledger.changes().static_epoch();
    ledger.assume(pod_of(1, spec_of(100, 1)), ledger.row_of("b"), {});
    std::vector<Row> rows;
    ledger.changes().replay(since, [&](Row row) { rows.push_back(row); });
    EXPECT_EQ(rows, std::vector<Row>{ledger.row_of("b")});
    EXPECT_EQ(ledger.changes().static_epoch(), epoch);
    auto cordoned = std::make_shared<model::Node>(*node_named("a", 4000));
    cordoned->unschedulable = true;
    ledger.put(cordoned);
    EXPECT_GT(ledger.changes().static_epoch(), epoch);
}

TEST(Ledger, PodsSeenBeforeTheirNodeAreCountedWhenItComes) {
    Ledger ledger;
    model::Pod pod = pod_of(1, spec_of(100, 1));
    pod.node = "late";
    ledger.put(pod);
    EXPECT_EQ(ledger.node_of(ledger.find_pod(pod.meta.uid)), "late");
    ledger.put(node_named("late", 4000));
    EXPECT_EQ(ledger.free(ledger.row_of("late"), model::kCpu), 3900);
    ledger.remove_node("late");
    ledger.remove_pod(pod.meta.uid);
    ledger.put(node_named("late", 4000));
    EXPECT_EQ(ledger.free(ledger.row_of("late"), model::kCpu), 4000);
}

std::shared_ptr<const model::Reservation> available_on(const std::string& node, int64_t cpu, uint64_t revision) {
    auto made = std::make_shared<model::Reservation>();
    made->meta.name = "r";
    made->meta.uid = "r-uid";
    made->meta.revision = revision;
    made->spec = spec_of(cpu, 1);
    made->phase = model::ReservationPhase::Available;
    made->node = node;
    made->allocatable = Resources{{model::kCpu, 1000}};
    model::ReservationOwner owner;
    owner.controller.emplace().name = "set";
    made->owners.push_back(owner);
    return made;
}

TEST(Ledger, AReservationLeavesWithWhatItCameWithAlsoWhenItsTemplateChanges) {
    Ledger ledger;
    ledger.put(node_named("a", 4000));
    ledger.put(available_on("a", 1000, 1));
    EXPECT_EQ(ledger.scoring_cpu()[0], 1000);
    ledger.put(available_on("a", 64'000, 2));
    EXPECT_EQ(ledger.scoring_cpu()[0], 64'000);
    EXPECT_EQ(ledger.free(0, model::kCpu), 3000) << "what its status says is held";
    ledger.remove_reservation("r-uid");
    EXPECT_EQ(ledger.scoring_cpu()[0], 0);
    EXPECT_EQ(ledger.free(0, model::kCpu), 4000);
}

TEST(Ledger, APodThatLosesItsControllerIsNoOwnerAnyMore) {
    Ledger ledger;
    ledger.put(node_named("a", 4000));
    ledger.put(available_on("a", 1000, 1));
    model::Pod pod = pod_of(1, spec_of(600, 1));
    pod.node = "a";
    pod.meta.annotations.set(model::kReservationAllocated, R"({"name":"r","uid":"r-uid"})");
    pod.meta.owners.emplace_back().name = "set";
    pod.meta.owners.back().controller = true;
    ledger.put(pod);
    EXPECT_EQ(ledger.free(0, model::kCpu), 3000);
    pod.meta.owners.clear();
    ledger.put(pod);
    EXPECT_EQ(ledger.free(0, model::kCpu), 2400);
}

// Amounts up to the end of int64 among ordinary ones; whatever order, the sums are those of the members.
TEST(Ledger, SumsAreThoseOfTheMembersAfterEveryStep) {
    const uint64_t seed = base::seed_from_system();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    base::Random random(seed);
    Ledger ledger;
    std::vector<std::string> uids;
    for (uint64_t step = 0; step < 3000; ++step) {
        const std::string name = fmt::format("node-{}", random.below(6));
        const uint64_t what = random.below(20);
        if (what == 0) ledger.remove_node(name);
        if (what == 1 || ledger.node_count() == 0) ledger.put(node_named(name, random.between(0, 64000)));
        if (what >= 2 && what < 12) {
            const bool huge = random.chance(1, 20);
            model::Pod pod =
                pod_of(step, spec_of(random.between(0, 4000), huge ? INT64_MAX - 5 : random.between(0, 1 << 30)));
            pod.node = name;
            ledger.put(pod);
            uids.push_back(pod.meta.uid);
        }
        if (what >= 12 && !uids.empty()) {
            const size_t pick = random.below(uids.size());
            const PodIndex index = ledger.find_pod(uids[pick]);
            if (what < 15 && ledger.pod(index).row != kNoRow) {
                ledger.lift(index);
                ASSERT_NO_FATAL_FAILURE(expect_sums(ledger));
                ledger.put_back(index);
            } else {
                ledger.remove_pod(uids[pick]);
                uids[pick] = uids.back();
                uids.pop_back();
            }
        }
        ASSERT_NO_FATAL_FAILURE(expect_sums(ledger));
    }
}

// The same with reservations: they come, change their template and amounts, are finished, go, and have owners.
TEST(Ledger, SumsAreThoseOfTheMembersWithReservations) {
    const uint64_t seed = base::seed_from_system();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    base::Random random(seed);
    const auto amount = [&] { return random.chance(1, 10) ? INT64_MAX - 5 : random.between(0, 4000); };
    Ledger ledger;
    for (const auto* name : {"a", "b"}) ledger.put(node_named(name, 64000));
    for (uint64_t step = 1; step <= 3000; ++step) {
        const std::string uid = fmt::format("r-{}", random.below(6));
        const auto what = random.below(8);
        if (what < 4) {
            const ReservationIndex known = ledger.find_reservation(uid);
            const std::string node =
                known == kNone ? (random.chance(1, 2) ? "a" : "b") : ledger.reservation(known).node;
            auto changed = *available_on(node, amount(), step);
            changed.meta.name = changed.meta.uid = uid;
            changed.allocatable.set(model::kCpu, amount());
            ledger.put(std::make_shared<const model::Reservation>(std::move(changed)));
        } else if (what == 4) {
            ledger.remove_reservation(uid);
        } else if (const auto known = ledger.find_reservation(uid); what == 5 && known != kNone) {
            auto over = *ledger.reservation(known).object;
            over.meta.revision = step;
            over.phase = model::ReservationPhase::Failed;
            ledger.put(std::make_shared<const model::Reservation>(std::move(over)));
        } else {
            model::Pod pod = pod_of(random.below(12), spec_of(amount(), 1));
            ledger.remove_pod(pod.meta.uid);
            pod.node = random.chance(1, 2) ? "a" : "b";
            pod.meta.annotations.set(model::kReservationAllocated, fmt::format(R"({{"name":"{0}","uid":"{0}"}})", uid));
            pod.meta.owners.emplace_back().name = "set";
            ledger.put(pod);
        }
        for (const Row row : {0u, 1u}) {
            const Resources use = ledger.recomputed_use(row);
            ASSERT_EQ(ledger.column(model::kCpu)->used[row], use.get(model::kCpu)) << "step " << step;
            ASSERT_EQ(ledger.column(model::kPods)->used[row], use.get(model::kPods)) << "step " << step;
        }
    }
}

// Of 4 cpu and 2 slots: r 2 cpu, used once; s 2 cpu, reusable; a pod of s has the slot of s.
TEST(Ledger, WhatARowLacksIsWhatTheChargesLeaveToTheNode) {
    Ledger ledger;
    const auto slots = [&](int64_t count) {
        auto node = *node_named("a", 4000);
        node.allocatable.set(model::kPods, count);
        ledger.put(std::make_shared<const model::Node>(std::move(node)));
    };
    slots(2);
    for (const bool once : {true, false}) {
        auto reservation = *available_on("a", 2000, 1);
        reservation.meta.uid = once ? "r" : "s";
        reservation.allocate_once = once;
        reservation.allocatable = Resources{{model::kCpu, 2000}};
        ledger.put(std::make_shared<const model::Reservation>(std::move(reservation)));
    }
    const ReservationIndex r = ledger.find_reservation("r");
    const ReservationIndex s = ledger.find_reservation("s");
    const Resources request{{model::kCpu, 4000}, {model::kPods, 1}};
    const Resources half{{model::kCpu, 2000}};
    const Resources half_and_slot{{model::kCpu, 2000}, {model::kPods, 1}};
    EXPECT_EQ(ledger.lacking(request, {}, 0), (Resources{{model::kCpu, 4000}, {model::kPods, 1}}));
    EXPECT_EQ(ledger.lacking(request, {{r, request}}, 0), (Resources{{model::kCpu, 2000}}));
    EXPECT_EQ(ledger.lacking(request, {{r, half_and_slot}, {s, half}}, 0), Resources());
    EXPECT_EQ(ledger.lacking(request, {{s, half_and_slot}, {r, half}}, 0), Resources());

    ledger.assume(pod_of(1, spec_of(0, 0)), 0, {{s, Resources{{model::kPods, 1}}}});
    EXPECT_EQ(ledger.lacking(request, {{r, half_and_slot}, {s, half}}, 0), Resources());
    EXPECT_EQ(ledger.lacking(request, {{s, half_and_slot}, {r, half}}, 0), (Resources{{model::kPods, 1}}))
        << "until r has ended its slot is not there";
    ledger.remove_pod(pod_of(1, nullptr).meta.uid);

    slots(1);
    EXPECT_EQ(ledger.lacking(request, {{s, half_and_slot}, {r, half}}, 0), Resources()) << "r gives its slot back";
    EXPECT_EQ(ledger.lacking(request, {{r, half_and_slot}, {s, half}}, 0), (Resources{{model::kPods, 1}}))
        << "s keeps its slot";
}

TEST(Ledger, WhatIsFinalHoldsNothingUntilItIsPlacedAgain) {
    Ledger ledger;
    ledger.put(node_named("a", 4000));
    ledger.put(available_on("a", 1000, 7));
    EXPECT_EQ(ledger.free(0, model::kCpu), 3000);
    const auto with_phase = [&](model::ReservationPhase phase, uint64_t revision) {
        auto changed = *available_on("a", 1000, revision);
        changed.phase = phase;
        ledger.put(std::make_shared<const model::Reservation>(std::move(changed)));
        return ledger.free(0, model::kCpu);
    };
    EXPECT_EQ(with_phase(model::ReservationPhase::Pending, 8), 3000) << "it was seen there";
    EXPECT_EQ(with_phase(model::ReservationPhase::Succeeded, 9), 4000);
    EXPECT_EQ(with_phase(model::ReservationPhase::Available, 8), 4000) << "this came late";
    EXPECT_EQ(with_phase(model::ReservationPhase::Pending, 10), 4000) << "whoever begins anew has no place yet";
    EXPECT_EQ(with_phase(model::ReservationPhase::Waiting, 11), 3000);
}

// A column has a number for every node: what a node says only for a while takes none of that away from the others.
TEST(Ledger, AResourceThatNoNodeHasAnyMoreHasNoColumn) {
    Ledger ledger;
    const auto gpu = *model::intern_resource("example.com/gpu");
    const auto put = [&](const std::string& name, const Resources& more) {
        auto node = std::make_shared<model::Node>(*node_named(name, 4000));
        more.for_each([&](ResourceId id, int64_t amount) { node->allocatable.set(id, amount); });
        ledger.put(std::shared_ptr<const model::Node>(std::move(node)));
    };
    put("n1", {{gpu, 8}});
    put("n2", {});
    auto spec = spec_of(100, 1);
    spec->requests.set(gpu, 2);
    for (uint64_t i = 0; i < 2; ++i) {
        model::Pod pod = pod_of(i, spec);
        pod.node = i == 0 ? "n1" : "n2";
        ledger.put(pod);
    }
    const auto free = [&] {
        return std::pair(ledger.free(ledger.row_of("n1"), gpu), ledger.free(ledger.row_of("n2"), gpu));
    };
    EXPECT_EQ(free(), std::pair(int64_t{6}, int64_t{-2}));
    for (int i = 0; i < 1000; ++i) put("n2", {{*model::intern_resource("example.com/" + std::to_string(i)), 1}});
    put("n1", {});
    EXPECT_EQ(ledger.column(gpu), nullptr);
    size_t columns = 0;
    for (uint16_t i = 0; i < ledger.columns(); ++i) columns += ledger.column({i}) != nullptr ? 1 : 0;
    EXPECT_EQ(columns, 4u) << "cpu, memory, pods, and the last of the thousand";
    ledger.remove_pod(pod_of(1, spec).meta.uid);
    put("n2", {{gpu, 3}});
    EXPECT_EQ(free(), std::pair(int64_t{-2}, int64_t{3})) << "who came before is counted";
    model::Pod late = pod_of(2, spec);
    late.node = "n2";
    ledger.put(late);
    ledger.remove_node("n2");
    EXPECT_EQ(ledger.column(gpu), nullptr);
    put("n1", {{gpu, 8}});
    EXPECT_EQ(ledger.free(ledger.row_of("n1"), gpu), 6);
}

}  // namespace
}  // namespace berth::ledger
