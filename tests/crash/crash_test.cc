// The scheduler dies between any two requests, requests are lost or arrive late, answers are lost: nothing is lost,
// nothing is charged twice, no node is oversold, nothing stays assumed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cluster.h"
#include "seeds.h"

namespace berth::crash {
namespace {

// Owners of a reservation, a pod whose volume has yet to be made, and one that takes the room of others.
void begin_story(Cluster& cluster) {
    cluster.node("n1", 4);
    cluster.node("n2", 4);
    cluster.pod("low-1", 2, 1, "low", "n2");
    cluster.pod("low-2", 2, 1, "low", "n2");
    cluster.reservation("once", 2, "web", true);
    cluster.reservation("reused", 1, "db", false);
    cluster.claim("data");
}

void go_on(Cluster& cluster, size_t round) {
    if (round == 6) cluster.pod("web-1", 2, 5, "web");
    if (round == 8) cluster.pod("db-1", 1, 5, "db");
    if (round == 10) cluster.pod("stores", 1, 5, "stores", "", "data");
    if (round == 14) cluster.pod("urgent", 4, 100, "urgent");
    if (round % 3 == 0) cluster.run_controllers();
    if (round % 7 == 0) cluster.end_pods();
    cluster.later(std::chrono::milliseconds(700));
}

// The whole story with one mishap at one request; false when it has fewer requests than that.
bool tell(size_t at, Fate fate, ServerKind kind) {
    Cluster cluster(kind);
    begin_story(cluster);
    for (size_t round = 0; round < 60; ++round) {
        cluster.schedule([&] { return cluster.requests() == at ? fate : Fate::Answered; });
        if (round == 40) cluster.deliver_late();
        go_on(cluster, round);
    }
    const std::string where = fmt::format("request {}, fate {}, {}", at, static_cast<int>(fate),
                                          kind == ServerKind::Plain ? "claims first" : "binds at once");
    EXPECT_TRUE(cluster.settle()) << where << ": it does not come to rest";
    EXPECT_EQ(cluster.broken(), "") << where;
    EXPECT_EQ(cluster.unsettled(), "") << where;
    EXPECT_NE(cluster.node_of("urgent"), "") << where << ": it has everybody's room";
    if (fate == Fate::Answered) {
        for (const auto* pod : {"web-1", "db-1", "stores"}) EXPECT_EQ(cluster.node_of(pod), "n1") << pod;
        EXPECT_EQ(cluster.node_of("urgent"), "n2");
        EXPECT_EQ(cluster.node_of("low-1"), "gone");
        EXPECT_EQ(cluster.node_of("low-2"), "gone");
    }
    return cluster.requests() > at && !testing::Test::HasFailure();
}

TEST(UndisturbedTest, TheStoryEndsAsItShould) {
    for (const auto kind : {ServerKind::Embedded, ServerKind::Plain}) EXPECT_FALSE(tell(1000, Fate::Answered, kind));
}

class CrashTest : public testing::TestWithParam<std::tuple<Fate, ServerKind>> {};

TEST_P(CrashTest, AtEveryRequest) {
    size_t at = 1;
    const auto [fate, kind] = GetParam();
    while (tell(at, fate, kind)) ++at;
    EXPECT_GT(at, 12u) << "the story is shorter than it was";
    RecordProperty("requests", static_cast<int>(at));
}

INSTANTIATE_TEST_SUITE_P(Fates, CrashTest,
                         testing::Combine(testing::Values(Fate::AnswerLost, Fate::Lost, Fate::DieBefore, Fate::DieAfter,
                                                          Fate::DieThenLater),
                                          testing::Values(ServerKind::Embedded, ServerKind::Plain)));

// Random stories with random mishaps.
void random_story(uint64_t seed) {
    base::Random random(seed);
    Cluster cluster(random.chance(1, 2) ? ServerKind::Plain : ServerKind::Embedded);
    const auto nodes = 1 + random.below(3);
    for (uint64_t i = 0; i < nodes; ++i) cluster.node(fmt::format("n{}", i), 4);
    const auto fate = [&] { return random.chance(3, 4) ? Fate::Answered : static_cast<Fate>(1 + random.below(5)); };
    for (uint64_t round = 0; round < 60; ++round) {
        const std::string name = fmt::format("{}", round);
        switch (random.below(12)) {
            case 0:
            case 1:
                cluster.pod("low-" + name, 1 + static_cast<int>(random.below(2)), 1,
                            random.chance(1, 2) ? "web" : "db");
                break;
            case 2:
                cluster.pod("high-" + name, 1 + static_cast<int>(random.below(4)), 100,
                            random.chance(1, 3) ? "web" : "x");
                break;
            case 3:
                cluster.reservation("r-" + name, 1 + static_cast<int>(random.below(2)),
                                    random.chance(1, 2) ? "web" : "db", random.chance(1, 2));
                break;
            case 4:
                cluster.claim("c-" + name);
                cluster.pod("store-" + name, 1, 5, "store", "", "c-" + name);
                break;
            case 5: {
                const auto pods = cluster.names("pods");
                if (!pods.empty()) cluster.delete_pod(pods[random.below(pods.size())]);
                break;
            }
            case 6:
                cluster.end_pods();
                break;
            case 7:
                cluster.deliver_late();
                break;
            default:
                break;
        }
        if (random.chance(1, 2)) cluster.run_controllers();
        for (uint64_t i = random.below(4); i > 0; --i) cluster.schedule(fate);
        cluster.later(std::chrono::milliseconds(random.below(3000)));
    }
    EXPECT_TRUE(cluster.settle()) << "it does not come to rest";
    EXPECT_EQ(cluster.broken(), "");
    EXPECT_EQ(cluster.unsettled(), "");
}

TEST(RandomCrashTest, Seeds) {
    each_seed(150, random_story);
}

}  // namespace
}  // namespace berth::crash
