#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "link/bell.h"
#include "link/recorder.h"
#include "link/server.h"
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

private:
    struct Followed {
        std::string kind;
        std::unique_ptr<link::Feed> feed;
        bool synced = false;
    };
    struct Answer {
        sched::Plan plan;
        Result<link::Reply> reply;
    };

    void run();
    bool poll_feeds();
    bool take_answers();
    void apply(const std::string& kind, const link::FeedEvent& event);
    void apply_supporting(const std::string& kind, JsonView view, bool gone);
    void carry_out(std::vector<sched::Plan> plans);

    std::unique_ptr<link::Server> server_;
    const base::Clock& clock_;
    sched::Scheduler scheduler_;
    link::Recorder recorder_;
    link::Bell bell_;
    std::vector<Followed> followed_;
    std::mutex answers_mutex_;
    std::vector<Answer> answers_;
    size_t under_way_ = 0;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

}  // namespace berth::app
