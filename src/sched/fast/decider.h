#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

#include <memory>
#include <vector>

#include "sched/decide.h"
#include "sched/fast/columns.h"
#include "sched/fast/max_tree.h"
#include "sched/fast/node_class.h"
#include "sched/fast/owner_class.h"

namespace berth::sched::fast {

// Answers as decide() does, from memory of earlier asks. Equal specs are a class; a class keeps its rows' keys in trees
// and catches up with the ledger by the change log. Keys may be too high after a fill (never too low), so the top is
// computed exactly before it is believed, and lowered if it was wrong. For asks that concern plugins with a longer
// reach (spread, pod affinity) those plugins run over the rows that are left. Belongs to one ledger and one thread.
// Memory is bounded: the classes used least recently are forgotten.
class Decider {
public:
    // What asks cost is counted there.
    explicit Decider(const Profile& profile, uint64_t* looks = nullptr);
    ~Decider();
    Decider(const Decider&) = delete;
    Decider& operator=(const Decider&) = delete;

    // Always equals decide(ask, ledger, profile).chosen for the pod's or the reservation's ask.
    Row choose(const model::Pod& pod, const View& ledger);
    Row choose(const model::Reservation& reservation, const View& ledger);
    // What the pod that was asked for last draws from on the row that was chosen; before the ledger changes.
    ledger::Charges charges(const model::Pod& pod, const View& ledger, Row row) const;

    // How asks were answered so far.
    struct Counts {
        uint64_t plain = 0;    // by decide()
        uint64_t far = 0;      // with plugins of a longer reach
        uint64_t named = 0;    // row by row: the spec names its nodes
        uint64_t fills = 0;    // all keys of a class computed anew
        uint64_t replays = 0;  // only changed rows
        uint64_t lowered = 0;  // keys that were too high
        uint64_t drawn = 0;    // by the best place with credit
        // Pods that might match a reservation; only they pay for there being any.
        uint64_t matching = 0;
    };
    const Counts& counts() const { return counts_; }

private:
    struct Want {
        model::ResourceId id;
        int64_t amount;
    };
    struct Class {
        std::shared_ptr<const model::PodSpec> spec;
        size_t hash = 0;
        absl::InlinedVector<Want, 4> wants;
        ClassNumbers numbers;
        int64_t cpu = 0, memory = 0;                // that it asks for
        int64_t scored_cpu = 0, scored_memory = 0;  // as LeastAllocated counts it
        std::vector<const Filter*> far_filters;     // of those with a longer reach, which may concern it
        std::vector<const Scorer*> far_scorers;
        std::shared_ptr<const NodeClass> node_class;
        std::vector<MaxTree> trees;     // one a group
        std::vector<uint64_t> settled;  // a bit a row: its key was computed exactly, and not by a fill
        bool cores = false;             // it asks for cores of its own, or on NUMA nodes
        bool devices = false;           // it asks for some
        bool filled = false;            // the trees are of this node class
        uint64_t sequence = 0;          // of the ledger, that the trees stand for
        uint64_t last_use = 0;
        std::vector<std::unique_ptr<OwnerClass>> owner_classes;  // while there are reservations
        bool exact_keys = false;  // a key is not 0 exactly where the row is open to the near plugins

        bool is_settled(Row row) const { return (settled[row / 64] >> row % 64 & 1) != 0; }
    };
    struct Hashed {
        const model::PodSpec& spec;
        size_t hash;
    };
    struct BySpec {
        using is_transparent = void;
        size_t operator()(const Class* c) const { return c->hash; }
        size_t operator()(const Hashed& key) const { return key.hash; }
        bool operator()(const Class* a, const Class* b) const { return a == b; }
        bool operator()(const Class* a, const Hashed& b) const { return a->hash == b.hash && *a->spec == b.spec; }
    };
    struct ByConstraints {
        size_t operator()(const model::PodSpec& spec) const { return spec.hash(); }
    };

