// Nobody is evicted in vain: what preemption frees is kept for the pod it was freed for, whatever that pod is like, and
// a reservation that waits for room takes none of it.
#include "sched/preemptors_test.h"

namespace berth::sched {
namespace {

TEST_F(PreemptorsTest, OneThatOwnsAReservationElsewhere) {
    node("n2", 1000);
    reserved_on("n2", reservation("own", 1000, {"p"}));
    bound("a", 4000, 1, "n1");
    pending("p", 3000, 10);
    hungry(2000);
    takes_the_room_of_a();
}

TEST_F(PreemptorsTest, OneThatFacesAPort) {
    bound("a", 1000, 1, "n1");
    port(spec_of(pods_.at("a")));
    put(pods_.at("a"));
    model::Pod& p = make("p", 1000, 10);
    port(spec_of(p));
    put(p);
    hungry(1000, [&](auto& made) {
        auto spec = std::make_shared<model::PodSpec>(*made.spec);
        port(*spec);
        made.spec = spec;
    });
    takes_the_room_of_a();
}

TEST_F(PreemptorsTest, OneThatFacesAnAntiAffinityTerm) {
    model::Pod& a = make("a", 1000, 1);
    a.meta.labels.set("app", "x");
    spec_of(a).labels.set("app", "x");
    a.node = "n1";
    put(a);
    model::Pod& p = make("p", 2000, 10);
    spec_of(p).anti_affinity.push_back(
        {Selector::parse("app=x").value(), {"default"}, std::nullopt, "kubernetes.io/hostname"});
    put(p);
    hungry(3500);
    takes_the_room_of_a();
}

// It has 1 cpu of its own there and takes 2 of the 3 that go: what it draws from is not the room's to hold, so it
// waits by its nomination, to which everybody yields.
TEST_F(PreemptorsTest, OneThatDrawsFromAReservationThere) {
    bound("a", 3000, 1, "n1");
    reserved_on("n1", reservation("own", 1000, {"p"}));
    pending("p", 3000, 10);
    hungry(2000);
    settle();
    ASSERT_TRUE(said("delete a for p"));
    terminating("a");
    gone("a");
    pending("urgent", 3000, 1000);
    pending("small", 1000, 1000);
    settle();
    EXPECT_FALSE(placed("hungry"));
    EXPECT_FALSE(said("bind urgent to n1"));
    EXPECT_TRUE(said("bind small to n1")) << "of the fourth cpu nobody is in need";
    later(seconds(20));
    settle();
    EXPECT_TRUE(said("bind p to n1"));
    EXPECT_FALSE(placed("hungry"));
    EXPECT_EQ(used("n1"), 4000);
}

// It is older than the room, and would be served before it.
TEST_F(PreemptorsTest, OneThatMayWaitDoesNotWaitBeforeTheRoom) {
    bound("a", 4000, 1, "n1");
    pending("p", 3000, 10);
    hungry(2000);
    settle();
    ASSERT_TRUE(said("delete a for p"));
    model::Reservation edited = reservations_.at("hungry");
    edited.pre_allocation = true;
    reserved(edited);
    settle();
    EXPECT_FALSE(placed("hungry"));
    terminating("a");
    gone("a");
    available("room");
    settle();
    EXPECT_TRUE(said("bind p to n1"));
}

// One victim does not hear. p is near nobody of its own kind; its room is of that kind, too, and not in its way.
TEST_F(PreemptorsTest, OneWhoseRoomIsOfItsOwnKindTellsTheRestAgain) {
    const auto of_a_kind = [&](const char* name, int64_t cpu_milli, int32_t priority) -> model::Pod& {
        model::Pod& pod = make(name, cpu_milli, priority);
        pod.meta.labels.set("app", "low");
        spec_of(pod).labels = pod.meta.labels;
        return pod;
    };
    model::Pod& a = of_a_kind("a", 2000, 1);
    a.node = "n1";
    put(a);
    bound("b", 2000, 1, "n1");
    model::Pod& p = of_a_kind("p", 3000, 10);
    spec_of(p).anti_affinity.push_back(
        {Selector::parse("app=low").value(), {"default"}, std::nullopt, "kubernetes.io/hostname"});
    put(p);
    for (const char* what : {"asked for", "placed", "marked"}) {
        step();
        ASSERT_FALSE(told().empty()) << what;
        done();
    }
    ASSERT_EQ(told().size(), 2u);
    for (const auto& plan : std::exchange(answered_, {})) {
        const bool heard = std::get<EvictPod>(plan).name == "b";
        scheduler_.outcome(plan, heard ? Outcome::Done : Outcome::Unknown, now_);
    }
    terminating("b");
    gone("b");
    later(seconds(20));
    step();
    const Lines lines = told();
    EXPECT_EQ(lines.back(), "mark a for p") << lines.back();
}

// A new scheduler reads the nomination from the stored pod; it is as strong as it was.
TEST_F(PreemptorsTest, AfterARestartTheNominationStands) {
    reserved_on("n1", reservation("own", 1000, {"p"}));
    hungry(2000);
    pending("urgent", 2000, 1000);
    pending("p", 3000, 10, "n1");
    bound("b", 1000, 2000, "n1");
    settle();
    EXPECT_TRUE(said("bind p to n1"));
    EXPECT_FALSE(said("bind urgent to n1"));
    EXPECT_FALSE(placed("hungry"));
}

class NominatedAloneTest : public PreemptorsTest {
protected:
    NominatedAloneTest() : PreemptorsTest({.holds_rooms = false}) {
        bound("a", 4000, 1, "n1");
        pending("p", 3000, 10);
    }
    void goes_beside(const std::function<void(model::Reservation&)>& more) {
        settle();
        ASSERT_TRUE(said("delete a for p"));
        hungry(2000, more);
        settle();
        terminating("a");
        gone("a");
        settle();
        EXPECT_FALSE(placed("hungry"));
        later(seconds(20));
        settle();
        EXPECT_TRUE(said("bind p to n1"));
        EXPECT_FALSE(placed("hungry"));
    }
};

TEST_F(NominatedAloneTest, AReservationYieldsToIt) {
    goes_beside({});
}
TEST_F(NominatedAloneTest, OneThatMayWaitThereDoesNot) {
    goes_beside([](auto& made) { made.pre_allocation = true; });
}
TEST_F(NominatedAloneTest, OneThatHasRoomBesideItIsPlaced) {
    settle();
    terminating("a");
    gone("a");
    hungry(1000);
    step();
    EXPECT_EQ(told(), Lines{"reserve hungry: Successfully reserved on n1"});
}

// It waits on another node, though less is missing where somebody is nominated.
TEST_F(NominatedAloneTest, OneThatMayWaitElsewhereDoes) {
    node("n2", 4000);
    bound("b", 4000, 2000, "n2");
    settle();
    ASSERT_TRUE(said("delete a for p"));
    hungry(4000, [](auto& made) { made.pre_allocation = true; });
    step();
    EXPECT_EQ(told(), Lines{"reserve hungry: Successfully reserved on n2"});
}

}  // namespace
}  // namespace berth::sched
