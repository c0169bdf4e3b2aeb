#include "ledger/spaces.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "ledger/ledger.h"

namespace berth::ledger {
namespace {

using base::Random;

Resources without_zeros(const Resources& amounts) {
    Resources out;
    amounts.for_each([&](ResourceId id, int64_t amount) {
        if (amount != 0) out.set(id, amount);
    });
    return out;
}

// All that is counted of the spaces, by name.
std::map<std::string, std::string> told(const Spaces& spaces) {
    std::map<std::string, std::string> out;
    for (SpaceId id = 0; id < spaces.size(); ++id) {
        const Space& space = spaces.at(id);
        std::map<std::string, std::tuple<int64_t, int64_t, int64_t>> groups;
        for (const auto& group : space.groups) {
            if (group.placed == 0 && group.waiting == 0) continue;
            groups[fmt::format("{} {}", group.size.text(), group.priority)] = {group.placed, group.waiting,
                                                                               group.leaving};
        }
        std::string text =
            fmt::format("used {} releasing {} held {} pods {}", without_zeros(space.used).text(),
                        without_zeros(space.releasing).text(), without_zeros(space.held).text(), space.pods);
        for (const auto& [size, counts] : groups)
            text += fmt::format("; {}: {} {} {}", size, std::get<0>(counts), std::get<1>(counts), std::get<2>(counts));
        if (text != "used {} releasing {} held {} pods 0") out[space.name] = text;
    }
    out[""] = without_zeros(spaces.held_by_many()).text() + without_zeros(spaces.asked()).text();
    return out;
}

// Anything may happen to it, in any order.
class Town {
public:
    explicit Town(Random& random) : random_(random) {
        ledger_.count_spaces();
        for (int i = 0; i < 3; ++i) ledger_.put(node(i));
    }

    void step() {
        const uint64_t number = random_.below(12);
        model::Pod pod = pod_of(number);
        const PodIndex known = ledger_.find_pod(pod.meta.uid);
        switch (random_.below(9)) {
            case 0:
                if (known == kNone) ledger_.spaces()->await(pod.meta.uid, pod.spec, random_.chance(2, 3));
                return;
            case 1:
                ledger_.spaces()->set_counts(pod.meta.uid, random_.chance(1, 2));
                return;
            case 2:
                return ledger_.spaces()->forget(pod.meta.uid);
            case 3:
                if (known == kNone) ledger_.assume(pod, static_cast<Row>(random_.below(2)), {});
                return;
            case 4:
                pod.node = fmt::format("n{}", random_.below(4));
                if (random_.chance(1, 3)) pod.meta.deleted = base::Time{1};
                if (random_.chance(1, 6)) pod.phase = model::PodPhase::Succeeded;
                return ledger_.put(pod);
            case 5:
                return ledger_.remove_pod(pod.meta.uid);
            case 6:
                return ledger_.put(reservation(random_.below(3)));
            case 7:
                return ledger_.remove_reservation(fmt::format("r{}-uid", random_.below(3)));
            default:
                if (random_.chance(1, 2)) return ledger_.remove_node("n2");
                return ledger_.put(node(2));
        }
    }

    Ledger ledger_;

private:
    static std::shared_ptr<const model::Node> node(int number) {
        auto out = std::make_shared<model::Node>();
        out->meta.name = fmt::format("n{}", number);
        out->allocatable = Resources{{model::kCpu, 8000}, {model::kMemory, 1 << 30}, {model::kPods, 110}};
        return out;
    }
    std::shared_ptr<const model::PodSpec> spec() {
        auto out = std::make_shared<model::PodSpec>();
        out->ns = random_.chance(1, 2) ? "a" : "b";
        out->requests = Resources{{model::kCpu, random_.between(1, 2) * 500}, {model::kPods, 1}};
        if (random_.chance(1, 3)) out->limits.set(*model::intern_resource("limits.cpu"), 2000);
        out->priority = static_cast<int32_t>(random_.below(2));
        return out;
    }
    // Mostly the same pod under the same name, seldom another.
    model::Pod pod_of(uint64_t number) {
        model::Pod& pod = pods_[number];
        if (!pod.spec || random_.chance(1, 8)) pod.spec = spec();
        pod.meta.ns = pod.spec->ns;
        pod.meta.name = fmt::format("p{}", number);
        pod.meta.uid = fmt::format("p{}-uid", number);
        pod.meta.labels.set("app", "x");
        if (random_.chance(1, 2))
            pod.meta.annotations.set(model::kReservationAllocated,
                                     fmt::format(R"({{"name":"r{0}","uid":"r{0}-uid"}})", number % 3));
        return pod;
    }
    std::shared_ptr<const model::Reservation> reservation(uint64_t number) {
        auto out = std::make_shared<model::Reservation>();
        out->meta.name = fmt::format("r{}", number);
        out->meta.uid = fmt::format("r{}-uid", number);
        out->meta.revision = ++revision_;
        out->spec = spec();
        out->allocate_once = random_.chance(1, 2);
        out->phase = random_.chance(1, 5) ? model::ReservationPhase::Succeeded : model::ReservationPhase::Available;
        out->node = fmt::format("n{}", random_.below(3));
        out->allocatable = Resources{{model::kCpu, random_.between(1, 4) * 1000}};
        model::ReservationOwner owner;
        owner.object.emplace().ns = random_.chance(1, 3) ? "" : (random_.chance(1, 2) ? "a" : "b");
        out->owners.push_back(owner);
        return out;
    }

