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
    const Space& at(SpaceId id) const {
        settle();
        return spaces_[id];
    }
    SpaceId find(std::string_view name) const;
    // All that is asked for: by pods on nodes, by those who wait and count, and by what is held for one namespace.
    const Resources& asked() const {
        settle();
        return asked_;
    }
    // While batches() stays, all that changes of it is by pods of batch_size(): of batch_asked() since that began. So
    // whoever knows for how many more there is room needs no sum.
    uint64_t batches() const { return batches_; }
    int64_t batch_asked() const { return batch_asked_; }
    const Resources& batch_size() const;
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
    // So much has gone since the last tidying that what nobody has any more may be most of it.
    bool worth_tidying() const { return gone_ >= kept_; }
    // Forgets sizes, and spaces, that nobody has any more where they are most of all, but no space in `needed`. The new
    // number of each, kNone of those that went; empty: they are as they were.
    std::vector<SpaceId> tidy(const absl::flat_hash_set<SpaceId>& needed);

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
    static constexpr size_t kLeastGone = 32;
    struct Waiting {
        Uid uid;
        mutable std::shared_ptr<const model::PodSpec> spec;
        mutable bool counts = false;
    };
    // By uid, which alone never changes. The one that came last is kept apart: mostly it is the next to be placed.
    class Line {
    public:
        bool empty() const { return !last_ && others_.empty(); }
        const Waiting* find(const Uid& uid) const;
        // The one that is there, or a new one.
        const Waiting& add(Uid uid);
        void erase(const Waiting* pod);
        template <class F>
        void each(F f) const {
            if (last_) f(*last_);
            for (const Waiting& pod : others_) f(pod);
        }

    private:
        struct ByUid {
            using is_transparent = void;
            size_t operator()(const Uid& uid) const { return uid.hash(); }
            size_t operator()(const Waiting& pod) const { return pod.uid.hash(); }
            bool operator()(const Waiting& a, const Waiting& b) const { return a.uid == b.uid; }
            bool operator()(const Waiting& a, const Uid& b) const { return a.uid == b; }
            bool operator()(const Uid& a, const Waiting& b) const { return a == b.uid; }
        };
        std::optional<Waiting> last_;
        absl::flat_hash_set<Waiting, ByUid, ByUid> others_;
    };
    using GroupKey = std::pair<Resources, int32_t>;
    // Where pods of a spec are counted.
    struct Place {
        SpaceId space = kNone;
        uint32_t group = 0;  // of the space's
        bool operator==(const Place&) const = default;
    };
    struct Known {
        std::shared_ptr<const model::PodSpec> spec;  // held, so that no other one comes to stand where it does
        Place place;
    };
    // Pods of one group that came or went, which its space's sums and those of all do not have yet: as a rule the next
    // pod is of the same, and mostly nobody reads a sum in between.
    struct Batch {
        Place place;
        int64_t placed = 0;
        int64_t asked = 0;
    };

    SpaceId space(std::string_view name);
    Known& slot_of(const model::PodSpec& spec);
    Place place_of(const model::PodSpec& spec) { return last_.spec.get() == &spec ? last_.place : find_place(spec); }
    Place find_place(const model::PodSpec& spec);
    void remember(const std::shared_ptr<const model::PodSpec>& spec);
    SpaceGroup& at(const Place& place) const { return spaces_[place.space].groups[place.group]; }
    void change_waiting(const model::PodSpec& spec, int64_t by);
    void touch(SpaceId id) {
        ++sums_epoch_;
        if (spaces_[id].changed) return;
        spaces_[id].changed = true;
        changed_.push_back(id);
    }
    // So many more of a group are on nodes, and are asked for.
    void count(const Place& place, int64_t placed, int64_t asked) {
        if (batch_.place != place) begin_batch(place);
        batch_.placed += placed;
        batch_.asked += asked;
        batch_asked_ += asked;
    }
    void begin_batch(const Place& place);
    void note_if_empty(const SpaceGroup& group) { gone_ += group.placed == 0 && group.waiting == 0 ? 1 : 0; }
    void settle() const {
        if (batch_.placed != 0 || batch_.asked != 0) add_batch();
    }
    void add_batch() const;
    void recount(SpaceId id) const;
    void release_part(SpaceId id, const Resources& size);
    void ask(const Resources& size, int sign) const;
    void ask_for_held(const Resources& size, int sign);
    void forget_places();
    void drop_empty_groups(SpaceId id);
    std::vector<bool> spaces_in_use(const absl::flat_hash_set<SpaceId>& needed) const;
    void renumber(const std::vector<SpaceId>& numbers);

    // What is mutable is brought up to date when it is read.
    mutable std::vector<Space> spaces_;
    base::StringMap<SpaceId> by_name_;
    std::vector<absl::flat_hash_map<GroupKey, uint32_t>> groups_;  // of each space
    std::vector<SpaceId> changed_;
    std::array<Known, 64> known_;  // of the specs that came last, each in a place of its own
    Known last_;                   // the last of them
    Line waiting_;
    mutable Batch batch_;
    uint64_t batches_ = 0;
    int64_t batch_asked_ = 0;
    absl::flat_hash_map<ReservationIndex, std::pair<std::optional<SpaceId>, Resources>> holds_;
    Resources held_by_many_;
    mutable Resources asked_;
    mutable bool asked_saturated_ = false;
    size_t gone_ = 0;           // groups, holds and rules, since the last tidying
    size_t kept_ = kLeastGone;  // spaces and groups that were left by it, or what is too little to look
    base::StringMap<std::shared_ptr<const model::Consumer>> consumers_;
    base::StringMap<std::shared_ptr<const model::ResourceQuota>> quotas_;  // by namespace/name
    uint64_t demand_epoch_ = 0;
    uint64_t rules_epoch_ = 0;
    uint64_t nodes_epoch_ = 0;
    uint64_t sums_epoch_ = 0;
    uint64_t claims_epoch_ = 0;
};

}  // namespace berth::ledger
