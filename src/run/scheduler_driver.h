#pragma once

#include <absl/container/flat_hash_map.h>

#include <memory>
#include <string>
#include <vector>

#include "ledger/intake.h"
#include "link/recorder.h"
#include "link/session.h"
#include "run/driver.h"
#include "run/extenders.h"
#include "run/scheduler_metrics.h"
#include "sched/scheduler.h"

namespace berth::run {

// The scheduler with its doors.
class SchedulerDriver final : public Driver {
public:
    struct Doors {
        std::unique_ptr<link::ApiClient> server;
        link::Wake wake;
        base::Metrics& metrics;    // outlives it
        const base::Clock& clock;  // tells how long a round took, and nothing else
        Extenders extenders = {};
    };
    SchedulerDriver(Doors doors, sched::Scheduler::Profiles profiles, const sched::SchedulerOptions& options);

    void turn(const Moment& now) override;
    base::Instant next() const override;
    void stop() override { stopping_ = true; }
    bool idle() const override { return session_.under_way() == 0; }
    bool synced() const override { return session_.synced(); }

private:
    // What was sent, and for a bind: whose it was, at which attempt, when its round of decisions began, and since when
    // the pod waited for one.
    struct Sent {
        sched::Plan plan;
        std::string profile;
        int attempts = 0;
        base::Instant since;
        base::Instant ready;
    };

    // A reservation whose template names a priority class.
    struct Classed {
        std::shared_ptr<const model::Reservation> object;
        bool told = false;  // that there is no such class
    };

    bool may_decide() const;
    bool decide();
    bool take_answers();
    void take_stored(const sched::ReadBack& read, const link::Reply& reply);
    void apply(const ledger::Kind& kind, const link::FeedEvent& event);
    void put(std::shared_ptr<const model::Reservation> reservation);
    void remove(const ledger::Kind& kind, const model::Meta& meta);
    void apply_classes();
    void carry_out(std::vector<sched::Plan> plans);
    void send(Sent sent);
    void bind_by_extender(const sched::BindPod& bind, link::ReplyTo answer);
    void count(const Sent& sent, sched::Outcome outcome);

    link::Session<Sent> session_;
    Extenders extenders_;
    sched::Scheduler scheduler_;
    absl::flat_hash_map<std::string, Classed> classed_;  // not yet in the scheduler, by uid
    link::Recorder recorder_;
    SchedulerMetrics metrics_;
    const base::Clock& clock_;
    Moment now_;  // of this turn
    base::Instant shares_told_;
    bool busy_ = false;  // in the last turn
    bool stopping_ = false;
};

}  // namespace berth::run
