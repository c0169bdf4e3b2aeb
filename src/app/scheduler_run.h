#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "link/recorder.h"
#include "link/server.h"
#include "link/traffic.h"
#include "sched/scheduler.h"

namespace berth::app {

// The scheduler with its doors: one thread that polls the feeds, decides, and sends what was decided. Destroying it
// stops it.
class SchedulerRun {
public:
    SchedulerRun(std::unique_ptr<link::Server> server, sched::Scheduler::Profiles profiles, const base::Clock& clock);
    ~SchedulerRun();
    SchedulerRun(const SchedulerRun&) = delete;
    SchedulerRun& operator=(const SchedulerRun&) = delete;

    bool synced() const { return traffic_.synced(); }

private:
    void run();
    bool take_answers();
    void apply(const std::string& kind, const link::FeedEvent& event);
    void apply_supporting(const std::string& kind, JsonView view, bool gone);
    void carry_out(std::vector<sched::Plan> plans);

    link::Traffic<sched::Plan> traffic_;
    const base::Clock& clock_;
    sched::Scheduler scheduler_;
    link::Recorder recorder_;
    std::thread thread_;
};

}  // namespace berth::app
