// Preemption with the room held: a reservation stands before anybody goes, and only its pod lands in it.
#include "base/json.h"
#include "base/json_view.h"
#include "model/preemption_hold.h"
#include "sched/live_test.h"

namespace berth::sched {
namespace {

class RoomsTest : public LiveTest {
protected:
    RoomsTest() {
        node("n1", 4000);
        bound("a", 4000, 1, "n1");
        pending("p", 3000, 10);
    }
    static constexpr const char* kNoRoom = "0/1 nodes are available: 1 Insufficient cpu.";
    // Up to the moment when the victim was told to go.
    void preempt() {
        step();
        EXPECT_EQ(told(), (Lines{std::string("refuse p -> n1: ") + kNoRoom, "hold n1 for p"}));
        done();
        step();
        EXPECT_EQ(told(), Lines{"reserve preemption-p: Successfully reserved on n1"});
        EXPECT_EQ(used("n1"), 7000) << "it waits, and counts";
        done();
        EXPECT_EQ(told(), Lines{"mark a for p"}) << "only now";
        done();
        EXPECT_EQ(told(), Lines{"delete a for p"});
        done();
    }
    // And on to its bind.
    BindPod land() {
        preempt();
        terminating("a");
        gone("a");
        available("room");
        later(std::chrono::seconds(20));
        step();
        EXPECT_EQ(plans_.size(), 1u);
        return std::get<BindPod>(plans_.at(0));
    }
};

TEST_F(RoomsTest, TheRoomStandsBeforeAnybodyGoesAndThePodLandsInIt) {
    const BindPod bind = land();
    EXPECT_EQ(bind.node, "n1");
    ASSERT_EQ(bind.annotations.size(), 1u);
    EXPECT_EQ(bind.annotations[0].first, model::kReservationAllocated);
    EXPECT_EQ(used("n1"), 3000) << "held once, not twice";
}

// The victim's end wakes the pod before the reservation is available; that try must not cost it the room's first
// seconds.
TEST_F(RoomsTest, ThePodComesAsSoonAsItsRoomIsAvailable) {
    preempt();
    terminating("a");
    later(std::chrono::seconds(20));
    step();
    gone("a");
    step();
    told();
    EXPECT_EQ(scheduler_.queue().sizes().active, 0u);
    available("room");
    step();
    EXPECT_EQ(told(), Lines{"bind p to n1"});
}

// Its end is to be seen, and tells how the pod came there; then it goes with other final ones.
TEST_F(RoomsTest, AUsedOneIsLeftToTheCollector) {
    const BindPod bind = land();
    told();
    done();
    model::Pod& p = pods_.at("p");
    p.node = "n1";
    for (const auto& [key, value] : bind.annotations) p.meta.annotations.set(key, value);
    put(p);
    later(std::chrono::hours(1));
    step();
    EXPECT_EQ(told(), Lines{});
    EXPECT_EQ(scheduler_.next_wake(), std::nullopt) << "nothing is left to do";
}

TEST_F(RoomsTest, NobodyStealsItMeanwhileAtAnyPriority) {
    preempt();
    terminating("a");
    gone("a");
    pending("equal", 2000, 10);
    pending("urgent", 2000, 1000);
    pending("small", 1000, 0);
    step();
    const Lines lines = told();
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_EQ(lines[3], "open preemption-p");
    EXPECT_EQ(lines[0].substr(0, 13), "refuse urgent");
    EXPECT_EQ(lines[1].substr(0, 12), "refuse equal");
    EXPECT_EQ(lines[2], "bind small to n1") << "the fourth cpu is free";
    available("room");
    later(std::chrono::seconds(20));
    step();
    const Lines after = told();
    EXPECT_EQ(std::count(after.begin(), after.end(), "bind p to n1"), 1);
}

TEST_F(RoomsTest, WithoutTheKindANominationMustDo) {
    step();
    EXPECT_EQ(told().size(), 2u);
    answer(Outcome::Refused);
    EXPECT_EQ(told(), Lines{"mark a for p"});
    gone("a");
    pending("equal", 2000, 10);
    step(1);
    EXPECT_EQ(told()[0].substr(0, 12), "refuse equal");
}

TEST_F(RoomsTest, AnUnknownAnswerIsResolvedByTheFeed) {
    step();
    EXPECT_EQ(told().size(), 2u);
    const auto hold = std::get<HoldRoom>(answered_[1]);
    answer(Outcome::Unknown);
    later(std::chrono::seconds(2));
    step();
    EXPECT_EQ(told(), (Lines{std::string("refuse p -> n1: ") + kNoRoom, "hold n1 for p"})) << "it did not happen";
    done();
    step();
    told();
    done();
    EXPECT_EQ(told(), Lines{"mark a for p"});
}

TEST_F(RoomsTest, ItGoesWithItsPod) {
    preempt();
    gone("p");
    step();
    EXPECT_EQ(told(), Lines{"drop preemption-p"});
    answer(Outcome::Unknown);
    step();
    EXPECT_EQ(told(), Lines{});
    EXPECT_EQ(scheduler_.next_wake(), now_ + std::chrono::seconds(1));
    later(std::chrono::seconds(1));
    step();
    EXPECT_EQ(told(), Lines{"drop preemption-p"});
    done();
    EXPECT_EQ(used("n1"), 4000);
}

TEST_F(RoomsTest, OneWhoseRemovalIsRefusedIsRemovedLater) {
    preempt();
    gone("p");
    step();
    ASSERT_EQ(told(), Lines{"drop preemption-p"});
    answer(Outcome::Refused);
    step();
    EXPECT_EQ(told(), Lines{});
    later(std::chrono::seconds(1));
    step();
    EXPECT_EQ(told(), Lines{"drop preemption-p"});
}

TEST_F(RoomsTest, ItGoesWhenItsPodLandsElsewhere) {
    preempt();
    node("n2", 4000);
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told(), Lines{"bind p to n2"});
    done();
    model::Pod& p = pods_.at("p");
    p.node = "n2";
    put(p);
    step();
    EXPECT_EQ(told(), Lines{"drop preemption-p"});
}

TEST_F(RoomsTest, OneThatCannotBecomeAvailableIsGivenUp) {
    preempt();
    gone("a");
    bound("static", 2000, 2000, "n1");  // somebody else put it there
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told(), (Lines{"drop preemption-p"}));
    done();
    later(std::chrono::seconds(20));
    step();
    const Lines lines = told();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].substr(0, 12), "refuse p -> ") << "and no nomination is left";
}

