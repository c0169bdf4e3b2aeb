#include "sched/attempt.h"

#include "sched/draw.h"
#include "sched/table_test.h"

namespace berth::sched {
namespace {

class AttemptTest : public testing::Test {
protected:
    AttemptTest() {
        table.put(node_yaml("n1"));
        table.put(
            "---\nkind: Reservation\nmetadata: {name: r}\nspec: {allocateOnce: true, owners: [{labelSelector: "
            "{matchLabels: {app: a}}}], template: {spec: {containers: [{name: c, resources: {requests: {cpu: 2}}}]}}}\n"
            "status: {phase: Available, nodeName: n1}\n");
        table.put(
            "---\nkind: Pod\nmetadata: {name: p, labels: {app: a}}\nspec: {containers: [{name: c, resources: "
            "{requests: {cpu: 3}}}]}\n");
    }
    Attempt begun() {
        Attempt attempt(sources);
        attempt.pod = table.pod("p");
        return attempt;
    }
    void place(Attempt& attempt) { attempt.place(0, charges_on(table.ask("p"), table.ledger, 0), nullptr); }
    int64_t used() const { return table.ledger.column(model::kCpu)->used[0]; }

    TestTable table;
    Nominated nominated;
    Evictions evictions;
    Sources sources{table.ledger, nominated, evictions};
};

TEST_F(AttemptTest, DroppedItGivesEverythingBack) {
    {
        Attempt attempt = begun();
        place(attempt);
        attempt.nominate("n1");
        attempt.evict("victim");
        ASSERT_EQ(used(), 3000);
        ASSERT_TRUE(nominated.contains("uid-p") && evictions.under_way("uid-p"));
        EXPECT_FALSE(sources.freed);
    }
    EXPECT_EQ(used(), 2000);
    EXPECT_TRUE(nominated.empty());
    EXPECT_FALSE(evictions.under_way("uid-p"));
    EXPECT_TRUE(sources.freed);
    EXPECT_EQ(sources.claims.size(), 1u) << "who claimed the reservation for it may have to release it";
}

TEST_F(AttemptTest, OneThatWasMovedFromHasNothing) {
    std::optional<Attempt> first(begun());
    place(*first);
    std::optional<Attempt> second(std::move(*first));
    first.reset();
    EXPECT_EQ(used(), 3000);
    second.reset();
    EXPECT_EQ(used(), 2000);
}

TEST_F(AttemptTest, OneThatLandedLeavesItsPlaceToThePod) {
    {
        Attempt attempt = begun();
        place(attempt);
        attempt.landed();
    }
    EXPECT_EQ(used(), 3000);
    EXPECT_FALSE(sources.freed);
    EXPECT_TRUE(sources.claims.empty());
}

TEST_F(AttemptTest, WhatWasPromisedStandsWhenAPlaceIsGivenBack) {
    Attempt attempt = begun();
    const auto promised = [&] { return nominated.promised(table.ask("p"), table.ledger, 0); };
    attempt.nominate("n1", {}, std::make_shared<const Promised>());
    place(attempt);
    EXPECT_TRUE(nominated.empty()) << "it counts as placed";
    attempt.give_back();
    attempt.nominate("n1");
    EXPECT_TRUE(promised());
    attempt.end_nomination();
    attempt.nominate("n1");
    EXPECT_FALSE(promised());
}

TEST_F(AttemptTest, ItIsInOneStageAtATime) {
    Attempt attempt = begun();
    attempt.enter(Consultation{7, {}, {}, {}, 0, false, 0});
    attempt.enter(Claiming{BindPod{"uid-p", "", "p", "n1", {}}, 1, 8});
    EXPECT_FALSE(attempt.at<Consultation>());
    EXPECT_EQ(attempt.leave<Claiming>().bind.node, "n1");
    EXPECT_FALSE(attempt.at<Claiming>());
}

}  // namespace
}  // namespace berth::sched
