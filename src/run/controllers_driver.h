#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "control/reconciler.h"
#include "link/recorder.h"
#include "link/session.h"
#include "run/driver.h"

namespace berth::run {

// The controllers with their doors: follows what they watch, calls each for the targets that a change concerns, and
// sends what they want. A target is looked at again only when its earlier writes were answered and seen, so nothing is
// done twice.
class ControllersDriver final : public Driver {
public:
    using Reconcilers = std::vector<std::unique_ptr<control::Reconciler>>;
    ControllersDriver(std::unique_ptr<link::ApiClient> server, link::Wake wake, Reconcilers reconcilers);

    void turn(const Moment& now) override;
    base::Instant next() const override;
    void stop() override { stopping_ = true; }
    bool idle() const override { return session_.under_way() == 0; }
    bool synced() const override { return session_.synced(); }

private:
    using Job = std::pair<size_t, control::Key>;  // which reconciler, for what
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

    link::Session<Sent> session_;
    link::Recorder recorder_;
    Reconcilers reconcilers_;
    control::Objects objects_;
    std::map<std::string, std::vector<size_t>> watchers_;  // resource -> reconcilers
    std::set<Job> ready_;
    std::map<Job, Busy> busy_;
    std::vector<Job> answered_;  // of these, all that was sent; not all that came of it need have been seen
    std::map<Job, int> failures_;
    std::map<Job, base::Instant> due_at_;
    std::set<std::pair<base::Instant, Job>> due_;  // the same, by time
    Moment now_;                                   // of this turn
    bool active_ = false;                          // in the last turn
    bool stopping_ = false;
};

}  // namespace berth::run
