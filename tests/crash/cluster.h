#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "control/reconciler.h"
#include "judge.h"
#include "sched/scheduler.h"
#include "small_server.h"

namespace berth::crash {

// Something that follows kinds of objects of a server, a few events at a time.
class Follower {
public:
    Follower(SmallServer& server, const std::vector<std::pair<std::string, link::Resource>>& sources);
    // Delivers at most so many events of each kind; false when there were none.
    using Apply = std::function<void(const std::string& kind, const link::FeedEvent&)>;
    bool poll(size_t most, const Apply& apply);
    // A few events of one kind: each kind has a watch of its own, and any of them may be behind.
    void poll_one(base::Random& random, const Apply& apply);
    // The newest revision that was told of a kind.
    uint64_t seen(const std::string& kind) const;

private:
    struct Followed {
        std::string kind;
        std::unique_ptr<link::Feed> feed;
        uint64_t seen = 0;
    };
    static bool poll(Followed& from, size_t most, const Apply& apply);
    std::vector<Followed> feeds_;
};

// What happens to a request on its way.
enum class Fate : uint8_t {
    Answered,      // it is carried out, and the answer comes
    AnswerLost,    // it is carried out, and nobody knows
    Lost,          // it is not, and nobody knows
    DieBefore,     // the scheduler dies; the request is lost
    DieAfter,      // it is carried out, and the scheduler dies before it hears of it
    DieThenLater,  // the scheduler dies; the request arrives when the next one is at work (see Cluster::kill)
};

// Embedded: the guard judges each bind in its transaction, which ends the reservation too. Plain: a kube-apiserver with
// its preconditions and nothing else, so reservations are claimed first.
enum class ServerKind : uint8_t { Embedded, Plain };

// A cluster of which the scheduler can be killed between any two of its requests. What is stored is all that survives.
class Cluster {
public:
    explicit Cluster(ServerKind kind);

    void node(const std::string& name, int cpu);
    void pod(const std::string& name, int cpu, int priority, const std::string& app, const std::string& node = "",
             const std::string& claim = "");
    void claim(const std::string& name);
    void reservation(const std::string& name, int cpu, const std::string& owner, bool once,
                     bool pre_allocation = false);
    void delete_pod(const std::string& name);
    void delete_reservation(const std::string& name);

    // One round of the scheduler; `fate` is asked about each request that leaves.
    void schedule(const std::function<Fate()>& fate);
    // Its requests that wait to be sent, in order.
    bool idle() const { return outbox_.empty(); }
    // What it had decided and not yet sent dies with it. What is on the way to a plain server arrives before the next
    // one has listed, or never: that is what the lease is for.
    void kill();

    // See disorder.cc. One thing that happens next: a watch tells a little, the scheduler decides or the controllers
    // do, some request is carried out, some answer comes, or is lost, or a request is; one of them dies.
    void disorder(base::Random& random);
    // Everything that is on its way arrives.
    void calm_down();
    // Some pods end while the controllers are away: the scheduler alone has seen that they were bound.
    void controllers_miss_the_end(base::Random& random);
    // Requests of dead schedulers arrive.
    void deliver_late();
    void run_controllers();
    // Pods that are ending are gone.
    void end_pods();
    void later(base::Duration by);

    // Runs without trouble until nothing changes any more; false when that does not come.
    bool settle();
    // What must hold whatever happened; empty: it does.
    std::string broken() const { return judge_.verdict(); }
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
    // A request on its way, then its answer on the way back.
    struct Flight {
        std::optional<sched::Plan> plan;  // none: of the controllers, who do not care for the answer
        link::Request request;
        std::optional<link::Reply> reply;
    };
    void start();
    void start_controllers();
    Follower::Apply controllers_apply();
    void take_off();
    void carry_out(Flight& flight);
    void answer(Flight flight, bool lost);
    void lose(base::Random& random);
    void die(base::Random& random);
    std::vector<size_t> flights(bool carried_out) const;
    bool controllers_wait() const;
    void apply(const std::string& kind, const link::FeedEvent& event);
    void take(std::vector<sched::Plan> plans);
    void hear(const sched::Plan& plan, const Result<link::Reply>& reply);
    ledger::Ledger stored() const;
    std::vector<link::Request> reservation_writes();
    void reconcile_objects();

    ServerKind kind_;
    SmallServer server_;
    Judge judge_;
    base::Instant now_{1'000'000'000};
    base::Time wall_{1'767'225'600'000'000'000};
    std::unique_ptr<sched::Scheduler> scheduler_;
    std::unique_ptr<Follower> feed_;
    std::deque<Sent> outbox_;
    std::vector<Sent> late_;
    std::vector<Flight> flights_;
    control::Objects controllers_view_;  // what is counted, for those of reservations
    std::unique_ptr<Follower> controllers_feed_;
    std::vector<std::unique_ptr<control::Reconciler>> reservation_controllers_;
    control::Objects objects_;
    Follower objects_feed_;
    std::vector<std::unique_ptr<control::Reconciler>> reconcilers_;
    size_t requests_ = 0;
};

}  // namespace berth::crash
