#pragma once

#include <absl/container/flat_hash_map.h>

#include <deque>
#include <memory>
#include <vector>

#include "base/string_map.h"
#include "ledger/counts.h"
#include "ledger/ids.h"
#include "model/pod.h"

namespace berth::ledger {

using GroupId = uint32_t;

// Placed pods with the same namespace, labels and (anti-)affinity terms: to every counter they are the same pod, so
// matching is done once for all of them.
struct PodGroup {
    std::shared_ptr<const model::PodSpec> spec;  // of one member; nullptr: the entry is free
    Counts living;                               // members by row
    Counts terminating;
    std::vector<uint32_t> matchers;  // who counts them (Tallies), ascending
    std::vector<uint32_t> terms;     // what they hold (HeldTerms)
    size_t place = 0;                // in its namespace's list
    bool idle = false;               // among those that had lost their last member

    bool empty() const { return living.nonzero() + terminating.nonzero() == 0; }
};

class PodGroups {
public:
    // The group of such pods, if there is one.
    GroupId find(const model::PodSpec& spec) const;
    GroupId make(std::shared_ptr<const model::PodSpec> spec);
    // `rows`: every row lies below it.
    void count(GroupId id, Row row, bool terminating, int delta, size_t rows);
    // A group that lost its last member stays a while, since it often comes back at once (preemption's what-if). Gives
    // the ids that are to be freed now.
    std::vector<GroupId> stale();
    void free(GroupId id);

    PodGroup& at(GroupId id) { return groups_[id]; }
    const PodGroup& at(GroupId id) const { return groups_[id]; }
    size_t size() const { return groups_.size() - free_.size(); }

    template <class F>
    void each_in(std::string_view ns, F f) {
        const auto found = by_namespace_.find(ns);
        if (found == by_namespace_.end()) return;
        for (const GroupId id : found->second) f(groups_[id]);
    }
    template <class F>
    void each(F f) {
        for (auto& group : groups_) {
            if (group.spec) f(group);
        }
    }

private:
    std::vector<PodGroup> groups_;
    std::vector<GroupId> free_;
    absl::flat_hash_map<size_t, std::vector<GroupId>> by_hash_;
    base::StringMap<std::vector<GroupId>> by_namespace_;
    std::deque<GroupId> idle_;
};

}  // namespace berth::ledger
