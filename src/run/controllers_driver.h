#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "control/eviction_pace.h"
#include "control/reconciler.h"
#include "link/recorder.h"
#include "link/session.h"
#include "run/driver.h"

namespace berth::run {

// Controllers with their doors: follows what they watch or count, calls each for the targets that a change concerns,
// and sends what they want. A target is looked at again only when its earlier writes were answered and seen, so nothing
// is done twice.
class ControllersDriver final : public Driver {
public:
    struct Doors {
        std::unique_ptr<link::ApiClient> server;
        link::Wake wake;
        base::Metrics& metrics;  // of reservations, where somebody counts
        std::string component;   // who speaks in events
    };
    using Reconcilers = std::vector<std::unique_ptr<control::Reconciler>>;
    ControllersDriver(Doors doors, Reconcilers reconcilers, const control::EvictionPace& pace = {});
    ~ControllersDriver() override;
    ControllersDriver(const ControllersDriver&) = delete;
    ControllersDriver& operator=(const ControllersDriver&) = delete;

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
        bool moved_on = false;                    // a write came too late: what it was about had changed
        bool failed = false;                      // for another reason
    };
    struct Sent {
        Job job;
        std::string resource;
        bool creates = false;
        std::optional<model::Event> event;
    };
    // What a scrape reads, on a thread of its own: the ledger is looked at under the lock, and not after our end.
    struct Shown {
        std::mutex mutex;
        const ledger::View* ledger = nullptr;
    };
    using Watchers = std::vector<size_t>;  // reconcilers

    void count_for(size_t reconciler);
    void pass_time();
    void show_ledger(base::Metrics& metrics);
    void apply(const std::string& resource, const link::FeedEvent& event);
    void apply_document(const std::string& resource, const Watchers& watchers, const link::FeedEvent& event);
    void apply_count(const std::string& resource, const ledger::Kind& kind, const link::FeedEvent& event);
    void tell_unreadable(const ledger::Kind& kind, const link::FeedEvent& event, const Error& error);
    bool take_answers();
    void tell_refused(const Sent& sent, const std::string& answer);
    void release_seen();
    void wake_at(const Job& job, base::Instant at);
    void wake_due();
    bool reconcile_ready();
    void notify(const Watchers& watchers, const std::string& resource, const control::Object& object);
    void enqueue(const Job& job);
    void send(const Job& job, model::Writes writes);
    void finish(const Job& job);

    link::Session<Sent> session_;
    link::Recorder recorder_;
    Reconcilers reconcilers_;
    control::Objects objects_;
    std::map<std::string, Watchers> watchers_;            // by the resource whose documents they read
    std::map<std::string, const ledger::Kind*> counted_;  // what goes into the ledger, by resource
    Watchers counters_;                                   // who reads it
    std::set<Job> ready_;
    std::map<Job, Busy> busy_;
    std::vector<Job> answered_;  // of these, all that was sent; not all that came of it need have been seen
    std::map<Job, int> failures_;
    std::map<Job, base::Instant> due_at_;
    std::set<std::pair<base::Instant, Job>> due_;  // the same, by time
    std::shared_ptr<Shown> shown_ = std::make_shared<Shown>();
    control::EvictionTokens tokens_;
    Moment now_;           // of this turn
    bool active_ = false;  // in the last turn
    bool stopping_ = false;
};

}  // namespace berth::run
