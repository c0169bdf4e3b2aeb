#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/string_map.h"
#include "ledger/ids.h"
#include "ledger/uid.h"
#include "model/consumer.h"
#include "model/pod.h"
#include "model/quota.h"
#include "model/reservation.h"

namespace berth::ledger {

using SpaceId = uint32_t;

// Pods of one namespace that count alike.
struct SpaceGroup {
    Resources size;  // requests and limits.*, without the count of pods
    int32_t priority = 0;
    int64_t placed = 0;
    int64_t waiting = 0;  // of those that count in the demand
    int64_t leaving = 0;  // of the placed ones
};

// What one namespace has and asks for.
struct Space {
    std::string name;
    std::vector<SpaceGroup> groups;
    Resources used;          // by pods on nodes
    Resources releasing;     // of these, what is about to go
    Resources held;          // by Reservations for pods of this namespace alone, as far as no pod draws it
    int64_t pods = 0;        // on nodes
    bool changed = false;    // since take_changed()
    bool saturated = false;  // a sum met the end of int64: it is recounted, not adjusted
};

// What namespaces have and ask for, and the rules by which they share; kept only when somebody asks for shares.
//   used = sum over pods on nodes, bound or assumed, of their size
//   demand = used + sum over waiting pods that count
// A waiting pod that is assumed is placed, and waits no more until it is given back.
class Spaces {
public:
    size_t size() const { return spaces_.size(); }
    const Space& at(SpaceId id) const { return spaces_[id]; }
    SpaceId find(std::string_view name) const;
    // All that is asked for: by pods on nodes, by those who wait and count, and by what is held for one namespace.
    const Resources& asked() const { return asked_; }
    // Held by Reservations of several namespaces' pods.
    const Resources& held_by_many() const { return held_by_many_; }
    // Size of a pod as it counts here.
    static Resources size_of(const model::PodSpec& spec);

    const base::StringMap<std::shared_ptr<const model::Consumer>>& consumers() const { return consumers_; }
    const base::StringMap<std::shared_ptr<const model::ResourceQuota>>& quotas() const { return quotas_; }

    // Grow when what somebody asks for or has is another than was decided; when a Consumer or quota is another; when a
    // node is; with every change of a sum.
    uint64_t demand_epoch() const { return demand_epoch_; }
    uint64_t rules_epoch() const { return rules_epoch_; }
    uint64_t nodes_epoch() const { return nodes_epoch_; }
    uint64_t sums_epoch() const { return sums_epoch_; }
    // When a claim is.
    uint64_t claims_epoch() const { return claims_epoch_; }
    // Those that changed since the last call.
    std::vector<SpaceId> take_changed();

    // --- who waits
    // A pod without a node, of whichever scheduler. `counts`: nobody but us keeps it from starting.
    void await(std::string_view uid, const std::shared_ptr<const model::PodSpec>& spec, bool counts);
    // Whether it counts in the demand; one that fits no node does not. False: it did so before.
    bool set_counts(std::string_view uid, bool counts);
    // Of a waiting pod, whether it counts; absent: it does not wait.
    std::optional<bool> counted(std::string_view uid) const;
    void forget(std::string_view uid);

    // --- rules
    void put(std::shared_ptr<const model::Consumer> consumer);
    void put(std::shared_ptr<const model::ResourceQuota> quota);
    void remove_consumer(std::string_view name);
    void remove_quota(std::string_view full_name);
    void touch_claims() { ++claims_epoch_; }

    // --- the ledger's own
    // Those who wait elsewhere wait here too, all of them.
    void await_all(const Spaces& other);
    // What it did until now.
    Waits place(const Uid& uid, const model::PodSpec& spec, bool terminating, bool assumed);
    void displace(Uid uid, const std::shared_ptr<const model::PodSpec>& spec, bool terminating, Waits next);
    void set_terminating(const model::PodSpec& spec, bool terminating);
    // What nobody draws yet of a reservation on a node; nothing: it holds none any more.
    void hold(ReservationIndex index, const model::Reservation& object, Resources open);
    void release(ReservationIndex index);
    void touch_nodes() { ++nodes_epoch_; }

private:
    struct Waiting {
        Uid uid;
        mutable std::shared_ptr<const model::PodSpec> spec;
        mutable bool counts = false;
    };
    // By uid, which alone never changes.
    struct ByUid {
        using is_transparent = void;
        size_t operator()(const Uid& uid) const { return uid.hash(); }
        size_t operator()(const Waiting& pod) const { return pod.uid.hash(); }
        bool operator()(const Waiting& a, const Waiting& b) const { return a.uid == b.uid; }
        bool operator()(const Waiting& a, const Uid& b) const { return a.uid == b; }
        bool operator()(const Uid& a, const Waiting& b) const { return a == b.uid; }
    };
    using GroupKey = std::pair<Resources, int32_t>;
    // Where pods of a spec are counted.
    struct Place {
        SpaceId space = kNone;
        uint32_t group = 0;  // of the space's
    };
    struct Known {
        std::shared_ptr<const model::PodSpec> spec;  // held, so that no other one comes to stand where it does
        Place place;
    };

    SpaceId space(std::string_view name);
    Known& slot_of(const model::PodSpec& spec);
    Place place_of(const model::PodSpec& spec);
    void remember(const std::shared_ptr<const model::PodSpec>& spec);
    SpaceGroup& at(const Place& place) { return spaces_[place.space].groups[place.group]; }
    void change_waiting(const model::PodSpec& spec, int64_t by);
    void touch(SpaceId id);
    void recount(SpaceId id);
    void ask(const Resources& size, int sign);
    void drop_empty(SpaceId id);

    std::vector<Space> spaces_;
    base::StringMap<SpaceId> by_name_;
    std::vector<absl::flat_hash_map<GroupKey, uint32_t>> groups_;  // of each space
    std::vector<SpaceId> changed_;
    std::array<Known, 64> known_;  // of the specs that came last, each in a place of its own
    absl::flat_hash_set<Waiting, ByUid, ByUid> waiting_;
    absl::flat_hash_map<ReservationIndex, std::pair<std::optional<SpaceId>, Resources>> holds_;
    Resources held_by_many_;
    Resources asked_;
    bool asked_saturated_ = false;
    base::StringMap<std::shared_ptr<const model::Consumer>> consumers_;
    base::StringMap<std::shared_ptr<const model::ResourceQuota>> quotas_;  // by namespace/name
    uint64_t demand_epoch_ = 0;
    uint64_t rules_epoch_ = 0;
    uint64_t nodes_epoch_ = 0;
    uint64_t sums_epoch_ = 0;
    uint64_t claims_epoch_ = 0;
};

}  // namespace berth::ledger
