#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "control/ages.h"
#include "control/reconciler.h"
#include "sched/scheduler.h"
#include "small_server.h"

namespace berth::crash {

// Something that follows kinds of objects of a server, a few events at a time.
class Follower {
public:
    Follower(SmallServer& server, const std::vector<std::pair<std::string, link::Resource>>& sources);
    // Delivers at most so many events of each kind; false when there were none.
    bool poll(size_t most, const std::function<void(const std::string& kind, const link::FeedEvent&)>& apply);

private:
    std::vector<std::pair<std::string, std::unique_ptr<link::Feed>>> feeds_;
};

// What happens to a request on its way.
enum class Fate : uint8_t {
    Answered,      // it is carried out, and the answer comes
    AnswerLost,    // it is carried out, and nobody knows
    Lost,          // it is not, and nobody knows
    DieBefore,     // the scheduler dies; the request is lost
    DieAfter,      // it is carried out, and the scheduler dies before it hears of it
    DieThenLater,  // the scheduler dies; the request arrives when the next one is at work
};

// A cluster of which the scheduler can be killed between any two of its requests. What is stored is all that survives.
class Cluster {
public:
    // Claims first: as before a server that does not end an allocateOnce reservation with the bind.
    explicit Cluster(bool claims_first);

    void node(const std::string& name, int cpu);
    void pod(const std::string& name, int cpu, int priority, const std::string& app, const std::string& node = "",
             const std::string& claim = "");
    void claim(const std::string& name);
    void reservation(const std::string& name, int cpu, const std::string& owner, bool once);
    void delete_pod(const std::string& name);

    // One round of the scheduler; `fate` is asked about each request that leaves.
    void schedule(const std::function<Fate()>& fate);
    // Its requests that wait to be sent, in order.
    bool idle() const { return outbox_.empty(); }
    void kill();
    // Requests of dead schedulers arrive.
    void deliver_late();
    void run_controllers();
    // Pods that are ending are gone.
    void end_pods();
    void later(base::Duration by);

    // Runs without trouble until nothing changes any more; false when that does not come.
    bool settle();
    // What must hold whatever happened; empty: it does.
    std::string broken() const { return broken_; }
    // What must hold when everything has settled.
    std::string unsettled();

    size_t requests() const { return requests_; }
    std::string node_of(const std::string& pod) const;
    std::vector<std::string> names(const std::string& kind) const;

private:
    struct Sent {
        sched::Plan plan;
        link::Request request;
    };
    void start();
    void apply(const std::string& kind, const link::FeedEvent& event);
    void take(std::vector<sched::Plan> plans);
    void hear(const sched::Plan& plan, const Result<link::Reply>& reply);
    void check();
    ledger::Ledger stored() const;
    void reconcile_reservations();
    void reconcile_objects();

    SmallServer server_;
    bool claims_first_;
    base::Instant now_{1'000'000'000};
    base::Time wall_{1'767'225'600'000'000'000};
    std::unique_ptr<sched::Scheduler> scheduler_;
    std::unique_ptr<Follower> feed_;
    std::deque<Sent> outbox_;
    std::vector<Sent> late_;
    ledger::Ledger controllers_view_;
    Follower controllers_feed_;
    control::Ages ages_;
    control::Objects objects_;
    Follower objects_feed_;
    std::vector<std::unique_ptr<control::Reconciler>> reconcilers_;
    size_t requests_ = 0;
    std::string broken_;
    std::map<std::string, std::string> placed_;             // pod uid -> node, for ever
    std::map<std::string, std::set<std::string>> drawers_;  // allocateOnce reservation uid -> pods ever bound to it
};

}  // namespace berth::crash
