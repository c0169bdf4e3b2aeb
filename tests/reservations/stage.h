#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "control/reservations.h"
#include "ledger/ledger.h"
#include "sched/claiming.h"
#include "sched/cycle.h"

namespace berth::reservations {

constexpr int64_t kGi = 1LL << 30;

struct PodWish {
    std::string app;
    int64_t cpu = 0;     // cores
    int64_t memory = 0;  // Gi
    std::vector<int32_t> ports = {};
    bool must_draw = false;
    std::vector<std::string> claims = {};
};

struct ReservationWish {
    std::string owner;  // app
    int64_t cpu = 0;
    int64_t memory = 0;
    std::vector<int32_t> ports = {};
    bool once = true;
    bool pre_allocation = false;
    model::AllocatePolicy policy = model::AllocatePolicy::Default;
    base::Duration ttl = std::chrono::hours(24);
    std::string node = "";  // pinned
    std::vector<std::string> claims = {};
};

struct ClaimWish {
    model::AccessMode mode = model::AccessMode::ReadWriteOnce;
    bool bound = true;  // else its volume is made when a pod with it is bound
};

// A scheduler and its controllers in front of stored objects, one step at a time. The stored objects are all that
// survives a restart.
class Stage {
public:
    void add_node(const std::string& name, int64_t cpu, int64_t memory, int64_t pods = 110);
    void delete_node(const std::string& name);
    // Every claim has a volume of its own, of one driver.
    void add_claim(const std::string& name, const ClaimWish& wish);
    void limit_volumes(const std::string& node, int64_t limit);
    // The uid.
    std::string create(const std::string& pod, const PodWish& wish);
    std::string create(const std::string& reservation, const ReservationWish& wish);
    // As if another scheduler, or the kubelet, had put it there.
    void create_bound(const std::string& pod, const PodWish& wish, const std::string& node);
    void delete_pod(const std::string& name);
    void delete_reservation(const std::string& name);

    // Decides and assumes; false: it stays pending. An allocateOnce reservation is claimed before the bind.
    bool assume(const std::string& pod);
    // The bind reaches the store. One transaction: the reservations it uses up succeed with it.
    void bind(const std::string& pod, bool in_one_transaction = false);
    // The bind is known not to have happened: what was assumed is given back, the claim is released.
    void give_back(const std::string& pod);
    bool schedule(const std::string& pod) { return assume(pod) && (bind(pod), true); }
    bool place(const std::string& reservation);
    std::vector<model::Event> reconcile();
    // A new process: it lists what is stored, in an order of its own.
    void restart(base::Random& random);
    ledger::Ledger replay(base::Random& random) const;

    std::string diagnosis(const std::string& pod) const;
    std::string node_of(const std::string& pod) const;         // "" while it is not bound
    std::string reservation_of(const std::string& pod) const;  // the name in its link
    const model::Reservation& reservation(const std::string& name) const { return *reservations.at(name); }
    int64_t used(const std::string& node, model::ResourceId id) const;
    uint64_t revision() const { return revision_; }  // the number of writes to reservations so far

    // Told of every decision before it is counted: the pod as it is to be bound, the reservation as it is to be placed.
    std::function<void(const model::Pod&)> on_bind = [](const auto&) {};
    std::function<void(const model::Reservation&)> on_place = [](const auto&) {};

    std::map<std::string, std::shared_ptr<const model::Node>> nodes;
    std::map<std::string, model::Pod> pods;
    std::map<std::string, std::shared_ptr<const model::Reservation>> reservations;
    std::map<std::string, std::set<std::string>> ever_bound;  // reservation uid -> pods bound to it, all time
    struct Flight {
        std::string node;
        model::Labels annotations;       // what the bind will write
        std::vector<std::string> spent;  // names of claimed reservations
    };
    std::map<std::string, Flight> in_flight;  // by pod: assumed, bind not yet decided
    std::map<std::string, std::shared_ptr<const model::PersistentVolumeClaim>> claims;
    std::map<std::string, std::shared_ptr<const model::PersistentVolume>> volumes;
    std::map<std::string, std::shared_ptr<const model::CsiNode>> csi_nodes;
    ledger::Ledger ledger;
    base::ManualClock clock{base::Time{1'800'000'000'000'000'000}};
    control::Ages final_ones;

private:
    void store(model::Reservation reservation);
    std::string new_uid();
    void write(const sched::ClaimReservation& claim);
    void give_volume(const std::string& claim);
    std::vector<model::Reservation> claimed_by(const std::string& pod, const std::vector<std::string>& names) const;
    uint64_t revision_ = 0;
    uint64_t uids_ = 0;
};

}  // namespace berth::reservations
