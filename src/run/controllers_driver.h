#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "control/reconciler.h"
#include "link/recorder.h"
#include "link/server.h"
#include "link/traffic.h"

namespace berth::run {

// The controllers with their doors: one thread that follows what they watch, calls each for the targets that a change
// concerns, and sends what they want. A target is looked at again only when its earlier writes were answered and seen,
// so nothing is done twice. Destroying it stops it.
class ControllersDriver {
public:
    using Reconcilers = std::vector<std::unique_ptr<control::Reconciler>>;
    ControllersDriver(std::unique_ptr<link::Server> server, Reconcilers reconcilers, const base::Clock& clock);
    ~ControllersDriver();
    ControllersDriver(const ControllersDriver&) = delete;
    ControllersDriver& operator=(const ControllersDriver&) = delete;

    bool synced() const { return traffic_.synced(); }

private:
    using Job = std::pair<size_t, control::Ward>;  // which reconciler, for what
    // A target whose writes are under way, or not yet seen.
    struct Busy {
        size_t unanswered = 0;
        std::map<std::string, uint64_t> awaited;  // by resource, the revision that must have come
        bool again = false;                       // something happened meanwhile
        bool failed = false;
    };
    struct Sent {
        Job job;
        std::string resource;
        bool creates = false;
    };

    void run();
    void apply(const std::string& resource, const link::FeedEvent& event);
    bool take_answers();
    void tell_refused(const Sent& sent, const std::string& answer);
    void settle_seen();
    void wake_at(const Job& job, base::Instant at);
    void wake_due();
    bool reconcile_ready();
    void tell(const std::string& resource, const control::Object& object);
    void enqueue(const Job& job);
    void send(const Job& job, control::Actions actions);
    void finish(const Job& job);
    base::Duration longest_wait() const;

    link::Traffic<Sent> traffic_;
    link::Recorder recorder_;
    Reconcilers reconcilers_;
    const base::Clock& clock_;
    control::Objects objects_;
    std::map<std::string, std::vector<size_t>> watchers_;  // resource -> reconcilers
    std::set<Job> ready_;
    std::map<Job, Busy> busy_;
    std::vector<Job> answered_;  // of these, all that was sent; not all that came of it need have been seen
    std::map<Job, int> failures_;
    std::map<Job, base::Instant> due_at_;
    std::set<std::pair<base::Instant, Job>> due_;  // the same, by time
    std::thread thread_;
};

}  // namespace berth::run
