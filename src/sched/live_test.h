#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "ledger/intake.h"
#include "sched/scheduler.h"

namespace berth::sched {

using Lines = std::vector<std::string>;

// A live scheduler whose server is the test: events by hand, plans as lines of text.
class LiveTest : public testing::Test {
protected:
    explicit LiveTest(SchedulerOptions options = {}, Scheduler::Profiles profiles = {{"berth", default_profile()}});
    ~LiveTest() override;

    void node(const std::string& name, int64_t cpu_milli);
    model::Pod& make(const std::string& name, int64_t cpu_milli, int32_t priority);
    void put(const model::Pod& pod) { scheduler_.put(std::make_shared<const model::Pod>(pod), now_); }
    void bound(const std::string& name, int64_t cpu_milli, int32_t priority, const std::string& on);
    void pending(const std::string& name, int64_t cpu_milli, int32_t priority, const std::string& nominated = "",
                 bool never_preempts = false);
    void terminating(const std::string& name);
    void gone(const std::string& name) { remove("Pod", name); }
    void reservation_gone(const std::string& uid) { remove("Reservation", uid); }
    void later(base::Duration by) {
        now_ = now_ + by;
        wall_ = wall_ + by;
    }

    // What is written to a pod's status is answered at once.
    void step(size_t most = 100);
    // What was planned since the last answer, as text.
    Lines told();
    // Everything that told() told was carried out so; what follows from that is planned.
    void answer(Outcome outcome);
    void done() { answer(Outcome::Done); }
    int64_t used(const std::string& node) const;

    // Pending, for pods of these names.
    static model::Reservation reservation(const std::string& name, int64_t cpu_milli,
                                          const std::vector<std::string>& owners);
    void reserved(model::Reservation object);
    // The same, placed already.
    void reserved_on(const std::string& node, model::Reservation object);
    // It waited for room, and that is stored to be there.
    void available(const std::string& uid);

    base::Instant now_{1};
    base::Time wall_{};
    Scheduler scheduler_;
    std::map<std::string, model::Pod> pods_;
    std::map<std::string, model::Reservation> reservations_;
    uint64_t revision_ = 0;
    std::vector<Plan> plans_;
    std::vector<Plan> answered_;

private:
    // The feed brings what was written.
    void remove(std::string_view kind, const std::string& uid) {
        scheduler_.remove(*ledger::kind_named(kind), ledger::uid_alone(uid), now_);
    }
    void seen(const Plan& plan, Outcome outcome);
    void stored(const auto&) {}
    void stored(const RefusePod& refuse);
    void stored(const HoldRoom& hold);
    void stored(const DropRoom& drop);
    void stored(const WriteReservation& write);
    void stored(const ClaimReservation& claim);
    void stored(const OpenReservation& open);
    void write_status(const std::string& uid, const model::ReservationStatus& status);
};

}  // namespace berth::sched
