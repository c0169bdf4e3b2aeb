#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "control/reconciler.h"
#include "link/bell.h"
#include "link/server.h"

namespace berth::app {

// The controllers with their doors: one thread that follows what they watch, calls each for the targets that a change
// concerns, and sends what they want. A target is looked at again only when its earlier writes were answered and seen,
// so nothing is done twice. Destroying it stops it.
class ControllersRun {
public:
    using Reconcilers = std::vector<std::unique_ptr<control::Reconciler>>;
    ControllersRun(std::unique_ptr<link::Server> server, Reconcilers reconcilers, const base::Clock& clock);
    ~ControllersRun();
    ControllersRun(const ControllersRun&) = delete;
    ControllersRun& operator=(const ControllersRun&) = delete;

private:
    using Job = std::pair<size_t, control::Ward>;  // which reconciler, for what
    struct Followed {
        std::string resource;
        std::unique_ptr<link::Feed> feed;
        bool synced = false;
        uint64_t seen = 0;  // the newest revision that came
    };
    // A target whose writes are under way, or not yet seen.
    struct Busy {
        size_t unanswered = 0;
        std::map<std::string, uint64_t> awaited;  // by resource, the revision that must have come
        bool again = false;                       // something happened meanwhile
        bool failed = false;
    };
    struct Answer {
        Job job;
        std::string resource;
        Result<link::Reply> reply;
    };

    void run();
    bool poll_feeds();
    bool take_answers();
    void settle_seen();
    void wake_at(const Job& job, base::Instant at);
    void wake_due();
    bool reconcile_ready();
    void tell(const std::string& resource, const control::Object& object);
    void enqueue(const Job& job);
    void send(const Job& job, control::Actions actions);
    void finish(const Job& job);
    bool synced() const;
    base::Duration longest_wait() const;

    std::unique_ptr<link::Server> server_;
    Reconcilers reconcilers_;
    const base::Clock& clock_;
    control::Objects objects_;
    link::Bell bell_;
    std::vector<Followed> followed_;
    std::map<std::string, std::vector<size_t>> watchers_;  // resource -> reconcilers
    std::set<Job> ready_;
    std::map<Job, Busy> busy_;
    std::map<Job, int> failures_;
    std::map<Job, base::Instant> due_at_;
    std::set<std::pair<base::Instant, Job>> due_;  // the same, by time
    std::mutex answers_mutex_;
    std::vector<Answer> answers_;
    size_t under_way_ = 0;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

}  // namespace berth::app
