#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "model/allocated.h"
#include "sched/live_test.h"

namespace berth::sched {

using std::chrono::seconds;

// A node n1, and pods that preempt there.
class PreemptorsTest : public LiveTest {
protected:
    explicit PreemptorsTest(SchedulerOptions options = {}) : LiveTest(std::move(options)) { node("n1", 4000); }

    model::PodSpec& spec_of(model::Pod& pod) {
        auto spec = std::make_shared<model::PodSpec>(*pod.spec);
        pod.spec = spec;
        return *spec;
    }
    void port(model::PodSpec& spec) { spec.ports.push_back({8080, model::Protocol::TCP, "0.0.0.0"}); }
    // A reservation of the highest priority, as they are by default.
    void hungry(int64_t cpu_milli, const std::function<void(model::Reservation&)>& more = {}) {
        model::Reservation made = reservation("hungry", cpu_milli, {"nobody"});
        if (more) more(made);
        reserved(std::move(made));
    }
    // Bound inside the reservation.
    void draws(const std::string& from, const std::string& name, int64_t cpu_milli, int32_t priority) {
        model::Pod& pod = make(name, cpu_milli, priority);
        pod.node = "n1";
        pod.meta.annotations.set(model::kReservationAllocated, fmt::format(R"({{"name":"{0}","uid":"{0}"}})", from));
        put(pod);
    }
    bool placed(const std::string& uid) const { return !reservations_.at(uid).node.empty(); }
    // Everything that is planned is done, until nothing is planned any more.
    void settle() {
        for (int i = 0; i < 20; ++i) {
            step();
            for (const auto& line : told()) said_.push_back(line);
            if (answered_.empty()) return;
            done();
        }
        ADD_FAILURE() << "it does not come to rest";
    }
    bool said(const std::string& line) const { return std::find(said_.begin(), said_.end(), line) != said_.end(); }
    // The pod preempts: a room stands before its victim goes. Reservations and others wait around it.
    void takes_the_room_of_a() {
        settle();
        ASSERT_TRUE(said("hold n1 for p"));
        ASSERT_TRUE(said("delete a for p"));
        EXPECT_TRUE(placed("room"));
        terminating("a");
        settle();
        EXPECT_FALSE(placed("hungry"));
        gone("a");
        settle();
        EXPECT_FALSE(placed("hungry"));
        later(seconds(20));
        settle();
        EXPECT_FALSE(placed("hungry"));
        available("room");
        settle();
        EXPECT_TRUE(said("bind p to n1"));
        EXPECT_FALSE(placed("hungry"));
    }
    Lines said_;
};

}  // namespace berth::sched
