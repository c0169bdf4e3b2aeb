// Nobody is evicted in vain where preemptors draw from reservations: what they wait for is partly the reservation's, so
// that no room of their own can hold it, and others may draw from the same.
#include "sched/preemptors_test.h"

namespace berth::sched {
namespace {

class InsideTest : public PreemptorsTest {
protected:
    // An owner goes for a more important one, inside their reservation.
    void begin(model::AllocatePolicy policy) {
        model::Reservation shared = reservation("shared", 3000, {"a", "c", "p", "urgent"});
        shared.allocate_once = false;
        shared.policy = policy;
        reserved_on("n1", shared);
        draws("shared", "a", 3000, 1);
        pending("p", 2500, 10);
        settle();
        ASSERT_TRUE(said("delete a for p"));
        terminating("a");
        gone("a");
        pending("urgent", 2500, 1000);
        settle();
        EXPECT_FALSE(said("bind urgent to n1")) << "nor another owner, at any priority";
        later(seconds(20));
        settle();
        EXPECT_TRUE(said("bind p to n1"));
    }
};

TEST_F(InsideTest, Restricted) {
    begin(model::AllocatePolicy::Restricted);
}
TEST_F(InsideTest, Aligned) {
    begin(model::AllocatePolicy::Aligned);
}
TEST_F(InsideTest, Default) {
    begin(model::AllocatePolicy::Default);
}

// Whoever draws is charged with all it asks for, even where less is left: 4 cpu to what has 0.5 beside p. For p, which
// must draw, nothing would be left then; but what it draws was promised to it, and there is room for both.
class MustDrawTest : public PreemptorsTest {
protected:
    MustDrawTest() {
        node("n1", 8000);
        model::Reservation shared = reservation("shared", 3000, {"a", "c", "p", "urgent"});
        shared.allocate_once = false;
        reserved_on("n1", shared);
        draws("shared", "a", 3000, 1);
        model::Pod& p = make("p", 2500, 10);
        p.meta.annotations.set(model::kReservationAffinity, "{}");
        put(p);
        settle();
        terminating("a");
        gone("a");
    }
    void both_land(int64_t use) {
        ASSERT_TRUE(said("delete a for p"));
        for (int i = 0; i < 2; ++i) {
            later(seconds(20));
            settle();
        }
        EXPECT_TRUE(said("bind urgent to n1"));
        EXPECT_TRUE(said("bind p to n1"));
        EXPECT_EQ(used("n1"), use);
    }
};

TEST_F(MustDrawTest, AnotherOwnerTakesNothingFromIt) {
    pending("urgent", 4000, 1000);
    settle();
    EXPECT_TRUE(said("bind urgent to n1"));
    both_land(6500);
}

// A new scheduler finds the nomination and no promise. The other owner comes first, and leaves p what it must draw.
TEST_F(PreemptorsTest, AfterARestartAnotherOwnerTakesNothingFromIt) {
    node("n1", 8000);
    model::Reservation shared = reservation("shared", 3000, {"a", "p", "urgent"});
    shared.allocate_once = false;
    reserved_on("n1", shared);
    draws("shared", "a", 3000, 1);
    terminating("a");
    model::Pod& p = make("p", 2500, 10);
    p.meta.annotations.set(model::kReservationAffinity, "{}");
    p.nominated_node = "n1";
    put(p);
    pending("urgent", 4000, 1000);
    settle();
    gone("a");
    for (int i = 0; i < 2; ++i) {
        later(seconds(20));
        settle();
    }
    EXPECT_TRUE(said("bind urgent to n1"));
    EXPECT_TRUE(said("bind p to n1"));
    EXPECT_EQ(used("n1"), 6500);
}

// While c is there it is to draw nothing: it takes all of the node's own.
TEST_F(MustDrawTest, NorDoesOneThatOthersWentFor) {
    draws("shared", "c", 500, 2000);
    bound("b", 4500, 1, "n1");
    pending("urgent", 4000, 1000);
    settle();
    ASSERT_TRUE(said("delete b for urgent"));
    terminating("b");
    gone("b");
    gone("c");
    hungry(2000);
    settle();
    both_land(7000);
    EXPECT_FALSE(placed("hungry"));
}

// For it b goes, and has not gone yet: with both the node is full. Who has room reserved there takes nothing of that.
class UrgentTest : public PreemptorsTest {
protected:
    UrgentTest() {
        node("n1", 8000);
        reserved_on("n1", reservation("own", 1000, {"urgent"}));
        bound("b", 4000, 50, "n1");
    }
    void b_goes_for_it() {
        pending("urgent", 5000, 1000);
        settle();
        ASSERT_TRUE(said("delete b for urgent"));
        terminating("b");
    }
};

TEST_F(UrgentTest, AnotherLandsInItsRoomMeanwhile) {
    bound("a", 3000, 1, "n1");
    pending("p", 3000, 10);
    settle();
    ASSERT_TRUE(said("delete a for p"));
    terminating("a");
    gone("a");
    b_goes_for_it();
    available("room");
    settle();
    EXPECT_TRUE(said("bind p to n1"));
    gone("b");
    later(seconds(20));
    settle();
    EXPECT_TRUE(said("bind urgent to n1"));
    EXPECT_EQ(used("n1"), 8000);
}

TEST_F(UrgentTest, SoDoOwnersOfWhatIsReservedThere) {
    reserved_on("n1", reservation("r", 2000, {"q", "large"}));
    b_goes_for_it();
    pending("large", 3500, 10);
    pending("q", 2000, 1);
    settle();
    EXPECT_TRUE(said("bind q to n1"));
    EXPECT_FALSE(said("bind large to n1")) << "of the node's own only one cpu will be left";
}

class BesideTest : public PreemptorsTest {
protected:
    void add_port(model::Reservation& to) {
        auto spec = std::make_shared<model::PodSpec>(*to.spec);
        port(*spec);
        to.spec = spec;
    }
    void reusable(const std::string& name, int64_t cpu_milli, const std::vector<std::string>& owners,
                  model::AllocatePolicy policy, bool with_port = false) {
        model::Reservation made = reservation(name, cpu_milli, owners);
        made.allocate_once = false;
        made.policy = policy;
        if (with_port) add_port(made);
        reserved_on("n1", made);
    }
    void pending_with_port(const std::string& name, int64_t cpu_milli, int32_t priority) {
        model::Pod& pod = make(name, cpu_milli, priority);
        port(spec_of(pod));
        put(pod);
    }
    void leave(const std::vector<std::string>& names) {
        for (const auto& name : names) {
            terminating(name);
            gone(name);
        }
    }
    void later_settle() {
        later(seconds(20));
        settle();
    }
};

// p draws nothing, since `plain` is full; but the port that it takes is one of `ported`.
TEST_F(BesideTest, AnotherOwnerDoesNotTakeItsPort) {
    node("n1", 8000);
    reusable("plain", 3000, {"a", "p"}, model::AllocatePolicy::Aligned);
    reusable("ported", 2000, {"p", "q"}, model::AllocatePolicy::Restricted, true);
    draws("plain", "a", 3000, 2000);
    bound("v", 3000, 1, "n1");
    pending_with_port("p", 3000, 10);
    settle();
    ASSERT_TRUE(said("delete v for p"));
    leave({"v"});
    pending_with_port("q", 1000, 1000);
    settle();
    EXPECT_FALSE(said("bind q to n1"));
    later_settle();
    EXPECT_TRUE(said("bind p to n1"));
}

// The port that p will have is held by one that q uses up: p has it when that is stored.
TEST_F(BesideTest, ItWaitsUntilWhatIsUsedUpLetsGo) {
    node("n1", 8000);
    reusable("wide", 5000, {"a", "p"}, model::AllocatePolicy::Aligned);
    model::Reservation ported = reservation("ported", 2000, {"p", "q"});
    ported.policy = model::AllocatePolicy::Restricted;
    add_port(ported);
    reserved_on("n1", ported);
    draws("wide", "a", 5000, 1);
    pending_with_port("p", 5000, 10);
    settle();
    ASSERT_TRUE(said("delete a for p"));
    leave({"a"});
    pending("q", 1000, 1000);
    hungry(1000, [&](auto& made) { add_port(made); });
    settle();
    ASSERT_TRUE(said("bind q to n1"));
    later_settle();
    EXPECT_FALSE(said("bind p to n1"));
    draws("ported", "q", 1000, 1000);
    model::Reservation used = reservations_.at("ported");
    used.phase = model::ReservationPhase::Succeeded;
    reserved(used);
    later_settle();
    EXPECT_TRUE(said("bind p to n1"));
    EXPECT_FALSE(placed("hungry"));
}

// Only with one that is used once are several drawn from: it was promised both, and has them when q has that one.
TEST_F(BesideTest, AnotherMayUseUpWhatLetItDrawJointly) {
    node("n1", 6000);
    reusable("big", 3000, {"a", "p"}, model::AllocatePolicy::Default);
    reusable("small", 2000, {"b", "p"}, model::AllocatePolicy::Default);
    reserved_on("n1", reservation("once", 1000, {"p", "q"}));
    draws("big", "a", 3000, 1);
    draws("small", "b", 2000, 1);
    pending("p", 5000, 10);
    settle();
    ASSERT_TRUE(said("delete a for p") && said("delete b for p"));
    leave({"a", "b"});
    pending("q", 1000, 1000);
    settle();
    EXPECT_TRUE(said("bind q to n1"));
    later_settle();
    EXPECT_TRUE(said("bind p to n1"));
    EXPECT_EQ(used("n1"), 6000);
}

// As long as v is there p fits into neither: it will draw from `wide`, though `old` comes first.
TEST_F(BesideTest, AnotherDoesNotTakeWhatItWillDrawFrom) {
    node("n1", 8000);
    reusable("old", 1000, {"p", "q"}, model::AllocatePolicy::Aligned);
    reusable("wide", 4000, {"p", "q"}, model::AllocatePolicy::Aligned);
    bound("v", 2000, 1, "n1");
    pending("p", 6000, 10);
    pending("q", 4000, 5);
    settle();
    ASSERT_TRUE(said("delete v for p"));
    EXPECT_FALSE(said("bind q to n1"));
    leave({"v"});
    later_settle();
    EXPECT_TRUE(said("bind p to n1"));
}

// Beside p, q draws nothing; so it waits until others have gone, though what p was promised would do for it now.
TEST_F(BesideTest, OneThatWillDrawNothingDrawsNothingBefore) {
    node("n1", 8000);
    reserved_on("n1", reservation("once", 1000, {"p", "q"}));
    bound("x", 3000, 1, "n1");
    bound("y", 2000, 1, "n1");
    bound("z", 2000, 5000, "n1");
    pending("p", 4000, 1000);
    pending("q", 1000, 100);
    settle();
    ASSERT_TRUE(said("delete x for p") && said("delete y for q"));
    terminating("x");
    terminating("y");
    later_settle();
    EXPECT_FALSE(said("bind q to n1"));
    gone("x");
    gone("y");
    later_settle();
    EXPECT_TRUE(said("bind p to n1"));
    EXPECT_TRUE(said("bind q to n1"));
    EXPECT_EQ(used("n1"), 7000);
}

// p has seen that urgent goes there, and fits beside it.
TEST_F(BesideTest, OneThatWasNominatedBeforeItDoesNotYield) {
    node("n1", 8000);
    reserved_on("n1", reservation("own", 1000, {"p"}));
    bound("a", 3000, 1, "n1");
    bound("b", 4000, 2, "n1");
    pending("urgent", 3000, 1000);
    pending("p", 5000, 10);
    settle();
    ASSERT_TRUE(said("hold n1 for urgent"));
    ASSERT_TRUE(said("delete b for p"));
    ASSERT_TRUE(reservations_.contains("room"));
    leave({"a", "b"});
    available("room");
    later_settle();
    EXPECT_TRUE(said("bind urgent to n1"));
    EXPECT_TRUE(said("bind p to n1"));
    EXPECT_EQ(used("n1"), 8000);
}

// It would be placed as if it drew from that too.
TEST_F(BesideTest, ARoomIsGivenUpWhenItsPodCanDraw) {
    reserved_on("n1", reservation("own", 1000, {"nobody"}));
    bound("a", 3000, 1, "n1");
    pending("p", 1000, 10);
    step();
    done();
    ASSERT_TRUE(reservations_.contains("room"));
    reserved_on("n1", reservation("own", 1000, {"p"}));
    settle();
    EXPECT_FALSE(said("delete a for p"));
    later_settle();
    EXPECT_TRUE(said("bind p to n1"));
    EXPECT_EQ(used("n1"), 4000);
}

// With y gone p would draw from `old`, and leave `wide` to q; but p goes as soon as it can.
TEST_F(BesideTest, NobodyGoesOnAccountOfWhatOthersMightDraw) {
    node("n1", 8000);
    reusable("old", 2000, {"p", "q", "y"}, model::AllocatePolicy::Aligned);
    reusable("wide", 3000, {"p", "q", "x"}, model::AllocatePolicy::Aligned);
    bound("other", 3000, 2000, "n1");
    draws("old", "y", 2000, 2);
    draws("wide", "x", 3000, 1);
    pending("p", 2000, 1000);
    settle();
    ASSERT_TRUE(said("delete x for p"));
    leave({"x"});
    pending("q", 3000, 10);
    settle();
    EXPECT_FALSE(said("delete y for q"));
    later_settle();
    EXPECT_TRUE(said("bind p to n1"));
}

}  // namespace
}  // namespace berth::sched
