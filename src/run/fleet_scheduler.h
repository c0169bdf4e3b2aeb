#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "fleet/placing.h"
#include "fleet/round.h"
#include "link/recorder.h"
#include "link/session.h"
#include "run/agenda.h"
#include "run/driver.h"
#include "run/fleet_feeds.h"
#include "run/fleet_metrics.h"
#include "run/pool_lease.h"

namespace berth::run {

// The scheduler of one layer of pools: folds what the pools say of each Reservation, asks them in waves, and gives each
// Machine its pool.
class FleetScheduler final : public Driver {
public:
    struct Doors {
        std::unique_ptr<link::ApiClient> server;
        link::Wake wake;
        base::Metrics* metrics = nullptr;
    };
    FleetScheduler(Doors doors, fleet::RoundRules rules);

    void turn(const Moment& now) override;
    base::Instant next() const override { return next_; }
    void stop() override { stopping_ = true; }
    bool idle() const override { return session_.under_way() == 0; }
    bool synced() const override { return session_.synced(); }

private:
    struct Held {
        fleet::Reservation object;
        fleet::RoundMemory memory;
        base::Instant came;
        bool counted = false;  // its decision
    };
    struct Placed {
        fleet::Machine object;
        fleet::PlacingMemory memory;
        base::Instant came;
        std::string said;  // what people heard last
    };
    // By "resource namespace/name", as Pace has it.
    struct Sent {
        std::string key;
        std::string machine = {};  // whose event is told when it took effect
        std::string reason = {};
        std::string message = {};
        bool creates = false;
        uint64_t revision = 0;  // that it was decided about, where another one refuses it
    };

    void take(const std::string& resource, const link::FeedEvent& event);
    void take_reservation(const std::string& resource, const std::string& key, const Json* document);
    void take_machine(const std::string& key, const Json* document);
    void answered(const Sent& sent, const Result<link::Reply>& reply);
    void time_replies(const Held* before, const fleet::Reservation& after);
    void wake_all();
    void look(const std::string& lineage);
    fleet::Round round_of(Held& held, const std::string& key, bool leave_asking);
    void act(Placed& machine, Held* held, const std::string& held_key, const fleet::Step& step);
    void reserve(Placed& machine);
    void warn(Placed& machine, const std::string& reason, const std::string& words);
    void let_go(const fleet::Machine& machine);
    std::optional<base::Instant> pool_gone(const std::string& pool);
    void mark_silent_pools();
    bool drop_vanished(const Held& held, const std::string& key);
    void ask(const Held& held, const std::string& key, Json body);
    void tell_report(Held& held, const std::string& key, const model::HoldAnswer& answer);
    void send(model::Write write, Sent sent);
    void look_again(const std::string& lineage, std::optional<base::Instant> at);
    std::pair<std::string, Held*> held_for(const std::string& lineage);

    link::Session<Sent> session_;
    link::Recorder recorder_;
    const fleet::RoundRules rules_;
    Pace pace_;
    std::map<std::string, Held> held_;
    std::map<std::string, Placed> machines_;
    std::map<std::string, fleet::MachineClass> classes_;
    std::vector<fleet::Pool> pools_;
    PoolPulses pulses_;
    std::map<std::string, base::Instant> gone_;                // pools that Machines name and nobody has, since when
    std::map<std::string, std::set<std::string>> by_lineage_;  // reservations
    std::map<std::string, std::string> machine_by_lineage_;
    Agenda agenda_;  // lineages
    fleet::ReplyTimes times_;
    std::unique_ptr<LayerMetrics> metrics_;
    Moment now_;
    base::Instant next_;
    bool stopping_ = false;
};

}  // namespace berth::run
