#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/random.h"
#include "fleet/best_effort.h"
#include "fleet/objects.h"
#include "fleet/translate.h"
#include "link/machine_runtime.h"
#include "link/recorder.h"
#include "link/session.h"
#include "run/agenda.h"
#include "run/driver.h"
#include "run/fleet_feeds.h"
#include "run/inbox.h"
#include "run/pool_lease.h"

namespace berth::run {

struct PoolletOptions {
    std::string pool;
    Labels labels;            // of its MachinePool
    std::string provider_id;  // what is below, for people
    bool publish_amounts = false;
};

// What connects one pool of a layer with what is below it: Reservations and Machines go down, what is said of them
// comes up. It keeps nothing: all is in the objects above and in the runtime below, and is compared every 30 s both
// ways.
class Poollet final : public Driver {
public:
    struct Doors {
        std::unique_ptr<link::ApiClient> server;
        std::shared_ptr<link::MachineRuntime> runtime;  // of what is below
        link::Wake wake;
        base::Metrics* metrics = nullptr;
    };
    Poollet(Doors doors, PoolletOptions options);
    ~Poollet() override;

    void turn(const Moment& now) override;
    base::Instant next() const override { return next_; }
    void stop() override { stopping_ = true; }
    bool idle() const override { return session_.under_way() == 0 && calls_ == 0; }
    bool synced() const override { return session_.synced() && pool_seen_; }

private:
    static constexpr base::Duration kRenewEvery = std::chrono::seconds(10);
    static constexpr const char* kPoolLabel = "berth.dev/pool";  // below: which pool above brought it
    using Answer = Result<model::IriReservation>;
    // A Reservation of the layer, as far as this pool is concerned.
    struct Held {
        fleet::Reservation object;
        std::string id;  // below; "" as long as it is not there
        std::optional<model::HoldAnswer> answer;
        std::string epoch;
        uint64_t sequence = 0;
        uint64_t behind = 0;      // replies one after another that were older
        base::Instant raised_at;  // when the sequence grew
        std::string trouble;      // what was logged last
        bool calling = false;
        bool gone = false;      // above
        base::Instant came_at;  // its id from below
        base::Instant renew_at;
        base::Instant retry_at;
        uint64_t failures = 0;
    };
    struct Placed {
        fleet::Machine object;
        Json document;
        std::string id;  // below
        std::optional<model::IriMachine> below;
        std::optional<std::string> ignition = {};  // read of its secret, until it is below
        bool calling = false;
        bool gone = false;      // above
        bool removed = false;   // below
        base::Instant came_at;  // below
        base::Instant retry_at;
        uint64_t failures = 0;
        std::string said;
    };
    struct Sent {
        std::string key;
        std::string ignition_of = {};  // a uid: no write
        bool lease = false;            // our own
    };

    void follow(const std::string& feed, const std::string& resource, std::string fields, std::string labels);
    void take(const std::string& feed, const link::FeedEvent& event);
    void take_reservation(const std::string& feed, const std::string& resource, const Json& document, bool put);
    void take_machine(const std::string& feed, const Json& document, bool put);
    std::string appear(const std::string& feed, const std::string& place, const std::string& uid);
    std::string vanish(const std::string& feed, const std::string& place, const std::string& uid);
    void note_pace(const std::string& place, bool put, uint64_t revision);
    void answered(const Sent& sent, const Result<link::Reply>& reply);
    void send(const std::string& key, model::Write write);
    void work();
    void look_at_all();
    void keep_pool();
    void keep_lease();
    void make_pool(const std::string& key);
    void ask_version();
    JsonObject amounts_of(const std::vector<model::IriClassStatus>& classes, bool allocatable) const;
    void keep_watch();
    void tell_pool(const model::Meta& meta, bool ready, const std::vector<model::IriClassStatus>& classes);

    // Reservations.
    bool concerns(const fleet::Reservation& reservation) const;
    void work_on(const std::string& uid, Held& held);
    bool ended(const Held& held) const;
    void hold(const std::string& uid, Held& held);
    void release(const std::string& uid, Held& held);
    void released(Held& held);
    void look_after(const std::string& uid, Held& held);
    void heard(const std::string& uid, Answer answer);
    void log_trouble(Held& held, const Error& error);
    void take_answer(Held& held, const model::IriReservation& below);
    void write_entry(Held& held);

    // Machines.
    void work_on(const std::string& uid, Placed& placed);
    void bring(const std::string& uid, Placed& placed);
    bool has_ignition(const std::string& uid, Placed& placed);
    void take_ignition(const std::string& uid, const Result<link::Reply>& reply);
    void take_away(const std::string& uid, Placed& placed);
    bool update(const std::string& uid, Placed& placed);
    void updated(const std::string& uid, const fleet::MachineUpdate& done, const Result<bool>& answer);
    void write_machine(Placed& placed, bool settled);
    void set_finalizer(Placed& placed, bool there);
    void say(Placed& placed, bool warning, const std::string& reason, const std::string& words);
    void changed_below(const link::RuntimeChange& change);
    void compare();
    void take_lists(const std::vector<model::IriReservation>& reservations, base::Instant asked_at);
    void hold_best_effort(Held& held);
    void place_best_effort(const Placed& placed);
    void take_lists(const std::vector<model::IriMachine>& machines);
    void later(base::Instant at) { next_ = std::min(next_, at); }
    base::Duration pause(uint64_t failures) const;

    template <class T, class Take>
    link::Answered<T> expect(Take take) {
        ++calls_;
        if (called_ != nullptr) called_->add();
        return [inbox = inbox_, this, take](Result<T> answer) {
            inbox->push([this, take, answer = std::move(answer)] {
                --calls_;
                take(answer);
            });
        };
    }

    const PoolletOptions options_;
    const std::shared_ptr<Inbox> inbox_;
    const std::shared_ptr<link::MachineRuntime> runtime_;
    std::unique_ptr<link::MachineRuntime::Watch> watch_;
    link::Session<Sent> session_;
    link::Recorder recorder_;
    Pace pace_;
    Agenda agenda_;  // uids
    PoolLease lease_;
    std::map<std::string, Held> held_;      // by uid
    std::map<std::string, Placed> placed_;  // by uid
    // Which object has a name now, and which feeds show it: it may go from one to another.
    struct Shown {
        std::string uid;
        std::set<std::string> feeds;
    };
    std::map<std::string, Shown> shown_;        // by "resource namespace/name"
    std::map<std::string, std::string> by_id_;  // reservations, by their id below
    std::map<std::string, fleet::MachineClass> classes_;
    std::optional<Json> pool_;  // our MachinePool
    std::string runtime_name_ = "berth";
    std::string layer_;  // the kubeconfig of what is below, where that is a layer
    bool version_known_ = false;
    std::optional<fleet::BestEffort> best_effort_;  // of a runtime that keeps no ledger
    base::Counter* called_ = nullptr;
    base::Counter* wrote_ = nullptr;
    bool pool_seen_ = false;
    bool machines_listed_ = false;
    size_t silent_ = 0;                                        // how often its status was asked for in vain
    std::string why_silent_;                                   // as words after a sentence
    std::optional<std::vector<model::IriClassStatus>> below_;  // the last status; absent: it does not answer
    base::Instant status_at_;
    base::Instant watch_at_;
    base::Instant compare_at_;
    size_t calls_ = 0;
    Moment now_;
    base::Instant next_;
    bool stopping_ = false;
};

}  // namespace berth::run