// A new scheduler finds what the old one left: the room waits, nobody was told to go.
TEST_F(RoomsTest, AfterACrashThoseGoWhoWereNotTold) {
    step();
    told();
    done();
    step();
    told();
    done();  // the room waits; the evictions are lost with the scheduler
    Scheduler fresh({{"berth", default_profile()}});
    auto made = std::make_shared<model::Node>();
    made->meta.name = "n1";
    made->allocatable = model::Resources{{model::kCpu, 4000}, {model::kMemory, 32LL << 30}, {model::kPods, 110}};
    fresh.put(made, now_);
    fresh.put(std::make_shared<const model::Reservation>(reservations_.at("room")), now_);
    fresh.put(std::make_shared<const model::Pod>(pods_.at("a")), now_);
    fresh.put(std::make_shared<const model::Pod>(pods_.at("p")), now_);
    auto plans = fresh.step(now_, base::Time{}, 10);
    ASSERT_EQ(plans.size(), 2u);
    EXPECT_TRUE(std::holds_alternative<RefusePod>(plans[0]));
    ASSERT_TRUE(std::holds_alternative<EvictPod>(plans[1]));
    EXPECT_EQ(std::get<EvictPod>(plans[1]).name, "a");
    EXPECT_EQ(std::get<EvictPod>(plans[1]).by, "p");
}

TEST_F(RoomsTest, OneOfAnUnknownPodIsDropped) {
    auto other = pods_.at("p");
    other.meta.uid = "other";
    base::JsonParser parser;
    const std::string text = base::to_text(model::preemption_hold_for(other, "n1"));
    auto room = model::read_reservation(*parser.parse(text));
    ASSERT_TRUE(room.ok());
    room->meta.uid = "leftover";
    reserved(*std::move(room));
    step();
    EXPECT_EQ(told().at(0), "drop preemption-other");
}

}  // namespace
}  // namespace berth::sched
