#pragma once

#include <absl/container/flat_hash_map.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "ledger/intake.h"
#include "link/recorder.h"
#include "link/server.h"
#include "link/traffic.h"
#include "run/extenders.h"
#include "run/scheduler_metrics.h"
#include "sched/scheduler.h"

namespace berth::run {

// The scheduler with its doors: one thread that polls the feeds, decides, and sends what was decided. Destroying it
// stops it.
class SchedulerDriver {
public:
    // The metrics must outlive it.
    SchedulerDriver(std::unique_ptr<link::Server> server, sched::Scheduler::Profiles profiles, const base::Clock& clock,
                    base::Metrics& metrics, const sched::SchedulerOptions& options, Extenders extenders);
    ~SchedulerDriver();
    SchedulerDriver(const SchedulerDriver&) = delete;
    SchedulerDriver& operator=(const SchedulerDriver&) = delete;

    bool synced() const { return traffic_.synced(); }

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
        model::Reservation object;
        std::string named;
        bool told = false;  // that there is no such class
    };

    void run();
    bool may_decide() const;
    bool decide();
    bool take_answers();
    void take_stored(const sched::ReadBack& read, const link::Reply& reply);
    void apply(const std::string& kind, const link::FeedEvent& event);
    void apply_reservation(JsonView view, const link::FeedEvent& event);
    void apply_class(JsonView view, const link::FeedEvent& event);
    void settle_classes();
    void apply_supporting(const std::string& kind, JsonView view, const link::FeedEvent& event);
    void keep_document(const std::string& kind, const model::Meta& meta, const link::FeedEvent& event);
    void carry_out(std::vector<sched::Plan> plans, base::Instant since);
    void send(Sent sent);
    void bind_by_extender(const sched::BindPod& bind, link::ReplyTo answer);
    void count(const Sent& sent, sched::Outcome outcome);

    link::Traffic<Sent> traffic_;
    Extenders extenders_;
    const base::Clock& clock_;
    sched::Scheduler scheduler_;
    ledger::PriorityClasses classes_;
    absl::flat_hash_map<std::string, Classed> classed_;  // not yet in the scheduler, by uid
    link::Recorder recorder_;
    SchedulerMetrics metrics_;
    std::thread thread_;
};

}  // namespace berth::run
