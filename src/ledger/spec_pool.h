#pragma once

#include <absl/container/flat_hash_set.h>

#include <memory>

#include "model/pod.h"

namespace berth::ledger {

// Keeps one of all equal pod specs. Pods of one template then share it, and whoever caches by spec compares addresses.
class SpecPool {
public:
    using Spec = std::shared_ptr<const model::PodSpec>;

    // The pooled spec that equals this one: itself when it is the first.
    Spec intern(const Spec& spec);
    // Whether this very object is the pooled one.
    bool owns(const model::PodSpec* spec) const {
        if (spec == last_) return true;
        if (!known_.contains(spec)) return false;
        last_ = spec;
        return true;
    }
    size_t size() const { return by_value_.size(); }

private:
    struct Pooled {
        Spec spec;
        size_t hash;
    };
    struct Hash {
        size_t operator()(const Pooled& pooled) const { return pooled.hash; }
    };
    struct Equal {
        bool operator()(const Pooled& a, const Pooled& b) const { return a.hash == b.hash && *a.spec == *b.spec; }
    };
    void drop_unused();

    absl::flat_hash_set<Pooled, Hash, Equal> by_value_;
    absl::flat_hash_set<const model::PodSpec*> known_;
    mutable const model::PodSpec* last_ = nullptr;  // one of `known_`: pods of one template come one after another
    size_t next_sweep_ = 1024;
};

}  // namespace berth::ledger
