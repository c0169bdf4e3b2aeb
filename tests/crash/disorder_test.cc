// Bursts of reservations, their owners and strangers, while requests and answers arrive in any order, late or never.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cluster.h"
#include "seeds.h"

namespace berth::crash {
namespace {

std::string any_app(base::Random& random) {
    return random.chance(1, 2) ? "web" : "db";
}

// Reservations and more owners than they have room for, which wait together.
void burst(Cluster& cluster, base::Random& random, uint64_t round) {
    const auto count = 1 + random.below(4);
    for (uint64_t i = 0; i < count; ++i) {
        const std::string name = fmt::format("{}-{}", round, i);
        const std::string app = any_app(random);
        cluster.reservation("r-" + name, 1 + static_cast<int>(random.below(3)), app, random.chance(2, 3),
                            random.chance(1, 6));
        for (uint64_t owner = random.below(4); owner > 0; --owner) {
            cluster.pod(fmt::format("o-{}-{}", name, owner), 1 + static_cast<int>(random.below(3)), 5, app);
        }
        if (random.chance(1, 3)) cluster.pod("s-" + name, 1 + static_cast<int>(random.below(3)), 5, "x");
    }
}

template <class Delete>
void delete_one(base::Random& random, const std::vector<std::string>& names, Delete remove) {
    if (!names.empty()) remove(names[random.below(names.size())]);
}

void happen(Cluster& cluster, base::Random& random, uint64_t round) {
    const std::string name = fmt::format("{}", round);
    switch (random.below(8)) {
        case 0:
        case 1:
            return burst(cluster, random, round);
        case 2:
            return cluster.pod("high-" + name, 1 + static_cast<int>(random.below(4)), 100,
                               random.chance(1, 3) ? "web" : "x");
        case 3:
            cluster.claim("c-" + name);
            return cluster.pod("store-" + name, 1, 5, any_app(random), "", "c-" + name);
        case 4:
            return delete_one(random, cluster.names("pods"), [&](const auto& pod) { cluster.delete_pod(pod); });
        case 5:
            if (random.chance(2, 3)) return;
            return delete_one(random, cluster.names(kReservations),
                              [&](const auto& each) { cluster.delete_reservation(each); });
        case 6:
            // A kubelet takes its time: by then the controllers have seen what was bound.
            cluster.run_controllers();
            return cluster.end_pods();
        default:
            return;
    }
}

void unkind_story(uint64_t seed) {
    base::Random random(seed);
    Cluster cluster(random.chance(2, 3) ? ServerKind::Plain : ServerKind::Embedded);
    const auto nodes = 1 + random.below(3);
    for (uint64_t i = 0; i < nodes; ++i) cluster.node(fmt::format("n{}", i), 4);
    for (uint64_t round = 0; round < 40 && cluster.broken().empty(); ++round) {
        happen(cluster, random, round);
        for (uint64_t i = random.below(30); i > 0; --i) cluster.disorder(random);
    }
    ASSERT_EQ(cluster.broken(), "");
    if (random.chance(1, 2)) cluster.controllers_miss_the_end(random);
    EXPECT_TRUE(cluster.settle()) << "it does not come to rest";
    EXPECT_EQ(cluster.broken(), "");
    EXPECT_EQ(cluster.unsettled(), "");
}

TEST(DisorderTest, Seeds) {
    each_seed(200, unkind_story);
}

// 1048, 1080, 2829, 3115: the release of a claim was lost on its way, and nobody tried it again.
// 1512: a preempting pod fitted with one reservation and was charged to another, as if its victim had left already.
TEST(DisorderTest, SeedsThatFailedOnce) {
    for (const uint64_t seed : {1025, 1048, 1080, 1512, 2829, 3115}) unkind_story(seed);
}

}  // namespace
}  // namespace berth::crash