    Random& random_;
    std::map<uint64_t, model::Pod> pods_;
    uint64_t revision_ = 0;
};

TEST(Spaces, EverySumIsThatOfItsMembers) {
    const char* given = std::getenv("BERTH_SEED");
    const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
    for (uint64_t seed = first; seed < first + (given != nullptr ? 1 : 60); ++seed) {
        SCOPED_TRACE(testing::Message() << "BERTH_SEED=" << seed);
        Random random(seed);
        Town town(random);
        for (int i = 0; i < 200; ++i) {
            town.step();
            if (random.chance(2, 3)) continue;  // who comes and goes meanwhile is added up at once
            ASSERT_EQ(told(*town.ledger_.spaces()), told(town.ledger_.recomputed_spaces())) << "step " << i;
            if (i % 50 == 0) town.ledger_.spaces()->take_changed();
            if (random.chance(1, 10)) town.ledger_.spaces()->tidy({});
        }
    }
}

TEST(Spaces, WhatIsAssumedWasAskedForBefore) {
    Ledger ledger;
    ledger.count_spaces();
    auto node = std::make_shared<model::Node>();
    node->meta.name = "n1";
    node->allocatable = Resources{{model::kCpu, 8000}};
    ledger.put(std::shared_ptr<const model::Node>(node));
    model::Pod pod;
    pod.meta.uid = "p-uid";
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = "a";
    spec->requests = Resources{{model::kCpu, 1000}, {model::kPods, 1}};
    pod.spec = spec;
    Spaces& spaces = *ledger.spaces();
    spaces.await(pod.meta.uid, pod.spec, true);
    const uint64_t asked = spaces.demand_epoch();
    ledger.assume(pod, 0, {});
    EXPECT_EQ(spaces.demand_epoch(), asked);
    EXPECT_EQ(spaces.at(spaces.find("a")).groups.front().waiting, 0);
    ledger.remove_pod(pod.meta.uid);  // it could not be bound
    EXPECT_GT(spaces.demand_epoch(), asked);
    EXPECT_EQ(spaces.at(spaces.find("a")).groups.front().waiting, 1);
}

TEST(Spaces, APodThatWasSeenBoundDoesNotWaitWhenItGoes) {
    Ledger ledger;
    ledger.count_spaces();
    auto node = std::make_shared<model::Node>();
    node->meta.name = "n1";
    ledger.put(std::shared_ptr<const model::Node>(node));
    model::Pod pod;
    pod.meta.uid = "p-uid";
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = "a";
    spec->requests = Resources{{model::kCpu, 1000}};
    pod.spec = spec;
    const Spaces& spaces = *ledger.spaces();
    ledger.spaces()->await(pod.meta.uid, pod.spec, true);
    const PodIndex index = ledger.assume(pod, 0, {});
    EXPECT_EQ(spaces.asked().get(model::kCpu), 1000);
    ledger.see_bound(index);
    ledger.remove_pod(pod.meta.uid);
    EXPECT_EQ(spaces.at(spaces.find("a")).groups.front().waiting, 0);
    EXPECT_EQ(spaces.asked().get(model::kCpu), 0);
}

TEST(Spaces, ASumThatMetTheEndOfInt64IsRightAgainWhenThatIsGone) {
    Ledger ledger;
    ledger.count_spaces();
    const auto put = [&](const char* uid, int64_t memory) {
        model::Pod pod;
        pod.meta.uid = uid;
        pod.node = "n1";
        auto spec = std::make_shared<model::PodSpec>();
        spec->ns = "a";
        spec->requests = Resources{{model::kMemory, memory}};
        pod.spec = spec;
        ledger.put(pod);
    };
    put("small", 7);
    put("huge", INT64_MAX - 3);
    EXPECT_EQ(ledger.spaces()->at(0).used.get(model::kMemory), INT64_MAX);
    ledger.remove_pod("huge");
    EXPECT_EQ(ledger.spaces()->at(0).used.get(model::kMemory), 7);
}

TEST(Spaces, SizesThatNobodyHasAreForgottenAndTheOthersStayTold) {
    Ledger ledger;
    ledger.count_spaces();
    Spaces& spaces = *ledger.spaces();
    const auto uid = [](int i) { return fmt::format("p{}-uid", i); };
    std::vector<std::shared_ptr<const model::PodSpec>> specs;
    for (int i = 0; i < 40; ++i) {
        auto spec = std::make_shared<model::PodSpec>();
        spec->ns = "a";
        spec->requests = Resources{{model::kCpu, 100 + i}};
        specs.push_back(spec);
        spaces.await(uid(i), specs.back(), true);
    }
    for (int i = 0; i < 36; ++i) spaces.forget(uid(i));
    ASSERT_TRUE(spaces.worth_tidying());
    EXPECT_TRUE(spaces.tidy({}).empty()) << "the space itself stays";
    ASSERT_EQ(spaces.at(0).groups.size(), 4u);
    for (int i = 30; i < 40; ++i) {
        model::Pod pod;
        pod.meta.uid = uid(i);
        pod.node = "n1";
        pod.spec = specs[static_cast<size_t>(i)];
        ledger.put(pod);
        ASSERT_EQ(told(spaces), told(ledger.recomputed_spaces())) << i;
    }
}

// Whatever made them known: pods, what is held for them, a rule.
TEST(Spaces, ASpaceThatNobodyHasGivesItsNumberBack) {
    Ledger ledger;
    ledger.count_spaces();
    Spaces& spaces = *ledger.spaces();
    const auto put_consumer = [&](const std::string& name, const std::string& parent) {
        auto consumer = std::make_shared<model::Consumer>();
        consumer->meta.name = name;
        consumer->parent = parent;
        spaces.put(std::shared_ptr<const model::Consumer>(std::move(consumer)));
    };
    put_consumer("stays", "above");
    for (int i = 0; i < 1000; ++i) {
        auto spec = std::make_shared<model::PodSpec>();
        spec->ns = fmt::format("pods-{}", i);
        spec->requests = Resources{{model::kCpu, 100}};
        model::Pod pod;
        pod.meta.uid = fmt::format("p{}-uid", i);
        pod.spec = spec;
        spaces.await(pod.meta.uid, pod.spec, true);
        pod.node = "n1";
        ledger.put(pod);
        put_consumer(fmt::format("ruled-{}", i), fmt::format("area-{}", i));
        auto quota = std::make_shared<model::ResourceQuota>();
        quota->meta.ns = fmt::format("quota-{}", i);
        quota->meta.name = "q";
        spaces.put(std::shared_ptr<const model::ResourceQuota>(std::move(quota)));
        model::Reservation reservation;
        reservation.owners.emplace_back().object.emplace().ns = fmt::format("held-{}", i);
        spaces.hold(7, reservation, Resources{{model::kCpu, 100}});
        ASSERT_EQ(spaces.at(spaces.find(fmt::format("held-{}", i))).held.get(model::kCpu), 100);
        ledger.remove_pod(pod.meta.uid);
        spaces.remove_consumer(fmt::format("ruled-{}", i));
        spaces.remove_quota(fmt::format("quota-{}/q", i));
        spaces.release(7);
        if (!spaces.worth_tidying()) continue;
        const SpaceId needed = spaces.find(fmt::format("pods-{}", i));
        const std::vector<SpaceId> numbers = spaces.tidy({needed});
        ASSERT_FALSE(numbers.empty());
        ASSERT_EQ(numbers[needed], spaces.find(fmt::format("pods-{}", i)));
        ASSERT_EQ(spaces.size(), 3u) << "after " << i;
        ASSERT_EQ(spaces.at(numbers[spaces.find("stays")]).name, "stays");
        ASSERT_EQ(spaces.at(spaces.find("above")).name, "above");
    }
    EXPECT_LT(spaces.size(), 300u);
}

}  // namespace
}  // namespace berth::ledger
