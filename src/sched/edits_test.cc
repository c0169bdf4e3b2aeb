// Whatever is edited and can change an answer is looked at at once.
#include "sched/live_test.h"

namespace berth::sched {
namespace {

using std::chrono::seconds;

class EditsTest : public LiveTest {
protected:
    EditsTest() : LiveTest({.holds_rooms = false}) { node("n1", 4000); }
    // Until it sleeps, and has no backoff to sit out.
    void waits() {
        step();
        told();
        done();
        later(seconds(20));
        step();
        told();
    }
    bool tried() {
        const int before = scheduler_.queue().attempts("r");
        step();
        told();
        return scheduler_.queue().attempts("r") != before;
    }
};

TEST_F(EditsTest, APendingReservationIsTriedAfterEveryEditThatCounts) {
    struct Edit {
        const char* what;
        void (*make)(model::Reservation&);
    };
    const Edit edits[] = {
        {"preAllocation", [](auto& r) { r.pre_allocation = true; }},
        {"allocatePolicy", [](auto& r) { r.policy = model::AllocatePolicy::Aligned; }},
        {"allocateOnce", [](auto& r) { r.allocate_once = false; }},
        {"owners", [](auto& r) { r.owners.emplace_back().object.emplace().name = "w9"; }},
        {"unschedulable", [](auto& r) { r.unschedulable = true; }},
        {"taints", [](auto& r) { r.taints.push_back({"k", "v", "NoSchedule"}); }},
        {"ttl", [](auto& r) { r.ttl = std::chrono::hours(7); }},
        {"expires", [](auto& r) { r.expires = base::Time{1} + std::chrono::hours(9); }},
        {"labels", [](auto& r) { r.meta.labels.set("pool", "a"); }},
        {"order", [](auto& r) { r.order = 7; }},
        {"restricted-options", [](auto& r) { r.restricted = {model::kCpu}; }},
        {"held back", [](auto& r) { r.held_back.set(model::kCpu, 1); }},
        {"the template's labels", [](auto& r) { r.template_labels.set("app", "web"); }},
    };
    model::Reservation object = reservation("r", 9000, {"w1"});
    reserved(object);
    waits();
    for (const Edit& edit : edits) {
        EXPECT_FALSE(tried()) << "before " << edit.what;
        edit.make(object);
        static_cast<model::ReservationStatus&>(object) = reservations_.at("r");
        reserved(object);
        EXPECT_TRUE(tried()) << edit.what;
        done();
        later(seconds(20));
    }
    EXPECT_FALSE(tried());
    static_cast<model::ReservationStatus&>(object) = reservations_.at("r");
    reserved(object);
    EXPECT_FALSE(tried()) << "the same once more";
}

// The second owner of an equal reusable reservation is refused; other owners are another purpose.
TEST_F(EditsTest, AnEditedPendingReservationIsPlacedAtOnce) {
    model::Reservation first = reservation("first", 1000, {"w1"});
    first.allocate_once = false;
    reserved_on("n1", first);
    model::Reservation object = reservation("r", 1000, {"w1"});
    object.allocate_once = false;
    reserved(object);
    step();
    EXPECT_EQ(told(),
              Lines{"reserve r: 0/1 nodes are available: 1 node(s) already had the same reusable reservation."});
    done();
    object.owners.emplace_back().object.emplace().name = "w2";
    reserved(object);
    step();
    EXPECT_EQ(told(), Lines{"reserve r: Successfully reserved on n1"});
}

TEST_F(EditsTest, WhoMayPreAllocateNowWaitsAtOnce) {
    bound("a", 3000, 0, "n1");
    model::Reservation object = reservation("r", 2000, {"w1"});
    reserved(object);
    step();
    EXPECT_EQ(told().size(), 1u);
    done();
    object.pre_allocation = true;
    reserved(object);
    step();
    EXPECT_EQ(told(), Lines{"reserve r: Successfully reserved on n1"});
}

// An owner that has failed often sits out a long backoff; what opens to it ends that.
TEST_F(EditsTest, AnEditOfAnAvailableOneBringsItsOwnersAtOnce) {
    struct Edit {
        const char* what;
        void (*close)(model::Reservation&);
        void (*open)(model::Reservation&);
    };
    const Edit edits[] = {
        {"unschedulable", [](auto& r) { r.unschedulable = true; }, [](auto& r) { r.unschedulable = false; }},
        {"owners", [](auto& r) { r.owners[0].object->name = "w8"; }, [](auto& r) { r.owners[0].object->name = "w1"; }},
        {"taints", [](auto& r) { r.taints.push_back({"k", "v", "NoSchedule"}); }, [](auto& r) { r.taints.clear(); }},
        {"what is held back", [](auto& r) { r.held_back.set(model::kCpu, 4000); }, [](auto& r) { r.held_back = {}; }},
        {"whom it is for, now others: the node is open",
         [](auto& r) {
             r.policy = model::AllocatePolicy::Restricted;
             r.spec = reservation("r", 500, {}).spec;
         },
         [](auto& r) { r.owners[0].object->name = "w8"; }},
    };
    for (const Edit& edit : edits) {
        model::Reservation object = reservation("r", 4000, {"w1"});
        object.allocate_once = false;
        edit.close(object);
        reserved_on("n1", object);
        pending("w1", 1000, 0);
        for (int i = 0; i < 5; ++i) {
            step();
            EXPECT_EQ(told().size(), i == 0 ? 1u : 0u) << edit.what;
            reserved_on("n1", object);  // its status changed, in vain
            later(seconds(1));
        }
        step();
        told();
        edit.open(object);
        reserved_on("n1", object);
        step();
        EXPECT_EQ(told(), Lines{"bind w1 to n1"}) << edit.what;
        gone("w1");
        reservation_gone("r");
    }
}

}  // namespace
}  // namespace berth::sched