    Row best_among(const Ask& ask, const View& ledger, std::span<const Row> rows) const;
    Row choose_plain(const Ask& ask, const View& ledger);
    Row choose_without_credit(Class& c, const Ask& ask, const View& ledger);
    bool reaches_far(const Class& c, const Ask& ask, const View& ledger) const;
    bool cores_are_far(const Ask& ask, const View& ledger) const;
    // Credit: see decider_credit.cc
    OwnerClass& owner_class_of(Class& c, const model::Pod& pod, const View& ledger);
    CreditPlace judge(const Class& c, const View& ledger, const Ask& ask, const Credit& credit, Row row) const;
    Row choose_with_owners(Class& c, const model::Pod& pod, const View& ledger);
    Row choose_with_credit(Class& c, const Ask& ask, const View& ledger);
    Row best_supplied(const Ask& ask, const View& ledger) const;
    Class& class_of(const std::shared_ptr<const model::PodSpec>& spec);
    Class& equal_class(const std::shared_ptr<const model::PodSpec>& spec);
    void begin(Class& c, const std::shared_ptr<const model::PodSpec>& spec, size_t hash) const;
    void find_far(Class& c) const;
    std::shared_ptr<const NodeClass> node_class_for(const model::PodSpec& spec, const View& ledger);
    bool open_anywhere(Class& c, const View& ledger);
    std::vector<MaxTree>& trees_of(Class& c, const View& ledger);
    void fill(Class& c, const View& ledger, std::vector<MaxTree>& trees);
    void fill_groups(const Class& c, const uint16_t* base, std::vector<MaxTree>& trees);
    const uint16_t* base_of(const Class& c, const View& ledger);
    void set(Class& c, Row row, Key key, std::vector<MaxTree>& trees) const;
    Key exact(const Class& c, const View& ledger, Row row) const;
    Key worth(const Class& c, const View& ledger, Row row) const;
    Key true_top(Class& c, const View& ledger, std::vector<MaxTree>& trees, size_t group);
    Key best(Class& c, const View& ledger, std::vector<MaxTree>& trees);
    Row choose_far(Class& c, const Ask& ask, const View& ledger, std::vector<MaxTree>& trees);
    void make_keys_exact(Class& c, const View& ledger, std::vector<MaxTree>& trees);
    std::span<const Key> keys_by_row(const Class& c, const std::vector<MaxTree>& trees);
    void close_rows(const Ask& ask, const View& ledger);
    void close_by(const Filter& filter, const Ask& ask, const View& ledger);
    void add_far_points(const Ask& ask, const View& ledger);
    void add_scaled(const Class& c);
    Row best_with(Class& c, const View& ledger, std::vector<MaxTree>& trees);
    void forget_old();

    const Profile& profile_;
    uint64_t* looks_;
    Terms terms_;
    Columns columns_;
    Counts counts_;
    absl::flat_hash_map<const model::PodSpec*, std::unique_ptr<Class>> classes_;
    absl::flat_hash_set<Class*, BySpec, BySpec> by_spec_;
    absl::flat_hash_set<size_t> met_once_;  // hashes of specs: a class is made when one comes again
    Class passing_;                         // of a spec that is met for the first time
    Class* last_ = nullptr;                 // of `classes_`: pods of one template come one after another
    absl::flat_hash_map<model::PodSpec, std::shared_ptr<const NodeClass>, ByConstraints> node_classes_;
    std::vector<uint16_t> base_;   // scratch
    std::vector<Key> keys_;        // scratch
    std::vector<Key> tops_;        // scratch
    std::vector<uint8_t> open_;    // scratch, by row
    std::vector<int64_t> points_;  // scratch, by row
    std::vector<int64_t> totals_;  // scratch, by row
    uint64_t uses_ = 0;
    bool credit_ = false;                        // the pod that was asked for last may have credit on its row
    ReservationIndex only_one_ = ledger::kNone;  // what it draws from there, when that can be nothing else
    size_t tree_bytes_ = 0;
};

}  // namespace berth::sched::fast
